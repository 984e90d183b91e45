"""Regression with outliers by Huber loss."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from sklearn.linear_model import HuberRegressor

from comtl import BiFactorRegressor, BiFactorRegressorCV, TriFactorRegressor
from comtl.baselines import IndependentRegressor, MeanRegularizedRegressor
from comtl.losses import Huber
from comtl.losses.huber import weighted_median

RNG = np.random.default_rng(0)
T, N, P = 15, 450, 5
TASK = np.repeat(np.arange(T), N // T)
X = RNG.normal(size=(N, P))
W = RNG.normal(size=(T, 2)) @ RNG.normal(size=(2, P))
TRUE = (X * W[TASK]).sum(1) + TASK / 5
OUTLIER = RNG.random(N) < 0.08
Y = TRUE + 0.3 * RNG.normal(size=N) + np.where(OUTLIER, 40.0 * RNG.normal(size=N), 0.0)
numbers = arrays(float, 6, elements=st.floats(-20.0, 20.0))


@given(numbers, numbers, st.floats(-30.0, 30.0))
def test_the_parabola_of_the_curvature_lies_above_and_touches(y, score, step):
    loss = Huber()
    parabola = loss.value(y, score) + step * loss.derivative(y, score)
    parabola += 0.5 * step**2 * loss.curvature(y, score)
    assert np.all(loss.value(y, score + step) <= parabola + 1e-9 * (1.0 + parabola))


@given(numbers, numbers)
def test_value_is_squared_within_the_threshold_and_linear_beyond(y, score):
    gap = np.abs(y - score)
    expected = np.where(gap <= 1.345, gap**2, 1.345 * (2 * gap - 1.345))
    assert_allclose(Huber().value(y, score), expected, atol=1e-9)


@given(st.lists(st.tuples(st.floats(-9.0, 9.0), st.integers(1, 4)), min_size=1, max_size=9))
def test_weighted_median_is_that_of_repetitions(pairs):
    values, weights = map(np.array, zip(*pairs, strict=True))
    repeated = np.sort(np.repeat(values, weights))
    assert weighted_median(values, weights) == repeated[(len(repeated) - 1) // 2]


@pytest.mark.parametrize("model", [BiFactorRegressor, TriFactorRegressor, IndependentRegressor])
def test_outliers_do_not_decide(model):
    def error(loss):
        fit = model(loss=loss).fit(X, Y, task=TASK)
        history = fit.objective_history_
        assert np.all(np.diff(history) <= 1e-9 * history[:-1])
        return np.sqrt(np.mean((fit.predict(X, task=TASK) - TRUE) ** 2))

    assert error("huber") < 0.25 * error("squared")


@pytest.mark.parametrize("standardize", [True, False])
def test_the_solution_meets_its_optimality_condition(standardize):
    alpha = 2.0
    fit = IndependentRegressor(alpha, loss="huber", standardize=standardize, tol=1e-13)
    fit.fit(X, Y, task=TASK)
    middle = weighted_median(Y, np.ones(N))
    spread = weighted_median(np.abs(Y - middle), np.ones(N)) / 0.67449 if standardize else 1.0
    units = X.std(0) if standardize else np.ones(P)
    for task in range(T):
        rows = TASK == task
        gap = (Y[rows] - fit.predict(X[rows], task=TASK[rows])) / spread
        pull = 2.0 * np.clip(gap, -1.345, 1.345)
        assert abs(pull.sum()) < 1e-3
        weights = fit.coef_[task] * units / spread
        assert_allclose(((X[rows] - X.mean(0)) / units).T @ pull, 2 * alpha * weights, atol=1e-3)


def test_one_task_is_that_of_scikit_learn():
    rows = TASK == 0
    theirs = HuberRegressor(epsilon=1.345, alpha=1e-8, tol=1e-12, max_iter=10_000)
    theirs.fit(X[rows], Y[rows])
    # Theirs estimates the scale too: ours is given it.
    y = Y[rows] / theirs.scale_
    ours = IndependentRegressor(1e-8, loss="huber", standardize=False, tol=1e-14)
    ours.fit(X[rows], y)
    assert_allclose(ours.coef_[0] * theirs.scale_, theirs.coef_, atol=1e-4)
    assert_allclose(ours.intercept_[0] * theirs.scale_, theirs.intercept_, atol=1e-4)


def test_units_of_the_target_and_mostly_equal_values():
    fit = BiFactorRegressor(2, loss="huber", tol=1e-10).fit(X, Y, task=TASK)
    for unit in (1e-100, 1e6, 1e148):
        other = BiFactorRegressor(2, loss="huber", tol=1e-10).fit(X, Y * unit, task=TASK)
        assert_allclose(other.coef_ / unit, fit.coef_, atol=1e-6)
    flat = np.where(OUTLIER, Y, 3.0)
    still = BiFactorRegressor(2, loss="huber").fit(X, flat, task=TASK)
    assert np.abs(still.predict(X, task=TASK) - 3.0)[~OUTLIER].mean() < 1.0


def test_search_and_new_tasks():
    search = BiFactorRegressorCV(2, alphas=[0.1, 1.0, 1000.0], cv=3, loss="huber")
    search.fit(X, Y, task=TASK)
    assert search.alpha_task_ < 1000.0
    assert np.all(search.cv_results_["mean_test_score"] < 0.0)
    old = TASK < 12

    def error(loss):
        fit = BiFactorRegressor(2, loss=loss).fit(X[old], Y[old], task=TASK[old])
        grown = fit.adapt(X[~old], Y[~old], task=TASK[~old])
        return np.sqrt(np.mean((grown.predict(X, task=TASK) - TRUE)[~old] ** 2))

    assert error("huber") < 0.25 * error("squared")


def test_weights_are_repetitions():
    times = RNG.integers(0, 3, N)
    one = MeanRegularizedRegressor(loss="huber", tol=1e-12)
    one.fit(X, Y, task=TASK, sample_weight=times.astype(float))
    many = [np.repeat(part, times, axis=0) for part in (X, Y, TASK)]
    other = MeanRegularizedRegressor(loss="huber", tol=1e-12).fit(*many[:2], task=many[2])
    assert_allclose(one.coef_, other.coef_, atol=1e-5)
