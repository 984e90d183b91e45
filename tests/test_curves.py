"""Partial dependence and shares of the variance, where the truth is known."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from comtl import BiFactorRegressor, HierarchicalClassifier, MultitaskClassifier, MultitaskRegressor
from comtl.plot import partial_dependence
from comtl.show.page import page

TASKS, ROWS = 20, 60
rng = np.random.default_rng(0)
TASK = np.repeat([f"t{number:02d}" for number in range(TASKS)], ROWS)
CODE = np.repeat(np.arange(TASKS), ROWS)
X = rng.normal(size=(TASKS * ROWS, 4))
SLOPES = 0.5 * rng.normal(size=(TASKS, 4))
SLOPES -= SLOPES.mean(axis=0)
LEVELS = 0.7 * rng.normal(size=TASKS)
COMMON = X @ np.array([1.0, 0.5, 0.0, 0.0])
OWN = (X * SLOPES[CODE]).sum(axis=1) + LEVELS[CODE]
SINE = 1.5 * np.sin(2.5 * X[:, 2])
NOISE = 0.3 * rng.normal(size=len(X))
Y = COMMON + OWN + SINE + NOISE
# A part of the sine is a line.
LINE = X[:, 2] * (X[:, 2] @ SINE) / (X[:, 2] @ X[:, 2])


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def bent():
    model = MultitaskRegressor(form="trees", cv=3).fit(X, Y, task=TASK)
    assert model.form_ == "trees"
    return model


@pytest.mark.parametrize("form", ["hinges", "trees", "auto"])
def test_shares_are_near_the_truth(form):
    model = MultitaskRegressor(form=form, cv=3).fit(X, Y, task=TASK)
    truth = np.array([np.var(COMMON + LINE), OWN.var(), np.var(SINE - LINE)])
    shares = model.variance_shares(X, task=TASK)
    assert sum(shares.values()) == pytest.approx(1.0)
    # Four hinges are no sine of so many waves.
    tolerance = 0.12 if form == "hinges" else 0.08
    np.testing.assert_allclose(list(shares.values()), truth / truth.sum(), atol=tolerance)


@pytest.mark.parametrize("form", ["linear", "auto"])
def test_what_is_linear_has_no_nonlinear_share(form):
    model = MultitaskRegressor(form=form, cv=3).fit(X, COMMON + OWN + NOISE, task=TASK)
    shares = model.variance_shares(X, task=TASK)
    truth = np.array([COMMON.var(), OWN.var(), 0.0])
    np.testing.assert_allclose(list(shares.values()), truth / truth.sum(), atol=0.06)
    # Of a task never seen nothing is its own.
    with pytest.warns(UserWarning, match="mean of all tasks"):
        shares = model.variance_shares(X, task=np.full(len(X), "new"))
    assert shares["own linear"] == pytest.approx(0.0, abs=1e-12)


def test_shares_of_classes_of_a_task_column_and_where_nothing_varies():
    frame = pd.DataFrame(X, columns=list("abcd")).assign(who=TASK)
    label = np.digitize(Y, [-1.0, 1.0])
    label[(TASK == "t03") & (label == 2)] = 1
    model = MultitaskClassifier(form="trees", cv=2, task_column="who").fit(frame, label)
    assert model.form_ == "trees"
    shares = model.variance_shares(frame)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert min(shares.values()) > 0.1
    constant = MultitaskRegressor(cv=2).fit(X, np.ones(len(X)), task=TASK)
    found = constant.variance_shares(X[:1], task=TASK[:1])
    assert set(found.values()) == {0.0}
    table = MultitaskRegressor(cv=2).fit(X, np.column_stack([Y, -Y]))
    with pytest.raises(ValueError, match="any units"):
        table.variance_shares(X)


def test_curve_follows_the_truth(bent):
    ax = partial_dependence(bent, X, 2, TASK, tasks=["t01", "t05"])
    everyone, *own = ax.lines
    grid = everyone.get_xdata()
    assert len(grid) == 20 and X[:, 2].min() < grid[0] < grid[-1] < X[:, 2].max()
    assert np.corrcoef(everyone.get_ydata(), np.sin(2.5 * grid))[0, 1] > 0.95
    assert [line.get_label() for line in ax.lines] == ["all tasks", "t01", "t05"]
    for line, number in zip(own, (1, 5), strict=True):
        truth = 1.5 * np.sin(2.5 * grid) + SLOPES[number, 2] * grid
        truth = truth + (X[CODE == number] @ SLOPES[number]).mean() + LEVELS[number]
        assert np.corrcoef(line.get_ydata(), truth)[0, 1] > 0.9
    # Of a linear column a line, with its slope.
    line = partial_dependence(bent, X, 0, TASK).lines[0]
    slope = np.polyfit(line.get_xdata(), line.get_ydata(), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.15)


def test_curves_are_means_of_predictions():
    """Of a linear model in closed form; columns by name, tasks in a column, few values."""
    frame = pd.DataFrame(X, columns=list("abcd")).assign(who=TASK)
    frame["b"] = (frame.b > 0.0).astype(float)
    frame = frame[["who", *"abcd"]]
    model = BiFactorRegressor(2, task_column="who", random_state=0).fit(frame, Y)
    rows = frame[:100]
    line, own = partial_dependence(model, rows, "b", tasks=["t01"]).lines
    np.testing.assert_array_equal(line.get_xdata(), [0.0, 1.0])
    for drawn, kept in ((line, rows), (own, rows[rows.who == "t01"])):
        expected = [model.predict(kept.assign(b=value)).mean() for value in (0.0, 1.0)]
        np.testing.assert_allclose(drawn.get_ydata(), expected)
    with pytest.raises(ValueError, match=r"none of the columns.*a, b, c, d"):
        partial_dependence(model, frame, "who")
    with pytest.raises(ValueError, match="no number of the 4"):
        partial_dependence(model, frame, 4)
    with pytest.raises(ValueError, match="no rows"):
        partial_dependence(model, rows, "a", tasks=["t19"])


def test_classes_and_a_column_for_each():
    model = HierarchicalClassifier("isotropic").fit(X, np.where(Y > 0, "yes", "no"), task=TASK)
    ax = partial_dependence(model, X, 0, TASK)
    values = ax.lines[0].get_ydata()
    assert ax.get_ylabel() == "mean probability of yes"
    assert (np.diff(values) > 0.0).all() and 0.0 < values[0] < values[-1] < 1.0
    table = MultitaskRegressor(form="linear", cv=2).fit(X, np.column_stack([Y, X[:, 1]]))
    both, second = partial_dependence(table, X, 1, tasks=[1]).lines
    slopes = [np.polyfit(one.get_xdata(), one.get_ydata(), 1)[0] for one in (both, second)]
    np.testing.assert_allclose(slopes, [table.coef_[:, 1].mean(), table.coef_[1, 1]])


def test_page_has_curves_where_the_model_is_not_linear(bent):
    frame = pd.DataFrame(X, columns=["a", "b", "<wave>", "d"])
    named = MultitaskRegressor(form="trees", cv=2).fit(frame, Y, task=TASK)
    text = page(named, rows=(frame, TASK))
    assert "Curves and shares" in text and "curves, steps and interactions" in text
    section = text[text.index('id="curves"') : text.index('id="members"')]
    assert section.count("<figure>") == 4 and "&lt;wave&gt;" in section and "<wave>" not in text
    assert "Curves and shares" not in page(named)
    straight = MultitaskRegressor(form="linear", cv=2).fit(X, Y, task=TASK)
    assert "Curves and shares" not in page(straight, rows=(X, TASK))
