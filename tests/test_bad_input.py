"""Bad input is refused by name before any work."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import comtl.engine.problem
from comtl import (
    BiFactorClassifier,
    BiFactorClassifierCV,
    BiFactorRegressor,
    BiFactorRegressorCV,
    TriFactorClassifier,
    TriFactorRegressor,
)
from small_tables import problem

KINDS = [BiFactorRegressor, TriFactorRegressor, BiFactorClassifier, TriFactorClassifier]
SEARCHES = [BiFactorRegressorCV, BiFactorClassifierCV]
each_kind = pytest.mark.parametrize("kind", KINDS)
each_kind_and_search = pytest.mark.parametrize("kind", KINDS + SEARCHES)


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


def named(X, task):
    return pd.DataFrame(X, columns=list("abc")).assign(who=task)


WHO, LAST = {"task_column": "who"}, {"task_column": 3}
ROWS = [
    ({}, lambda X, y, t: (changed(X, (3, 1), np.nan), y, t), "X contains NaN.*fit_table"),
    ({}, lambda X, y, t: (sparse.csr_array(changed(X, (3, 1), np.inf)), y, t), "X contains inf"),
    ({}, lambda X, y, t: (pd.DataFrame(changed(X, (3, 1), -np.inf)), y, t), "X contains inf"),
    ({}, lambda X, y, t: (X, changed(y, 5, np.nan), t), "y contains NaN"),
    ({}, lambda X, y, t: (X, changed(y, 5, np.inf), t), "y contains infinity"),
    ({}, lambda X, y, t: (X, np.column_stack([y, changed(y, 5, np.inf)])), "y contains infinity"),
    ({}, lambda X, y, t: (X, y[:-1], t), "inconsistent numbers of samples|y "),
    ({}, lambda X, y, t: (X, y, t[:-1]), "task has 47 labels, but X has 48 rows"),
    ({}, lambda X, y, t: (X, y, t, np.ones(47)), "sample_weight"),
    ({}, lambda X, y, t: (X, y, np.column_stack([t, t])), "one-dimensional"),
    ({}, lambda X, y, t: (X[:0], y[:0], t[:0]), "0 sample"),
    ({}, lambda X, y, t: (X[:, :0], y, t), "0 feature"),
    ({"task_column": 0}, lambda X, y, t: (t[:, None], y), "0 feature"),
    ({}, lambda X, y, t: (X, None), "y"),
    ({}, lambda X, y, t: (X, np.column_stack([y, np.nan * y])), r"any observed value: \[1\]"),
    ({}, lambda X, y, t: (X, y, t, changed(np.ones(48), 3, -1.0)), "negative"),
    ({}, lambda X, y, t: (X, y, t, changed(np.ones(48), 3, np.nan)), "sample_weight contains NaN"),
    ({}, lambda X, y, t: (X, y, t, changed(np.ones(48), 3, np.inf)), "sample_weight contains inf"),
    ({}, lambda X, y, t: (X, y, t, np.zeros(48)), "sample_weight is zero"),
    ({"task_column": "what"}, lambda X, y, t: (named(X, t), y), "task_column='what' is missing"),
    ({"task_column": 4}, lambda X, y, t: (named(X, t), y), "task_column=4 is missing"),
    ({"task_column": -5}, lambda X, y, t: (named(X, t), y), "task_column=-5 is missing"),
    ({"task_column": 1.5}, lambda X, y, t: (named(X, t), y), "task_column"),
    (WHO, lambda X, y, t: (named(X, t).to_numpy(), y), "no column names"),
    (WHO, lambda X, y, t: (named(X, changed(t, 0, np.nan)), y), "task column 'who'"),
    (WHO, lambda X, y, t: (named(X, changed(t, 0, 0.5)), y), "task column 'who'"),
    (WHO, lambda X, y, t: (named(X, t), y, t), "given twice"),
    (LAST, lambda X, y, t: (np.column_stack([X, changed(t, 0, np.nan)]), y), "task column 3"),
    (LAST, lambda X, y, t: (np.column_stack([X, changed(t, 0, 0.5)]), y), "task column 3"),
    ({}, lambda X, y, t: (named(X, "x"), y), "'who'.*task_column"),
]


@each_kind_and_search
@pytest.mark.parametrize(("params", "given", "match"), ROWS)
def test_rows(kind, params, given, match, no_work):
    with pytest.raises((ValueError, TypeError), match=match):
        kind(**params).fit(*given(*problem(kind)))


PARAMETERS = [
    (
        ["n_components", "n_feature_clusters", "n_task_clusters"],
        [0, -1, 2.0, 2.5, "3", None, True, np.nan],
    ),
    (
        ["alpha_feature", "alpha_task", "alpha_shared", "alpha_core", "tol", "smoothing"],
        [-1.0, np.nan, np.inf, "1", None],
    ),
    (
        ["loss", "init", "feature_penalty", "task_penalty", "unseen_task", "shared", "max_iter"],
        ["no such"],
    ),
]


BAD = [
    (kind, name, bad)
    for kind in KINDS
    for names, values in PARAMETERS
    for name in names
    for bad in values
    if name in kind().get_params()
]


@pytest.mark.parametrize(("kind", "name", "bad"), BAD)
def test_parameters(kind, name, bad, no_work):
    with pytest.raises((ValueError, TypeError), match=f"^{name} must be"):
        kind(**{name: bad}).fit(*problem(kind))


@each_kind
def test_rows_to_predict(kind):
    X, y, task = problem(kind)
    model = kind(unseen_task="raise").fit(X, y, task=task)
    for rows, labels, match in (
        (X, np.full(48, 9), r"task .*\[9\].*adapt"),
        (X, [0, 1], "task has 2 labels"),
        (X[:, :2], task, "features"),
        (changed(X, (0, 0), np.nan), task, "NaN.*fit_table"),
    ):
        with pytest.raises(ValueError, match=match):
            model.predict(rows, task=labels)
    with pytest.raises(NotFittedError):
        kind().predict(X, task=task)


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
