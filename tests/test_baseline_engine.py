"""What the baselines added to the engine: arrows of blocks, the whole step, merged tasks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from comtl.baselines.direct import direct_recipe
from comtl.engine.alternation import alternate
from comtl.engine.recipe import Recipe, Schedule
from comtl.engine.starts import start_state
from comtl.engine.task_steps import deviation_step, direct_step
from comtl.losses import Logistic, Squared
from comtl.penalties import Ridge
from comtl.solvers.small_blocks import solve_arrow
from helpers import numeric_gradient, problem, random_definite, random_factors, run

# ---- arrows -------------------------------------------------------------------------------------


@given(
    st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 4), st.integers(0, 1), st.booleans()
)
def test_arrow_is_the_dense_system(seed, tasks, own, more, flat):
    rng = np.random.default_rng(seed)
    common = own + more
    blocks = np.stack([random_definite(rng, common) for _ in range(tasks)])
    if flat:  # Rank one, as for tasks of one row: the ridges make it regular.
        rows = rng.standard_normal((tasks, common))
        blocks = rows[:, :, None] * rows[:, None, :]
    ridge, base = rng.uniform(0.1, 2.0, own), rng.uniform(0.1, 2.0, common)
    right, shared = rng.standard_normal((tasks, own)), rng.standard_normal(common)
    size = tasks * own + common
    dense, vector = np.zeros((size, size)), np.concatenate([right.ravel(), shared])
    for t in range(tasks):
        # The weights of a task are its own unknowns, padded, plus the common ones.
        lift = np.zeros((common, size))
        lift[:own, t * own : (t + 1) * own] = np.eye(own)
        lift[:, -common:] += np.eye(common)
        dense += lift.T @ blocks[t] @ lift
    dense += np.diag(np.concatenate([np.tile(ridge, tasks), base]))
    expected = np.linalg.solve(dense, vector)
    found = solve_arrow(blocks, ridge, base, right, shared)
    assert found.solver == "arrow"
    assert_allclose(found.value[:-1, :own].ravel(), expected[: tasks * own], atol=1e-8)
    assert_allclose(found.value[-1], expected[-common:], atol=1e-8)
    assert not found.value[:-1, own:].any()


@pytest.mark.parametrize("ridge", [1e-10, 1e10])
def test_the_arrow_keeps_its_digits_far_from_the_size_of_the_blocks(ridge):
    rng = np.random.default_rng(0)
    blocks = np.stack([random_definite(rng, 3) for _ in range(4)])
    right, none = rng.standard_normal((4, 3)), np.zeros(3)
    # All tasks pull alike in what they share: its right side is the sum of theirs.
    found = solve_arrow(blocks, np.full(3, ridge), none, right, right.sum(axis=0)).value
    own, shared = found[:-1], found[-1]
    if ridge > 1.0:  # One model for all.
        assert_allclose(shared, np.linalg.solve(blocks.sum(axis=0), right.sum(axis=0)), rtol=1e-7)
        assert np.abs(own).max() < 1e-8
    else:  # A model each, around their mean.
        assert_allclose(own + shared, np.linalg.solve(blocks, right[..., None])[..., 0], rtol=1e-7)
        assert_allclose(own.sum(axis=0), 0.0, atol=1e-6)


# ---- the whole step -----------------------------------------------------------------------------


@pytest.mark.parametrize("gram", [False, True])
def test_one_sweep_solves_a_squared_loss(gram):
    data = problem(0, 4, 5, 9)
    fit = data.gram() if gram else data.rows()
    recipe = direct_recipe((4, 5), Ridge(0.8), shared=0.3, intercept_penalty=0.7)
    start, *_, step = run(fit, recipe, Schedule(tol=0.0))
    assert step.sweep == 1 and step.converged
    *_, again = alternate(fit, step.state, Schedule())
    assert_allclose(again.objective, step.objective, rtol=1e-12)
    assert_allclose(again.state.factors.coef, step.state.factors.coef, atol=1e-10)
    # With a pooling that is still to be learned, or odds, a sweep is not the end.
    *_, step = alternate(fit, start.state.with_(estimates_pooling=True), Schedule())
    assert step.sweep > 1
    odds = problem(0, 4, 5, 9, labels=True).rows(Logistic())
    assert run(odds, recipe, Schedule())[-1].sweep > 1


@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize("intercept_penalty", [np.inf, 0.7])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_whole_step_ends_where_the_slope_is_zero(intercept, intercept_penalty, gram):
    data = problem(0, 4, 5, 9)
    fit = data.gram() if gram else data.rows()
    parts = {"shared": 0.3, "intercept": intercept, "intercept_penalty": intercept_penalty}
    recipe = direct_recipe((4, 5), Ridge(0.8), **parts)
    state = start_state(fit, recipe, Schedule(), like=data.y)
    point, _ = direct_step(fit.quadratic_at(state.factors).task_quadratic(state.factors.F), state)
    parts = ["G", "shared"] + ["random_intercepts"] * (intercept and intercept_penalty < np.inf)
    for name in parts:

        def objective(value, name=name):
            there = state.at(point.with_(**{name: value}))
            return fit.quadratic_at(there.factors).value + there.regularizer

        assert_allclose(numeric_gradient(objective, getattr(point, name)), 0.0, atol=1e-5)
    if intercept:
        slope = numeric_gradient(
            lambda b: fit.quadratic_at(point.with_(offset=float(b[0]))).value,
            np.array([point.offset]),
        )
        assert_allclose(slope, 0.0, atol=1e-5)
    else:
        assert point.offset == 0.0


@pytest.mark.parametrize("loss", [Squared(), Logistic()])
def test_the_deviation_step_keeps_the_offset(loss):
    data = problem(1, 4, 5, 9, labels=not loss.quadratic)
    fit = data.rows(loss)
    recipe = Recipe({"F": 1.0, "G": 1.0}, (2, 2), intercept_penalty=0.5)
    state = start_state(fit, recipe, Schedule(), like=data.y)
    for _ in range(1 if loss.quadratic else 30):
        at = fit.quadratic_at(state.factors)
        moved = deviation_step(at.gradient(state.factors.G[:, :0])[1], at.curvature_sums, state)
        assert moved.offset == state.factors.offset
        state = state.at(moved)

    def objective(value):
        there = state.at(state.factors.with_(random_intercepts=value))
        return fit.quadratic_at(there.factors).value + there.regularizer

    assert_allclose(numeric_gradient(objective, state.factors.random_intercepts), 0.0, atol=1e-5)


# ---- tasks taken together -----------------------------------------------------------------------

LABELS = [np.array([0, 1, 0, 1, 1]), np.array([0, 0, 1, 2, 2]), np.array([2, 1, 0, 1, 2])]


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("packed", [False, True])
def test_merged_tasks_have_the_rows_of_all(labels, packed):
    data, count = problem(2, 4, 5, 6), int(labels.max()) + 1
    factors = random_factors(0, 4, count, 2)
    X = data.design.dense_rows(0, len(data.y))
    own = labels[data.codes]
    score = np.sum(X * factors.coef.T[own], axis=1) + factors.intercepts[own]
    expected = np.sum(data.weights * (score - data.y) ** 2)
    for fit in (data.rows(packed=packed), data.gram()):
        merged = fit.with_tasks_pooled(labels, count)
        assert merged.n_tasks == count
        assert merged.n_weighted == pytest.approx(fit.n_weighted)
        at = merged.quadratic_at(factors)
        assert_allclose(at.value, expected)
        by_hand = np.zeros((count, 4))
        np.add.at(by_hand, own, 2.0 * (data.weights * (score - data.y))[:, None] * X)
        assert_allclose(at.task_gradient(np.eye(4)), by_hand, atol=1e-9)


def test_merged_tables():
    """All tasks on the same rows: one Gram stands for all, and counts as often as tasks do."""
    rng = np.random.default_rng(0)
    data = problem(2, 3, 1, 12, even=True)
    Y = rng.standard_normal((len(data.y), 4))
    fit = type(data.gram()).of_table(data.design, Y, data.weights)
    labels, factors = np.array([0, 1, 1, 1]), random_factors(0, 3, 2, 2)
    X = data.design.dense_rows(0, len(data.y))
    scores = X @ factors.coef + factors.intercepts
    expected = np.sum((Y - scores[:, labels]) ** 2)
    assert_allclose(fit.with_tasks_pooled(labels, 2).quadratic_at(factors).value, expected)
    by_hand = [[np.sum((Y[:, t] - scores[:, k]) ** 2) for k in range(2)] for t in range(4)]
    assert_allclose(fit.losses(factors.coef.T, factors.intercepts), by_hand)


@pytest.mark.parametrize("loss", [Squared(), Logistic()])
def test_losses_of_each_task_under_each_model(loss):
    data = problem(3, 4, 5, 6, labels=not loss.quadratic)
    rng = np.random.default_rng(0)
    weights, intercepts = rng.standard_normal((3, 4)), rng.standard_normal(3)
    X = data.design.dense_rows(0, len(data.y))
    value = loss.value(data.y[:, None], X @ weights.T + intercepts) * data.weights[:, None]
    expected = np.stack([value[data.codes == t].sum(axis=0) for t in range(5)])
    fits = [data.rows(loss), data.rows(loss, packed=True)]
    for fit in fits + ([data.gram()] if loss.quadratic else []):
        assert_allclose(fit.losses(weights, intercepts), expected, rtol=1e-9)
