"""Intervals from errors on rows that were not seen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from comtl import HierarchicalRegressor, MultitaskRegressor
from comtl.stacking.intervals import ErrorModel, common_variance, quantiles


def inside(found, spread, rng, level=0.9):
    """Share of errors to come of each task within their bounds."""
    low, high = (bound[:-1] for bound in found.bounds(level))
    errors = rng.standard_normal((2000, len(spread))) * spread
    return np.mean((errors > low) & (errors < high), axis=0)


def drawn(spread, rows, rng):
    task = np.repeat(np.arange(len(spread)), rows)
    errors = rng.standard_normal(len(task)) * spread[task]
    return ErrorModel.of(errors, np.ones(len(task)), task, len(spread), between=0.0)


def test_errors_of_tasks_with_few_rows_lean_on_all():
    rng = np.random.default_rng(0)
    task = np.repeat([0, 1, 2], [500, 500, 2])
    errors = rng.standard_normal(1002) * np.array([1.0, 3.0, 0.01])[task]
    found = ErrorModel.of(errors, np.ones(1002), task, 4, between=7.0)
    assert found.scales[0] == pytest.approx(1.0, rel=0.1)
    assert found.scales[1] == pytest.approx(3.0, rel=0.1)
    assert 0.1 < found.scales[2] < found.scales[3] < 3.0
    level = np.mean(errors**2)
    assert found.deviations[-1] == pytest.approx(np.sqrt(level + 7.0))
    low, high = (bound[task] for bound in found.bounds(0.9))
    assert 0.88 < np.mean((errors >= low) & (errors <= high)) < 0.93


@pytest.mark.parametrize("loud", [3.0, 10.0])
def test_a_quarter_of_noisy_tasks_is_covered_as_the_others_are(loud):
    rng = np.random.default_rng(0)
    spread = np.where(np.arange(400) % 4 == 0, loud, 1.0)
    found = inside(drawn(spread, 20, rng), spread, rng)
    assert 0.86 < found[spread > 1.0].mean() < 0.92
    assert 0.89 < found[spread == 1.0].mean() < 0.93


@pytest.mark.parametrize("rows", [3, 20])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.98])
def test_tasks_of_one_spread_are_covered_as_told(rows, level):
    rng = np.random.default_rng(rows)
    found = inside(drawn(np.ones(100), rows, rng), np.ones(100), rng, level)
    assert found.mean() == pytest.approx(level, abs=0.03)
    assert found.min() > level - 0.2


def test_large_tasks_are_not_widened_for_the_sake_of_small_ones():
    rng = np.random.default_rng(0)
    spread, rows = np.exp(rng.standard_normal(120)), np.tile([2, 60], 60)
    found = inside(drawn(spread, rows, rng), spread, rng)
    assert found[rows == 60].mean() == pytest.approx(0.9, abs=0.02)
    assert found[rows == 2].mean() == pytest.approx(0.9, abs=0.06)


def test_levels_beyond_the_errors_go_on_as_a_normal_law():
    rng = np.random.default_rng(0)
    found = drawn(np.ones(1), 200, rng)
    width = [np.diff(np.array(found.bounds(level))[:, 0])[0] for level in (0.99, 0.999, 0.9999)]
    assert np.all(np.diff(width) > 0.3)
    assert width[2] == pytest.approx(2 * norm.ppf(0.99995), rel=0.3)


def outliers(rng, sizes, share, where):
    """Normal errors, a share of those of some tasks thirty times as large."""
    task = np.repeat(np.arange(len(sizes)), sizes)
    errors = rng.standard_normal(len(task))
    wild = np.isin(task, where) & (rng.random(len(task)) < share)
    errors[wild] *= 30.0
    return ErrorModel.of(errors, np.ones(len(task)), task, len(sizes), between=0.0)


def test_outliers_of_some_tasks_leave_the_others_as_they_are():
    shares = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        found = outliers(rng, [400, 400] + [8] * 10, 0.02, [0, 1])
        shares.append(inside(found, np.ones(12), rng)[2:].mean())
    assert 0.86 < np.mean(shares) < 0.94


@pytest.mark.parametrize("level", [0.9, 0.98, 0.999])
def test_outliers_do_not_run_away_in_small_tasks(level):
    sizes = [400, 400] + [8] * 10
    found = outliers(np.random.default_rng(1), sizes, 0.01, np.arange(12))
    low, high = found.bounds(level)
    assert np.all(high - low < (8.0 if level < 0.95 else 200.0))


def test_the_common_variance_does_not_depend_on_the_unit():
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 30, 40)
    squares = rng.chisquare(counts) * np.exp(rng.standard_normal(40))
    one, other = common_variance(squares, counts), common_variance(1e-4 * squares, counts)
    np.testing.assert_allclose([1e-4 * one[0], one[1]], other, rtol=1e-3)


def table(rng, spread, rows):
    task = np.repeat(np.arange(len(spread)), rows)
    X = rng.standard_normal((len(task), 3))
    slopes = 1.0 + 0.3 * np.random.default_rng(7).standard_normal((len(spread), 3))
    y = np.einsum("np,np->n", X, slopes[task]) + spread[task] * rng.standard_normal(len(task))
    return X, y, task


def test_the_stack_tells_noisy_tasks_from_quiet_ones():
    rng = np.random.default_rng(0)
    spread = np.where(np.arange(40) % 4 == 0, 10.0**0.5, 1.0)
    X, y, task = table(rng, spread, 25)
    model = MultitaskRegressor(cv=3).fit(X, y, task=task)
    X, y, task = table(rng, spread, 200)
    low, high = model.predict_interval(X, 0.9, task=task)
    held = (low < y) & (y < high)
    assert 0.84 < held[spread[task] > 1.0].mean() < 0.94
    assert 0.87 < held[spread[task] == 1.0].mean() < 0.95


def test_weights_that_sum_to_one_leave_intervals_as_they_are():
    X, y, task = table(np.random.default_rng(0), np.ones(10), 12)
    plain = MultitaskRegressor(cv=3).fit(X, y, task=task)
    shares = MultitaskRegressor(cv=3).fit(X, y, task=task, sample_weight=np.full(120, 1 / 120))
    widths = [np.diff(one.predict_interval(X, 0.9, task=task), axis=0) for one in (plain, shares)]
    assert widths[1].mean() == pytest.approx(widths[0].mean(), rel=0.1)


def test_a_task_never_seen_has_the_noise_of_others_on_average():
    rng = np.random.default_rng(1)
    spread = np.where(np.arange(40) % 4 == 0, 5.0, 0.5)
    X, y, task = table(rng, spread, 30)
    model = HierarchicalRegressor("isotropic", noise="task").fit(X, y, task=task)
    _, deviation = model.predict(X[:5], task=np.full(5, 99), return_std=True)
    assert np.all(deviation > np.sqrt(np.mean(spread**2)) * 0.8)


@pytest.mark.parametrize(
    "errors, weights, task, width",
    [
        ([0.5], [1.0], [0], 0.5),
        ([1.0, -2.0, 0.5, 3.0, -1.0, 0.2], np.repeat([1e9, 1e-9], 3), np.repeat([0, 1], 3), 0.0),
    ],
    ids=["a single error", "light tasks beside heavy ones"],
)
def test_odd_tasks_have_bounds(errors, weights, task, width):
    told = (np.array(part) for part in (errors, weights, task))
    low, high = ErrorModel.of(*told, 2, between=0.0).bounds(0.9)
    assert np.all(np.isfinite(low)) and np.all(high - low > width)


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.integers(1, 5)), min_size=1, max_size=30),
    st.floats(0, 1),
)
def test_quantiles_take_a_weight_for_as_many_rows(rows, share):
    values, weights = (np.array(column) for column in zip(*rows, strict=True))
    found = quantiles(values, weights.astype(float), np.array(share))
    assert found == pytest.approx(np.quantile(np.repeat(values, weights), share), abs=1e-9)
