"""Frames with names, and the view in a notebook."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from comtl import (
    BiFactorClassifier,
    HierarchicalRegressor,
    MultitaskRegressor,
    TriFactorRegressorCV,
)
from comtl.show.views import view
from pages import levels


@pytest.fixture(scope="module")
def fitted():
    X, y, task = levels()
    return HierarchicalRegressor().fit(X, y, task=task)


def test_frames_have_names():
    X, y, task = levels()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.insert(1, "town", task)
    model = HierarchicalRegressor(task_column="town").fit(frame, y)
    weights = model.coef_frame()
    assert weights.columns.tolist() == ["a", "b", "c"] and weights.index.name == "town"
    np.testing.assert_array_equal(weights.to_numpy(), model.coef_)
    tasks = model.task_frame()
    assert tasks.columns.tolist() == ["cluster", "intercept"]
    np.testing.assert_array_equal(tasks["intercept"], model.intercept_)
    table = np.column_stack([X, np.repeat(np.arange(6), 20)])
    plain = HierarchicalRegressor(task_column=-1).fit(table, y)
    assert plain.coef_frame().columns.tolist() == ["x0", "x1", "x2"]


def test_frames_of_several_classes():
    X, y, task = levels()
    labels = np.digitize(y, [-1.0, 1.0])
    model = BiFactorClassifier(2).fit(X, labels, task=task)
    frame = model.coef_frame()
    assert frame.index.names == ["task", "class"]
    np.testing.assert_array_equal(frame.loc[("t1", 2)], model.coef_[1, 2])
    assert model.task_frame().columns.tolist()[1:] == [f"intercept of {c}" for c in range(3)]


def test_frames_ask_for_pandas(monkeypatch, fitted):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"comtl\[report\]"):
        fitted.coef_frame()
    with pytest.raises(NotFittedError):
        HierarchicalRegressor().task_frame()


def test_notebook_shows_the_diagram_and_a_line(fitted):
    text = fitted._repr_html_()
    assert "sk-top-container" in text and "6 tasks, 3 features" in text.split("</script>")[-1]
    assert "model.report" not in HierarchicalRegressor()._repr_html_()


def test_features_of_a_search_and_of_a_form_have_names():
    X, y, task = levels(T=4)
    search = TriFactorRegressorCV(2, 2, alphas=(0.1, 1.0), cv=2).fit(X, y, task=task)
    assert search.coef_frame().columns.tolist() == ["x0", "x1", "x2"]
    X = np.random.default_rng(0).uniform(-2, 2, size=(400, 1))
    bent = MultitaskRegressor(form="hinges", cv=3)
    bent.fit(X, np.abs(X[:, 0]), task=np.repeat(["a", "b"], 200))
    names = bent.coef_frame().columns.tolist()
    assert bent.form_ == "hinges" and names[0] == "x0" and names[1].startswith("x0 above -1.")
    assert view(bent).features == names
