"""Special cases of the models against independent solvers, and closed forms of the optimum."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from comtl.datafits.rows_datafit import RowsDatafit
from comtl.engine.alternation import alternate
from comtl.engine.recipe import InnerTolerance, Recipe, Schedule
from comtl.factors import Factors, State
from comtl.losses import Logistic
from comtl.penalties import Ridge
from comtl.penalties.learned_relation import LearnedRelation
from comtl.penalties.relations import Relation
from helpers import Problem, plain_design, problem, run

LONG = Schedule(max_iter=3_000, tol=1e-13, inner=InnerTolerance(1e-8, 500))
PLAIN = {"intercept": False}
# Almost no smoothing in the end, lowered slowly: a tiny ε freezes the factors' spans.
SHARP = Schedule(max_iter=60, tol=0.0, smoothing=1e-8, shrink=0.5, inner=InnerTolerance(1e-6, 500))


def loss_and_gradient(data: Problem, W):
    """Weighted squared loss of explicit weights ``P × T`` and its gradient."""
    X = data.design.dense_rows(0, len(data.y))
    gap = np.sum(X * W.T[data.codes], axis=1) - data.y
    gradient = np.zeros_like(W)
    np.add.at(gradient.T, data.codes, 2.0 * (data.weights * gap)[:, None] * X)
    return np.sum(data.weights * gap**2), gradient


def last(fit, recipe, schedule=LONG, **start):
    step = run(fit, recipe, schedule, **start)[-1]
    assert step.converged or not schedule.tol
    return step


def singular_values(W):
    return np.linalg.svd(W)[1]


# ---- one factor held at the identity: a convex problem ------------------------------------------


def resting_relation(strength, factor, epsilon):
    """Learned relation whose smoothing stays at ``epsilon``."""
    return LearnedRelation(strength, epsilon, 0.0, Relation.of_factor(factor, epsilon), True)


def held_fit(data, side, strength, epsilon):
    """Fit with G (MTFL) or F (MTRL) held at the identity; return objective and W."""
    P, T = data.X.shape[1], len(data.offsets) - 1
    rng = np.random.default_rng(0)
    factors = {"F": np.eye(P), "G": np.eye(T)}
    factors[side] = rng.standard_normal((P, T) if side == "F" else (T, P))
    penalties = {
        name: resting_relation(strength, factors[name], epsilon) if name == side else Ridge(0.0)
        for name in "FG"
    }
    point = Factors(factors["F"], None, factors["G"], np.zeros(P), 0.0, np.zeros(T))
    held = frozenset("FG".replace(side, ""))
    state = State(point, penalties, held, intercept=False)
    *_, step = alternate(data.rows(), state, LONG)
    assert step.converged
    for name in held:
        assert_allclose(getattr(step.state.factors, name), factors[name], atol=0)
    return step.objective, step.state.factors.coef


def smoothed_trace_norm(W, rows, epsilon):
    """``(tr (WWᵀ + εI)^½)²`` for a matrix of that many rows, with its gradient."""
    U, d, Vt = np.linalg.svd(W, full_matrices=False)
    roots = np.sqrt(d**2 + epsilon)
    total = roots.sum() + (rows - len(d)) * epsilon**0.5
    return total**2, 2.0 * total * (U * (d / roots)) @ Vt


def convex_optimum(data, rows, strength, epsilon):
    """Independent solution by L-BFGS on W."""
    P, T = data.X.shape[1], len(data.offsets) - 1

    def objective(flat):
        W = flat.reshape(P, T)
        loss, slope = loss_and_gradient(data, W)
        penalty, push = smoothed_trace_norm(W, rows, epsilon)
        return loss + strength * penalty, (slope + strength * push).ravel()

    options = {"maxiter": 20_000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-9}
    result = minimize(objective, np.zeros(P * T), jac=True, method="L-BFGS-B", options=options)
    return result.fun, result.x.reshape(P, T)


@pytest.mark.parametrize("side", ["F", "G"])
@pytest.mark.parametrize("shape", [(7, 4), (4, 6)])
@pytest.mark.parametrize("strength", [0.05, 2.0])
def test_holding_the_other_factor_gives_mtfl_and_mtrl(side, shape, strength):
    P, T = shape
    data, epsilon = problem(1, P, T, 8), 0.05
    objective, W = held_fit(data, side, strength, epsilon)
    rows = P if side == "F" else T
    expected, best = convex_optimum(data, rows, strength, epsilon)
    assert_allclose(objective, expected, rtol=1e-6)
    assert_allclose(W, best, atol=1e-3 * np.abs(best).max())


def trace_norm_optimum(data, strength, steps=4_000):
    """Solution of ``loss + strength ‖W‖_*`` by accelerated singular value thresholding."""
    P, T = data.X.shape[1], len(data.offsets) - 1
    X = data.design.dense_rows(0, len(data.y))
    bound = max(
        2.0 * np.linalg.norm(np.sqrt(data.weights[mine])[:, None] * X[mine], 2) ** 2
        for mine in (data.codes == t for t in range(T))
    )
    W = ahead = np.zeros((P, T))
    momentum = 1.0
    for _ in range(steps):
        downhill = ahead - loss_and_gradient(data, ahead)[1] / bound
        U, d, Vt = np.linalg.svd(downhill, full_matrices=False)
        fresh = (U * np.maximum(d - strength / bound, 0.0)) @ Vt
        following = 0.5 * (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5)
        ahead = fresh + (momentum - 1.0) / following * (fresh - W)
        W, momentum = fresh, following
    return loss_and_gradient(data, W)[0] + strength * singular_values(W).sum(), W


# ---- Schatten quasi-norms -----------------------------------------------------------------------


RELATIONS = [((0.1, 1.0), (3, 3)), ((1.0, 0.3), (3, 3))]
WITH_A_RIDGE_CORE = [((0.1, 0.5, 2.0), ranks) for ranks in ((3, 3), (5, 3), (3, 4))]
CASES = [(*case, init) for case in RELATIONS for init in ("svd", "random")]
CASES += [(*case, "svd") for case in WITH_A_RIDGE_CORE]


@pytest.mark.parametrize(("strengths", "ranks", "init"), CASES)
def test_learned_relations_are_a_schatten_quasi_norm(strengths, ranks, init):
    """Relations count as nuclear norms, a ridge core as half of one: 1/p adds them up."""
    count, (lam1, lam2, *core) = len(strengths), strengths
    data, p = problem(2 + count, 10, 8, 12), 1.0 / (2.0 + 0.5 * len(core))
    middle = {"S": Ridge(*core)} if core else {}
    recipe = Recipe({"F": lam1, **middle, "G": lam2}, ranks, **PLAIN)
    step = run(data.gram(), recipe, SHARP, init=init)[-1]
    sigma = singular_values(step.state.factors.coef)[: min(ranks)]
    assert sigma[1] > 0.1 * sigma[0]
    norm = (sigma**p).sum() ** (1.0 / p)
    expected = count * np.prod(strengths) ** (1 / count) * norm ** (2 / count)
    assert_allclose(step.state.regularizer, expected, rtol=1e-2)


# ---- logistic loss ------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_one_task_of_rank_one_is_logistic_regression(intercept, C):
    """Stationary where ``2√(λ1λ2) w/‖w‖ = w/C``: the same weights for the right strengths."""
    data = problem(6, 5, 1, 80, labels=True, even=True)
    model = LogisticRegression(C=C, fit_intercept=intercept, tol=1e-12, max_iter=10_000)
    model.fit(data.X, data.y)
    product = (np.linalg.norm(model.coef_) / (2.0 * C)) ** 2
    fit = RowsDatafit(plain_design(data.X), data.y, data.weights, data.offsets, Logistic())
    penalties = {"F": Ridge(0.5), "G": Ridge(product / 0.5)}
    recipe = Recipe(penalties, (1, 1), intercept=intercept)
    point = last(fit, recipe).state.factors
    assert_allclose(point.coef[:, 0], model.coef_[0], rtol=1e-3, atol=1e-4)
    assert_allclose(point.intercepts[0], model.intercept_, rtol=1e-3, atol=1e-4)
