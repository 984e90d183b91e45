"""The graph of a stack with trees says what the model says."""

import numpy as np
import pytest

import comtl
from comtl import MultitaskClassifier, MultitaskRegressor
from test_onnx import assert_classes_agree, said

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

rng = np.random.default_rng(0)
TASK = np.repeat(np.array(list("abcdefgh")), 50)
X = rng.normal(size=(400, 3))
SIGNAL = 2.0 * np.sin(2.0 * X[:, 0]) + 2.0 * (X[:, 1] > 0.0) * (X[:, 2] > 0.0)
SIGNAL += np.repeat(rng.normal(size=8), 50)
Y = SIGNAL + 0.3 * rng.normal(size=400)
NEW = np.where(np.arange(400) % 7, TASK, "new")


def with_trees(kind, y, rows=X, task=TASK, form="trees", **settings):
    model = kind(form=form, cv=2, **settings).fit(rows, y, task=task)
    assert "trees" in model.form_
    return model


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values(dtype):
    rows = X.astype(dtype)
    model = with_trees(MultitaskRegressor, Y.astype(dtype), rows)
    found = said(model, rows.astype(model.coef_.dtype), NEW)["prediction"]
    np.testing.assert_allclose(found, model.predict(rows, task=NEW), rtol=1e-5, atol=1e-5)


def test_rows_beside_thresholds_go_the_same_way():
    """Thresholds lie halfway between values of the rows, so near ones tell float32 from float64."""
    near = np.column_stack([1.0 + 1e-9 * rng.integers(0, 40, len(X)), X[:, 1:]])
    step = (near[:, 0] > 1.0 + 20e-9) * 4.0 + Y
    model = with_trees(MultitaskRegressor, step, near)
    found = said(model, near, NEW)["prediction"]
    # Coefficients of such a column are large; a row gone the other way is off by more than .1.
    np.testing.assert_allclose(found, model.predict(near, task=NEW), rtol=1e-5, atol=1e-5)


def test_hinges_below_and_one_task():
    model = with_trees(MultitaskRegressor, Y + 4.0 * np.abs(X[:, 0]), form="auto")
    assert model.form_ == "hinges and trees"
    found = said(model, X, NEW)["prediction"]
    np.testing.assert_allclose(found, model.predict(X, task=NEW), rtol=1e-9, atol=1e-9)
    alone = with_trees(MultitaskRegressor, Y, task=np.zeros(400, int))
    found = said(alone, X)["prediction"]
    np.testing.assert_allclose(found, alone.predict(X, task=np.zeros(400, int)), rtol=1e-9)


def test_logarithms():
    model = with_trees(MultitaskRegressor, np.exp(0.5 * Y), loss="log")
    found = said(model, X, NEW)["prediction"]
    np.testing.assert_allclose(found, model.predict(X, task=NEW), rtol=1e-9)


def test_a_column_for_each():
    table = np.column_stack([Y, 1e4 * Y, X[:, 1] - np.cos(2.0 * X[:, 0])])
    model = with_trees(MultitaskRegressor, table, task=None)
    np.testing.assert_allclose(said(model, X)["prediction"], model.predict(X), rtol=1e-9, atol=1e-9)
    model = with_trees(MultitaskClassifier, table > table.mean(axis=0), task=None)
    assert_classes_agree(model, X, tolerance=1e-8)


def test_two_classes_and_thresholds():
    labels = np.where(SIGNAL > 1.5, "yes", "no")
    model = with_trees(MultitaskClassifier, labels, threshold="f1")
    assert np.all(model.thresholds_ != 0.0)
    assert "probability" in assert_classes_agree(model, X, NEW, 1e-8)


def several():
    label = np.digitize(SIGNAL, [-0.5, 1.0])
    label[TASK == "c"] = 0
    label[TASK == "d"] = np.minimum(label[TASK == "d"], 1)
    return with_trees(MultitaskClassifier, label)


def test_several_classes():
    found = assert_classes_agree(several(), X, NEW, 1e-8)
    assert np.isfinite(found["scores"][NEW == "c"]).sum(axis=1).max() == 1


def test_a_task_of_the_first_class_alone_is_scored_as_beside_others():
    model, rows = several(), TASK == "c"
    beside = model.decision_function(X, task=TASK)[rows]
    np.testing.assert_allclose(model.decision_function(X[rows], task=TASK[rows]), beside)


def test_members_of_neither_kind_are_named():
    model = with_trees(MultitaskRegressor, Y)

    class Other:
        linear = None

        def score(self, rows, base=None):
            return comtl.stacking.members.Predicted(rows.y)

    model._nonlinear.members[1]["neighbours"] = Other()
    with pytest.raises(TypeError, match=r"neighbours.*neither"):
        model.to_onnx()
