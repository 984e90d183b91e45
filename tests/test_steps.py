"""The steps for F, G, S and the intercepts against explicit normal equations."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import block_diag
from scipy.optimize import nnls

from comtl.datafits.gram_datafit import GramDatafit
from comtl.engine import feature_step as feature_steps
from comtl.engine import task_steps
from comtl.engine.feature_step import FeatureSystem, feature_step, shared_step
from comtl.engine.recipe import InnerTolerance
from comtl.engine.task_steps import core_step, intercept_pooling, intercept_step, task_step
from comtl.factors import State
from comtl.losses import Logistic
from comtl.penalties import L1, Free, NonNegative, Ridge
from comtl.penalties.learned_relation import AcrossColumns, LearnedRelation
from comtl.rows.design import Design
from comtl.solvers.conjugate_gradient import conjugate_gradient
from helpers import Problem, problem, random_factors

EXACT = {"rtol": 1e-8, "atol": 1e-8}
TIGHT = InnerTolerance(1e-12, 5_000)
POOLINGS = [None, np.inf, 1.7]
P, K1, K2 = 6, 3, 2


def make_state(data, *, T=5, shared=None, intercept_penalty=None, core=False, K=K1, penalties=None):
    """A state at random factors; ``intercept_penalty`` None means no intercept at all."""
    point = random_factors(3, P, T, K, K2 if core else K, core=core)
    if shared is None:
        point = point.with_(shared=0.0 * point.shared)
    if intercept_penalty is None or intercept_penalty == np.inf:
        point = point.with_(random_intercepts=0.0 * point.random_intercepts)
    if intercept_penalty is None:
        point = point.with_(offset=0.0)
    default = {
        "F": LearnedRelation(0.3).initialised(random_factors(4, P, T, K).F, 0.1),
        "G": LearnedRelation(0.5).initialised(random_factors(4, P, T, point.G.shape[1]).G, 0.1),
    }
    if core:
        default["S"] = Ridge(0.8)
    default |= penalties or {}
    return State(
        point,
        default,
        shared=shared,
        intercept=intercept_penalty is not None,
        intercept_penalty=np.inf if intercept_penalty is None else intercept_penalty,
    )


def across_columns(strength, factor):
    """The relation of a factor's columns."""
    return AcrossColumns.of(LearnedRelation(strength)).initialised(factor, 0.1)


def cell_derivatives(data, state, loss):
    """Rows as they count, and weighted first and second derivative of the loss at each."""
    point = state.factors
    X = data.design.dense_rows(0, len(data.y))
    score = np.sum(X * point.coef.T[data.codes], axis=1) + point.intercepts[data.codes]
    parts = loss.derivative(data.y, score), loss.curvature(data.y, score)
    return X, *(data.weights * part for part in parts)


def tail(data, state):
    """Columns of the intercepts' unknowns, and their penalty."""
    member = np.eye(state.factors.G.shape[0])[data.codes]
    columns, penalty = np.zeros((len(data.y), 0)), np.zeros(0)
    if state.has_random_intercepts:
        columns, penalty = member, np.full(member.shape[1], 2.0 * state.intercept_penalty)
    if state.intercept:
        columns, penalty = np.c_[columns, np.ones(len(data.y))], np.r_[penalty, 0.0]
    return columns, np.diag(penalty)


def dense_penalty(penalty, factor, width):
    """Hessian on the flat (row-major) factor, by the inverse of the dense relation."""
    if isinstance(penalty, Ridge):
        return 2.0 * penalty.strength * np.eye(factor.size)
    relation = getattr(penalty, "between", penalty).relation
    inverse = 2.0 * penalty.strength * np.linalg.inv(relation.toarray())
    if isinstance(penalty, AcrossColumns):
        return np.kron(np.eye(len(factor)), inverse)
    return np.kron(inverse, np.eye(width))


def explicit_features(data, state, loss, factor=True):
    """Normal equations of (F, w0) flat, the deviations and the offset, row by row."""
    point = state.factors
    X, slope, bend = cell_derivatives(data, state, loss)
    parts, penalties, here = [], [], []
    if factor:
        mixed = point.loadings[data.codes]
        parts.append(X[:, :, None] * mixed[:, None, :])
        penalties.append(dense_penalty(state.penalties["F"], point.F, point.F.shape[1]))
        here.append(point.F)
    if state.shared is not None:
        parts.append(X[:, :, None])
        penalties.append(2.0 * state.shared * np.eye(P))
        here.append(point.shared[:, None])
    ends, end_penalty = tail(data, state)
    columns = np.concatenate(parts, axis=2).reshape(len(X), -1)
    # From one block a part to the order of the flat matrix (P, K + 1).
    feature = np.concatenate([np.repeat(np.arange(P), h.shape[1]) for h in here])
    order = np.argsort(feature, kind="stable")
    penalty = block_diag(block_diag(*penalties)[np.ix_(order, order)], end_penalty)
    Z = np.c_[columns, ends]
    deviations = point.random_intercepts if state.has_random_intercepts else np.zeros(0)
    now = np.r_[np.concatenate(here, axis=1).ravel(), deviations, [point.offset] * state.intercept]
    return Z.T @ (bend[:, None] * Z) + penalty, -(Z.T @ slope + penalty @ now)


SYSTEMS = list(product((None, 0.9), POOLINGS, (False, True)))


# ---- features -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shared,intercept_penalty,core", SYSTEMS)
@pytest.mark.parametrize("kind", ["rows", "gram", "logistic"])
def test_feature_system_is_the_kronecker_system(kind, shared, intercept_penalty, core):
    data = problem(0, P, 5, 6, labels=kind == "logistic")
    loss = Logistic() if kind == "logistic" else data.rows().loss
    fit = data.gram() if kind == "gram" else data.rows(loss)
    state = make_state(data, shared=shared, intercept_penalty=intercept_penalty, core=core)
    system = FeatureSystem(fit, fit.quadratic_at(state.factors), state)
    matrix, right = explicit_features(data, state, loss)
    assert_allclose(system.matrix(), matrix, **EXACT)
    assert_allclose(system.right(), right, **EXACT)
    for preconditioner in (None, system.preconditioner()):
        solution = conjugate_gradient(
            system.operator, system.right(), preconditioner=preconditioner, tol=1e-13
        )
        assert_allclose(solution.value, np.linalg.solve(matrix, right), **EXACT)


@pytest.mark.parametrize("shared,intercept_penalty,core", SYSTEMS)
@pytest.mark.parametrize("limit,solver", [(1_000, "dense"), (0, "cg")])
@pytest.mark.parametrize("across", [False, True])
def test_feature_step_goes_to_the_minimum(
    shared, intercept_penalty, core, limit, solver, across, monkeypatch
):
    monkeypatch.setattr(feature_steps, "DENSE_UNKNOWNS", limit)
    data = problem(2, P, 5, 6)
    penalties = {"F": across_columns(0.3, random_factors(4, P, 5, K1).F)} if across else None
    state = make_state(
        data, shared=shared, intercept_penalty=intercept_penalty, core=core, penalties=penalties
    )
    fit = data.rows()
    point, solution = feature_step(fit, fit.quadratic_at(state.factors), state, TIGHT)
    assert solution.solver == solver
    _, right = explicit_features(data, state.at(point), fit.loss)
    assert_allclose(right, 0.0, atol=1e-7)


@pytest.mark.parametrize("intercept_penalty", POOLINGS)
@pytest.mark.parametrize("across", [False, True])
def test_feature_step_is_exact_where_tasks_share_their_rows(across, intercept_penalty, monkeypatch):
    monkeypatch.setattr(feature_steps, "DENSE_UNKNOWNS", 0)
    rng = np.random.default_rng(0)
    n, T = 20, 5
    X, Y, share = rng.standard_normal((n, P)), rng.standard_normal((n, T)), rng.random(n) + 0.5
    stacked = Problem(np.tile(X, (T, 1)), Y.T.ravel(), np.tile(share, T), n * np.arange(T + 1))
    fit = GramDatafit.of_table(Design.standardized(X, share), Y, share)
    penalties = {"F": across_columns(0.3, random_factors(4, P, T, K1).F)} if across else None
    state = make_state(stacked, intercept_penalty=intercept_penalty, penalties=penalties)
    point, solution = feature_step(fit, fit.quadratic_at(state.factors), state, TIGHT)
    assert solution.solver == "sylvester"
    _, right = explicit_features(stacked, state.at(point), fit.loss)
    assert_allclose(right, 0.0, atol=1e-8)


@pytest.mark.parametrize("intercept_penalty", POOLINGS)
def test_shared_step_goes_to_the_minimum_of_its_block(intercept_penalty):
    data = problem(3, P, 5, 6)
    state, fit = make_state(data, shared=0.4, intercept_penalty=intercept_penalty), data.rows()
    point, _ = shared_step(fit, fit.quadratic_at(state.factors), state, TIGHT)
    _, right = explicit_features(data, state.at(point), fit.loss, factor=False)
    assert_allclose(right, 0.0, atol=1e-7)
    assert point.F is state.factors.F


def test_proximal_feature_step_equals_nonnegative_least_squares():
    data = problem(4, P, 5, 6)
    state, fit = make_state(data, penalties={"F": NonNegative(0.0)}), data.rows()
    start = state.factors.with_(F=np.abs(state.factors.F))
    point, solution = feature_step(fit, fit.quadratic_at(start), state.at(start), TIGHT)
    X, *_ = cell_derivatives(data, state, fit.loss)
    Z = (X[:, :, None] * state.factors.loadings[data.codes][:, None, :]).reshape(len(X), -1)
    root = np.sqrt(data.weights)
    expected = nnls(root[:, None] * Z, root * data.y, maxiter=10_000)[0]
    assert solution.solver == "proximal"
    assert_allclose(point.F.ravel(), expected, rtol=1e-6, atol=1e-6)


# ---- tasks --------------------------------------------------------------------------------------


def explicit_tasks(data, state, loss):
    """Normal equations of all ``(g_t, b_t)``, task by task."""
    point = state.factors
    X, slope, bend = cell_derivatives(data, state, loss)
    T, K = point.G.shape
    latent = X @ point.feature_loadings
    if state.has_random_intercepts:
        latent = np.c_[latent, np.ones(len(X))]
    width = latent.shape[1]
    Z = (np.eye(T)[data.codes][:, :, None] * latent[:, None, :]).reshape(len(X), -1)
    penalty = np.zeros((T, width, T, width))
    relation = dense_penalty(state.penalties["G"], point.G, K).reshape(T, K, T, K)
    penalty[:, :K, :, :K] = relation
    now = point.G
    if state.has_random_intercepts:
        penalty[np.arange(T), K, np.arange(T), K] = 2.0 * state.intercept_penalty
        now = np.c_[now, point.random_intercepts]
    penalty = penalty.reshape(T * width, T * width)
    return Z.T @ (bend[:, None] * Z) + penalty, -(Z.T @ slope + penalty @ now.ravel())


@pytest.mark.parametrize("intercept_penalty", POOLINGS)
@pytest.mark.parametrize("core", [False, True])
@pytest.mark.parametrize("T,K", [(5, 3), (2, 4), (1, 3)])
@pytest.mark.parametrize("solver", ["woodbury", "cg", "blocks", "across"])
def test_task_step_goes_to_the_minimum(intercept_penalty, core, T, K, solver, monkeypatch):
    monkeypatch.setattr(task_steps, "WOODBURY_WIDTH", 0 if solver == "cg" else 32)
    data = problem(5, P, T, 6)
    penalties = {"G": Ridge(0.6)} if solver == "blocks" else None
    if solver == "across":
        penalties = {"G": across_columns(0.5, random_factors(4, P, T, K2 if core else K).G)}
    state = make_state(
        data, T=T, K=K, intercept_penalty=intercept_penalty, core=core, penalties=penalties
    )
    fit = data.rows()
    quadratic = fit.quadratic_at(state.factors).task_quadratic(state.factors.F)
    point, solution = task_step(quadratic, state, TIGHT)
    assert solution.solver == ("blocks" if solver == "across" else solver)
    _, right = explicit_tasks(data, state.at(point), fit.loss)
    assert_allclose(right, 0.0, atol=1e-7)
    matrix, right = explicit_tasks(data, state, fit.loss)
    expected = np.linalg.solve(matrix, right).reshape(T, -1)[:, : point.G.shape[1]]
    assert_allclose(point.G - state.factors.G, expected, rtol=1e-6, atol=1e-8)


# ---- core and intercepts ------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [Ridge(0.8), Free(), NonNegative(0.0), L1(15.0)])
def test_core_step_goes_to_the_minimum(penalty):
    data = problem(6, P, 5, 6)
    state, fit = make_state(data, core=True, penalties={"S": penalty}), data.rows()
    start = state.factors.with_(S=np.abs(state.factors.S))
    quadratic = fit.quadratic_at(start).task_quadratic(start.F)
    point, _ = core_step(quadratic, state.at(start), InnerTolerance(1e-10, 2_000))
    X, *_ = cell_derivatives(data, state, fit.loss)
    latent, G = X @ state.factors.F, state.factors.G[data.codes]
    Z = np.stack([np.kron(z, g) for z, g in zip(latent, G, strict=True)])
    root = np.sqrt(data.weights)
    if isinstance(penalty, NonNegative):
        expected = nnls(root[:, None] * Z, root * data.y)[0]
        assert_allclose(point.S.ravel(), expected, rtol=1e-6, atol=1e-6)
        return
    slope = 2.0 * Z.T @ (data.weights * (Z @ point.S.ravel() - data.y))
    if isinstance(penalty, L1):
        flat = point.S.ravel()
        assert 0 < np.count_nonzero(flat) < flat.size
        assert_allclose(slope[flat != 0], -15.0 * np.sign(flat[flat != 0]), atol=1e-5)
        assert np.all(np.abs(slope) <= 15.0 + 1e-5)
        return
    assert_allclose(slope + 2.0 * penalty.strength * point.S.ravel(), 0.0, atol=1e-7)


@pytest.mark.parametrize("intercept_penalty", POOLINGS)
def test_intercept_step_goes_to_the_minimum(intercept_penalty):
    data = problem(7, P, 5, 6)
    state, fit = make_state(data, intercept_penalty=intercept_penalty), data.rows()
    expansion = fit.quadratic_at(state.factors)
    _, slopes = expansion.gradient(state.factors.loadings)
    point = intercept_step(slopes, expansion.curvature_sums, state)
    columns, penalty = tail(data, state.at(point))
    _, slope, _ = cell_derivatives(data, state.at(point), fit.loss)
    deviations = point.random_intercepts if state.has_random_intercepts else []
    now = np.r_[deviations, [point.offset] * state.intercept]
    assert_allclose(columns.T @ slope + penalty @ now, 0.0, atol=1e-9)
    assert (point is state.factors) == (intercept_penalty is None)


@pytest.mark.parametrize("size", [-1e4, -800.0, -400.0, -100.0, 100.0, 400.0, 1e4])
def test_tasks_beyond_doubt_have_no_say_in_the_pooling_of_intercepts(size):
    data = problem(8, P, 5, 6, labels=True)
    fit, plain = data.rows(Logistic()), make_state(data, intercept_penalty=np.inf)
    plain = plain.at(plain.factors.with_(F=0.1 * plain.factors.F))

    def intercept_penalty(deviations):
        state = plain.at(plain.factors.with_(random_intercepts=deviations))
        quadratic = fit.quadratic_at(state.factors).task_quadratic(state.factors.F)
        return intercept_pooling(quadratic, fit, state)

    usual = intercept_penalty(np.zeros(5))
    assert 0.0 < usual < np.inf
    # One task far out changes the estimate by its absence only; all of them leave none.
    assert 0.1 * usual < intercept_penalty(np.array([size, 0.0, 0.0, 0.0, 0.0]))
    assert intercept_penalty(np.full(5, size)) == np.inf
