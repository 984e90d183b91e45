"""Targets that are all alike, weights of any size, rows without a target, folds that cannot be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold

from comtl import (
    BiFactorRegressor,
    HierarchicalClassifier,
    HierarchicalRegressor,
    MultitaskClassifier,
    MultitaskRegressor,
)
from comtl.hierarchical.covariances import COVARIANCE_FAMILIES
from comtl.rows.reading import MOST_WEIGHT


def rows(count=120, features=3, tasks=6, seed=0):
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(count, features)), np.arange(count) % tasks
    weights = rng.normal(size=features) + 0.5 * rng.normal(size=(tasks, features))
    y = (X * weights[task]).sum(axis=1) + rng.normal(size=tasks)[task]
    return X, y + 0.5 * rng.normal(size=count), task


@pytest.mark.parametrize("size", [(30, 25), (60, 80), (120, 3)])
@pytest.mark.parametrize("value", [0.0, 3.0, 1e9])
def test_targets_that_are_all_alike(size, value):
    X, _, task = rows(*size)
    y = np.full(len(X), value)
    models = [HierarchicalRegressor(structure) for structure in COVARIANCE_FAMILIES]
    models += [HierarchicalRegressor(noise="task"), MultitaskRegressor()]
    for model in models:
        model.fit(X, y, task=task)
        assert_allclose(model.predict(X, task=task), y, atol=1e-6, rtol=1e-6)
        low, high = model.predict_interval(X, task=task)
        assert np.all(low <= high) and np.all(high - low < 1e-3 * max(value, 1.0))


@pytest.mark.parametrize("seed", range(3))
def test_one_target_that_is_not_like_the_others(seed):
    # The folds without it have nothing to learn.
    X, _, task = rows(30, 25, seed=seed)
    y = np.zeros(30)
    y[4] = 1.0
    model = MultitaskRegressor().fit(X, y, task=task)
    assert np.abs(model.predict(X, task=task)).max() < 2.0


@pytest.mark.parametrize(
    "kind",
    [HierarchicalRegressor, HierarchicalClassifier, MultitaskRegressor, MultitaskClassifier],
)
def test_weights_count_rows_and_there_are_not_so_many(kind):
    X, y, task = rows()
    target = y > 0 if "Classifier" in kind.__name__ else y
    weights = np.ones(len(y))
    weights[5] = 2 * MOST_WEIGHT
    with pytest.raises(ValueError, match=r"sample_weight goes up to 2e\+09.*by their mean"):
        kind().fit(X, target, task=task, sample_weight=weights)
    heavy = kind().fit(X, target, task=task, sample_weight=np.full(len(y), MOST_WEIGHT))
    assert heavy.score(X, target, task=task) > 0.9


def test_rows_without_any_target_are_no_rows():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(25, 2))
        Y = X @ rng.normal(size=(2, 2)) + 0.1 * rng.normal(size=(25, 2))
        known = np.sort(rng.permutation(25)[:8])
        sparse = np.full_like(Y, np.nan)
        sparse[known] = Y[known]
        # Weights of cells that have no target do not count either.
        weights = np.ones_like(Y)
        weights[known[0], 0], sparse[known[0], 1] = 0.0, np.nan
        found = MultitaskRegressor().fit(X, sparse, sample_weight=weights)
        rest = known[1:]
        assert_allclose(found.coef_, MultitaskRegressor().fit(X[rest], Y[rest]).coef_, rtol=1e-6)


def repeated(count, weights, folds):
    """Row numbers with each row as often as its weight, and the same folds of them."""
    numbers = np.repeat(np.arange(count), weights)
    places = [np.flatnonzero(numbers == row) for row in range(count)]
    return numbers, [
        tuple(np.concatenate([places[row] for row in part]) for part in split) for split in folds
    ]


def test_intervals_and_cuts_take_a_weight_for_as_many_rows():
    X, y, task = rows()
    rng = np.random.default_rng(5)
    weights = np.where(rng.random(120) < 0.1, 30, 1)
    y = y + np.where(weights == 30, 0, 3) * rng.normal(size=120)
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    numbers, same = repeated(120, weights, folds)
    few = MultitaskRegressor(cv=folds).fit(X, y, task=task, sample_weight=weights)
    many = MultitaskRegressor(cv=same).fit(X[numbers], y[numbers], task=task[numbers])
    for level in (0.5, 0.9, 0.99):
        bounds = [np.array(one.predict_interval(X, level, task=task)) for one in (few, many)]
        assert_allclose(*bounds, rtol=1e-5, atol=1e-5)
    stds = [one.predict(X, task=task, return_std=True)[1] for one in (few, many)]
    assert_allclose(*stds, rtol=1e-6)
    for metric in ("f1", "macro_f1"):
        few = MultitaskClassifier(threshold=metric, cv=folds)
        few.fit(X, y > 1, task=task, sample_weight=weights)
        many = MultitaskClassifier(threshold=metric, cv=same)
        many.fit(X[numbers], y[numbers] > 1, task=task[numbers])
        assert_allclose(few.thresholds_, many.thresholds_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("cv", "said"),
    [
        ([], "cv has no folds. A generator of splits serves one fit only"),
        ([(np.arange(100), np.arange(100, 130))], "cv names row 129, but X has 120 rows"),
        ([(np.arange(-121, 0), np.arange(5))], "cv names row -121, but X has 120 rows"),
        (1, "cv must be at least 2"),
        (True, "cv must be an integer, got True"),
    ],
)
def test_folds_that_cannot_be_are_refused(cv, said):
    X, y, task = rows()
    with pytest.raises((ValueError, TypeError), match=said):
        MultitaskRegressor(cv=cv).fit(X, y, task=task)


def test_advice_for_unseen_tasks_can_be_followed():
    X, y, task = rows()
    stack = MultitaskRegressor(unseen_task="raise").fit(X, y, task=task)
    with pytest.raises(ValueError, match=r"never saw: \[50.*with adapt\(\), or set.*KFold"):
        stack.predict(X, task=task + 50)
    factors = BiFactorRegressor(2, unseen_task="raise", random_state=0).fit(X, y, task=task)
    with pytest.raises(ValueError, match=r"with adapt\(\), or set"):
        factors.predict(X, task=task + 50)
