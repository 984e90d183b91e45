"""Penalties: value, gradient, curvature, proximal step, smoothing."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from comtl import BiFactorRegressor
from comtl.penalties import (
    L1,
    PENALTIES,
    ElasticNet,
    Free,
    NonNegative,
    Ridge,
    Simplex,
    core_penalties,
    factor_penalties,
    penalty_of,
)
from comtl.penalties.learned_relation import AcrossColumns, LearnedRelation, RidgedRelation
from comtl.penalties.relations import Relation
from helpers import numeric_gradient

SHAPES = [(6, 2), (4, 4), (2, 5), (1, 3)]
points = arrays(
    float, st.tuples(st.integers(1, 4), st.integers(1, 5)), elements=st.floats(-5.0, 5.0, width=32)
)
strengths = st.floats(0.0, 3.0)
steps = st.floats(0.01, 2.0)


def random_factor(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def fit_members(factor, relative_epsilon=0.05, strength=0.7):
    return LearnedRelation(strength).initialised(factor, relative_epsilon)


def smooth_penalties(shape):
    # The relation belongs to another factor, so that gradient and curvature are put to the test.
    other = random_factor(shape, seed=1)
    ridged = RidgedRelation(0.7, ridge=0.4).initialised(other, 0.05)
    return [Ridge(0.7), Free(), fit_members(other), ridged]


# ---- smooth parts -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_gradient_by_differences(shape):
    factor = random_factor(shape)
    for penalty in smooth_penalties(shape):
        expected = numeric_gradient(penalty.value, factor)
        assert_allclose(penalty.gradient(factor), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_curvature_is_the_hessian(shape):
    factor = random_factor(shape)
    for penalty in smooth_penalties(shape):
        alpha, low = penalty.curvature(factor)
        along = alpha * np.eye(shape[0]) - low @ low.T
        # The gradient is linear: its matrix, column by column, on one column of the factor.
        hessian = np.zeros((shape[0], shape[0]))
        for i in range(shape[0]):
            step = np.zeros(shape)
            step[i, -1] = 1.0
            move = penalty.gradient(factor + step) - penalty.gradient(factor)
            hessian[:, i] = move[:, -1]
            assert_allclose(move[:, :-1], 0.0, atol=1e-9)
        assert_allclose(along, hessian, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("penalty", [L1(0.3), Simplex(), NonNegative(0.3), ElasticNet(0.3)])
def test_what_is_not_smooth_keeps_value_and_smooth_part_apart(penalty):
    factor = np.abs(random_factor((3, 2)))
    alpha, low = penalty.curvature(factor)
    assert low.shape == (3, 0)
    assert_allclose(penalty.gradient(factor), alpha * factor)
    assert alpha == {NonNegative: 0.6, ElasticNet: 0.3}.get(type(penalty), 0.0)
    smooth = 0.5 * alpha * np.sum(factor**2)
    assert_allclose(penalty.value(factor), smooth + penalty.proximal_value(factor))


def test_values():
    factor = np.array([[1.0, -2.0], [0.0, 3.0]])
    assert Ridge(0.5).value(factor) == 7.0
    assert NonNegative(0.5).value(np.abs(factor)) == 7.0
    assert L1(0.5).value(factor) == 3.0
    assert ElasticNet(0.5).value(factor) == 5.0
    assert Free().value(factor) == Simplex().value(factor) == 0.0


# ---- the learned relation -----------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("relative_epsilon", [1e-8, 0.05, 2.0])
def test_value_at_the_best_relation_is_a_smoothed_squared_nuclear_norm(shape, relative_epsilon):
    factor = random_factor(shape)
    penalty = fit_members(factor, relative_epsilon)
    roots = np.sqrt(np.linalg.svd(factor)[1] ** 2 + penalty.epsilon)
    rest = (shape[0] - len(roots)) * penalty.epsilon**0.5
    assert_allclose(penalty.value(factor), 0.7 * (roots.sum() + rest) ** 2, rtol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_value_is_the_trace_formula_for_any_relation(shape):
    factor, penalty = random_factor(shape), fit_members(random_factor(shape, seed=1))
    inverse = np.linalg.inv(penalty.relation.toarray())
    expected = np.trace(factor.T @ inverse @ factor) + penalty.epsilon * np.trace(inverse)
    assert_allclose(penalty.value(factor), 0.7 * expected, rtol=1e-9)


@given(points, st.integers(0, 100), st.floats(1e-6, 2.0))
def test_refreshing_never_raises_the_value(factor, seed, relative_epsilon):
    penalty = fit_members(random_factor(factor.shape, seed), relative_epsilon)
    fresh = penalty.updated(factor)
    assert_allclose(fresh.relation @ factor, Relation.of_factor(factor, fresh.epsilon) @ factor)
    assert fresh.value(factor) <= penalty.value(factor) * (1 + 1e-12)
    assert fresh.epsilon == penalty.epsilon


@given(points, st.floats(1e-3, 1.0), st.floats(1e-8, 10.0), st.floats(1e-8, 1.0))
def test_annealing_only_lowers_smoothing_and_value(factor, shrink, floor, start):
    penalty = fit_members(factor, start)
    for _ in range(4):
        lower = penalty.annealed(factor, shrink, floor)
        assert lower.epsilon <= penalty.epsilon
        assert lower.value(factor) <= penalty.value(factor) * (1 + 1e-12)
        penalty = lower


def test_annealing_comes_to_rest_at_the_relative_floor_and_stays():
    factor = random_factor((6, 3))
    penalty = fit_members(factor, 1.0)
    assert not penalty.is_annealed
    for _ in range(10):
        penalty = penalty.annealed(factor, 0.1, 1e-3)
    largest = np.linalg.svd(factor)[1][0] ** 2
    assert penalty.is_annealed
    assert_allclose(penalty.epsilon, 1e-3 * largest, rtol=1e-6)
    assert penalty.annealed(0.01 * factor, 0.1, 1e-3).epsilon == penalty.epsilon


@pytest.mark.parametrize("shape", SHAPES)
def test_pull_is_the_rate_of_scaling(shape):
    factor, h = random_factor(shape), 1e-6
    entrywise = [kind(0.7) for kind in (Ridge, L1, ElasticNet, NonNegative)]
    for penalty in [*entrywise, fit_members(random_factor(shape, 1))]:
        rate = (penalty.value((1 + h) * factor) - penalty.value((1 - h) * factor)) / (2 * h)
        assert_allclose(penalty.scale_derivative(factor), rate, rtol=1e-6)


# ---- a relation beside a ridge ------------------------------------------------------------------


def test_a_relation_of_columns_has_its_derivatives():
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((6, 3))
    penalty = AcrossColumns.of(RidgedRelation(0.7, ridge=0.4)).initialised(factor, 0.1)
    there = factor + 0.1 * rng.standard_normal(factor.shape)
    assert_allclose(penalty.gradient(there), numeric_gradient(penalty.value, there), atol=1e-6)
    turn, step = penalty.rotation(factor), rng.standard_normal(factor.shape)
    change = penalty.gradient(factor + step @ turn.T) - penalty.gradient(factor)
    assert_allclose(change @ turn, step, atol=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 5), st.floats(1e-12, 1.0))
def test_both_sides_have_one_value_but_for_the_smoothing(seed, rows, columns, epsilon):
    """At their best either is the squared sum of roots, the longer side with more of them."""
    factor = np.random.default_rng(seed).standard_normal((rows, columns))
    squares = np.linalg.svd(factor, compute_uv=False) ** 2
    roots = np.sqrt(squares + epsilon * squares[0])
    for penalty, size in (
        (RidgedRelation(0.7, ridge=0.4), rows),
        (AcrossColumns.of(RidgedRelation(0.7, ridge=0.4)), columns),
    ):
        more = (size - len(roots)) * (epsilon * squares[0]) ** 0.5
        expected = 0.7 * (roots.sum() + more) ** 2 + 0.4 * squares.sum()
        assert_allclose(penalty.initialised(factor, epsilon).value(factor), expected, rtol=1e-7)


@pytest.mark.parametrize("across", [False, True])
def test_a_new_row_costs_what_the_whitener_says(across):
    """To second order in a small row, with the relation at its best for both."""
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((6, 3))
    plain = RidgedRelation(0.7, ridge=0.4)
    penalty = (AcrossColumns.of(plain) if across else plain).initialised(factor, 1e-10)
    row = 1e-4 * rng.standard_normal(3)
    longer = np.vstack([factor, row])
    outside = np.vstack([factor, np.zeros(3)])
    rise = penalty.updated(longer).value(longer) - penalty.updated(outside).value(outside)
    cost = np.sum(np.linalg.solve(penalty.whitening(factor), row) ** 2)
    assert_allclose(cost, rise, rtol=1e-2)


# ---- proximal steps -----------------------------------------------------------------------------


@pytest.mark.parametrize(("penalty", "share"), [(L1, 1.0), (ElasticNet, 0.5)])
@given(point=points, strength=strengths, step=steps)
def test_prox_of_l1_meets_its_optimality_condition(penalty, share, point, strength, step):
    found = penalty(strength).prox(point, step)
    # (point - found) / step is a subgradient of the strength of the L1 part times |found|.
    push = point - found
    bound = step * strength * share
    assert np.all(np.abs(push) <= bound + 1e-9)
    assert_allclose(push[found != 0], bound * np.sign(found[found != 0]), atol=1e-9)


@given(points, strengths, steps)
def test_prox_of_nonnegative_is_the_projection(point, strength, step):
    found = NonNegative(strength).prox(point, step)
    assert np.all(found >= 0)
    assert np.all(found - point >= 0)
    assert_allclose(found * (found - point), 0.0, atol=1e-12)


def nearest_share(row):
    """Projection of one row onto the simplex by trying every support."""
    best, distance = None, np.inf
    for count in range(1, len(row) + 1):
        for support in map(list, combinations(range(len(row)), count)):
            candidate = np.zeros_like(row)
            candidate[support] = row[support] + (1.0 - row[support].sum()) / count
            gap = np.sum((candidate - row) ** 2)
            if np.all(candidate >= -1e-12) and gap < distance:
                best, distance = candidate, gap
    return best


@given(points, steps)
def test_prox_of_simplex_is_the_projection_of_each_row(point, step):
    found = Simplex().prox(point, step)
    assert np.all(found >= 0)
    assert_allclose(found.sum(1), 1.0, atol=1e-12)
    assert_allclose(found, np.stack([nearest_share(row) for row in point]), atol=1e-9)


def test_prox_of_simplex_is_feasible_for_rows_of_any_size():
    point = np.array([[1e17, 3.0], [-1e300, 1e300], [-1e20, -1e20]])
    assert_allclose(Simplex().prox(point, 1.0), [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])


def test_prox_of_smooth_penalties_moves_nothing():
    factor = random_factor((3, 2))
    for penalty in smooth_penalties((3, 2)):
        assert penalty.smooth
        assert penalty.prox(factor, 1.0) is factor


@pytest.mark.parametrize("size", [0.0, 1e-170, 1e-100])
def test_a_factor_shrunk_to_nothing_keeps_its_smoothing(size):
    factor = size * np.ones((4, 2))
    penalty = LearnedRelation(1.0).initialised(factor, 10.0)
    for _ in range(50):
        penalty = penalty.annealed(factor, 0.3, 1e-8)
    assert penalty.epsilon > 0.0
    assert np.isfinite(penalty.value(factor)) and np.isfinite(penalty.curvature(factor)[0])


# ---- public names -------------------------------------------------------------------------------


def test_every_penalty_has_a_public_name_and_says_what_it_is():
    assert all(one.text for one in PENALTIES.values())
    for name in factor_penalties(core=True):
        penalty = penalty_of(name, 0.0)
        factor = penalty.prox(np.abs(random_factor((4, 2))), 1e-6)
        started = penalty.initialised(factor, 0.1)
        assert np.isfinite(started.value(factor))
        assert 0.0 < penalty.strength < 1e-6 or started.value(factor) == 0.0


def test_a_core_takes_what_acts_entry_by_entry():
    assert core_penalties() == ("ridge", "l1", "elastic_net", "nonnegative", None)
    assert set(factor_penalties(core=True)) - set(factor_penalties(core=False)) == {"clusters"}


@pytest.mark.parametrize("side", ["feature_penalty", "task_penalty"])
def test_a_fit_by_elastic_net_meets_its_optimality_condition(side):
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(8), 15)
    X = rng.normal(size=(120, 6))
    true = np.outer(rng.normal(size=8), rng.normal(size=6) * (np.arange(6) < 3))
    y = (X * true[task]).sum(1) + 0.3 * rng.normal(size=120)
    options = {"standardize": False, "fit_intercept": False, "tol": 1e-13, "max_iter": 3000}
    other = {"feature_penalty": "ridge", "task_penalty": "ridge", side: "elastic_net"}
    fit = BiFactorRegressor(1, alpha_feature=4.0, alpha_task=4.0, **other, **options)
    fit.fit(X, y, task=task)
    assert np.all(np.diff(fit.objective_history_) <= 1e-9 * fit.objective_history_[:-1])
    point = fit._state.factors
    by_task = np.stack(
        [-2.0 * ((y - (X * fit.coef_[task]).sum(1)) * (task == t)) @ X for t in range(8)]
    )
    if side == "feature_penalty":
        factor, slope = point.F[:, 0], by_task.T @ point.G[:, 0]
    else:
        factor, slope = point.G[:, 0], by_task @ point.F[:, 0]
    # Half of the strength is that of L1, half that of the squares.
    used = factor != 0.0
    assert_allclose(-slope[used], 4.0 * factor[used] + 2.0 * np.sign(factor[used]), atol=2e-3)
    assert np.all(np.abs(slope[~used]) <= 2.0 + 1e-6)
    assert used.any() and (side == "task_penalty" or not used.all())
