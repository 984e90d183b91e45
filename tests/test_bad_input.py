"""Bad input is refused by name before any work; odd but lawful input is fitted."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import comtl.models.factor_model
from comtl import (
    BiFactorClassifier,
    BiFactorClassifierCV,
    BiFactorRegressor,
    BiFactorRegressorCV,
    TriFactorClassifier,
    TriFactorRegressor,
    pack_tasks,
)

KINDS = [BiFactorRegressor, TriFactorRegressor, BiFactorClassifier, TriFactorClassifier]
SEARCHES = [BiFactorRegressorCV, BiFactorClassifierCV]
each_kind = pytest.mark.parametrize("kind", KINDS)
each_kind_and_search = pytest.mark.parametrize("kind", KINDS + SEARCHES)


def problem(kind, seed=0, tasks=4, rows=12, features=3):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), rows)
    X = rng.standard_normal((tasks * rows, features))
    W = rng.standard_normal((tasks, features))
    y = (X * W[task]).sum(axis=1) + 0.3 * rng.standard_normal(len(task))
    return X, (y > 0).astype(int) if "Classifier" in kind.__name__ else y, task


@pytest.fixture
def no_work(monkeypatch):
    """Make the first sweep of any fit an error."""

    def never(*args, **kwargs):
        raise AssertionError("the fit began before the input was checked")

    monkeypatch.setattr(comtl.engine.problem, "alternate", never)
    monkeypatch.setattr(comtl.engine.problem, "start_state", never)


def test_good_input_does_begin(no_work):
    with pytest.raises(AssertionError, match="began"):
        BiFactorRegressor().fit(*problem(BiFactorRegressor))


def changed(values, place, value):
    values = values.astype(float) if isinstance(value, float) else values.copy()
    values[place] = value
    return values


@each_kind_and_search
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_x_not_finite(kind, bad, form, no_work):
    X, y, task = problem(kind)
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        kind().fit(form(changed(X, (3, 1), bad)), y, task=task)


@each_kind_and_search
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_y_not_finite(kind, bad, no_work):
    X, y, task = problem(kind)
    with pytest.raises(ValueError, match=r"y contains (NaN|infinity)"):
        kind().fit(X, changed(y, 5, bad), task=task)
    Y = np.column_stack([y, changed(y, 5, np.inf)])
    with pytest.raises(ValueError, match=r"y contains infinity"):
        kind().fit(X, Y)


@each_kind_and_search
def test_lengths_differ(kind, no_work):
    X, y, task = problem(kind)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples|y "):
        kind().fit(X, y[:-1], task=task)
    with pytest.raises(ValueError, match="task has 47 labels, but X has 48 rows"):
        kind().fit(X, y, task=task[:-1])
    with pytest.raises(ValueError, match="sample_weight"):
        kind().fit(X, y, task=task, sample_weight=np.ones(47))
    with pytest.raises(ValueError, match="one-dimensional"):
        kind().fit(X, y, task=np.column_stack([task, task]))


@each_kind_and_search
def test_nothing_to_fit(kind, no_work):
    X, y, task = problem(kind)
    with pytest.raises(ValueError, match=r"0 sample"):
        kind().fit(X[:0], y[:0], task=task[:0])
    with pytest.raises(ValueError, match=r"0 feature"):
        kind().fit(X[:, :0], y, task=task)
    with pytest.raises(ValueError, match=r"0 feature"):
        kind(task_column=0).fit(task[:, None], y)
    with pytest.raises(ValueError, match="y"):
        kind().fit(X, None)


@each_kind
def test_empty_tasks(kind, no_work):
    X, y, _ = problem(kind)
    Y = np.column_stack([y, np.full(48, np.nan), y]).astype(float)
    with pytest.raises(ValueError, match=r"y has columns without any observed value: \[1\]"):
        kind().fit(X, Y)
    with pytest.raises(ValueError, match="Task 'b' has no rows"):
        pack_tasks([X, X[:0]], [y, y[:0]], tasks=["a", "b"])


@each_kind
def test_unknown_task(kind):
    X, y, task = problem(kind)
    model = kind(unseen_task="raise").fit(X, y, task=task)
    with pytest.raises(ValueError, match=r"task .*\[9\].*adapt"):
        model.predict(X, task=np.full(48, 9))
    with pytest.raises(ValueError, match="task has 2 labels"):
        model.predict(X, task=[0, 1])
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :2], task=task)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(changed(X, (0, 0), np.nan), task=task)
    with pytest.raises(NotFittedError):
        kind().predict(X, task=task)


RANKS = {
    BiFactorRegressor: ["n_components"],
    BiFactorClassifier: ["n_components"],
    TriFactorRegressor: ["n_feature_clusters", "n_task_clusters"],
    TriFactorClassifier: ["n_feature_clusters", "n_task_clusters"],
}


@each_kind
@pytest.mark.parametrize("bad", [0, -1, 2.0, 2.5, "3", None, True, np.nan])
def test_ranks(kind, bad, no_work):
    X, y, task = problem(kind)
    for name in RANKS[kind]:
        with pytest.raises((ValueError, TypeError), match=f"^{name} must be"):
            kind(**{name: bad}).fit(X, y, task=task)


@each_kind
@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, "1", None])
def test_penalties(kind, bad, no_work):
    X, y, task = problem(kind)
    names = ["alpha_feature", "alpha_task", "alpha_shared", "tol", "smoothing"]
    for name in [*names, "alpha_core"] if "Tri" in kind.__name__ else names:
        with pytest.raises((ValueError, TypeError), match=f"^{name} must be"):
            kind(**{name: bad}).fit(X, y, task=task)


@each_kind
@pytest.mark.parametrize(
    "name",
    ["loss", "init", "feature_penalty", "task_penalty", "unseen_task", "shared", "max_iter"],
)
def test_choices(kind, name, no_work):
    X, y, task = problem(kind)
    with pytest.raises((ValueError, TypeError), match=f"^{name} must be"):
        kind(**{name: "no such"}).fit(X, y, task=task)


@each_kind_and_search
@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (-1.0, "negative"),
        (np.nan, "sample_weight contains NaN"),
        (np.inf, "sample_weight contains infinity"),
    ],
)
def test_weights(kind, weight, match, no_work):
    X, y, task = problem(kind)
    with pytest.raises(ValueError, match=match):
        kind().fit(X, y, task=task, sample_weight=changed(np.ones(48), 3, weight))
    with pytest.raises(ValueError, match=r"sample_weight is zero"):
        kind().fit(X, y, task=task, sample_weight=np.zeros(48))


@pytest.mark.parametrize("kind", [BiFactorClassifier, TriFactorClassifier, BiFactorClassifierCV])
def test_one_class(kind, no_work):
    X, y, task = problem(kind)
    with pytest.raises(ValueError, match=r"y .*class"):
        kind().fit(X, np.ones(48, dtype=int), task=task)
    with pytest.raises(ValueError, match=r"class"):
        kind().fit(X, y, task=task, sample_weight=y)
    with pytest.raises(ValueError, match="Unknown label type"):
        kind().fit(X, X[:, 0], task=task)


@pytest.mark.parametrize("kind", [BiFactorRegressor, BiFactorRegressorCV])
def test_words_for_a_regressor(kind, no_work):
    X, y, task = problem(kind)
    with pytest.raises(ValueError, match="y cannot be read as numbers"):
        kind().fit(X, np.where(y > 0, "a", "b"), task=task)


@each_kind_and_search
def test_task_columns(kind, no_work):
    X, y, task = problem(kind)
    frame = pd.DataFrame(X, columns=list("abc")).assign(who=task)
    for column in ("what", 4, -5):
        with pytest.raises(ValueError, match=f"task_column={column!r} is missing"):
            kind(task_column=column).fit(frame, y)
    with pytest.raises(ValueError, match="no column names"):
        kind(task_column="who").fit(frame.to_numpy(), y)
    for bad in (np.nan, 0.5):
        with pytest.raises(ValueError, match=r"task column 'who'"):
            kind(task_column="who").fit(frame.assign(who=changed(task, 0, bad)), y)
        with pytest.raises(ValueError, match=r"task column 3"):
            kind(task_column=3).fit(changed(frame.to_numpy(), (0, 3), bad), y)
    with pytest.raises(TypeError, match="task_column"):
        kind(task_column=1.5).fit(frame, y)
    with pytest.raises(ValueError, match="given twice"):
        kind(task_column="who").fit(frame, y, task=task)
    with pytest.raises(ValueError, match=r"'who'.*task_column"):
        kind().fit(frame.assign(who="x"), y)
