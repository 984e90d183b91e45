"""A run of the alternation: solvers, what it reports, when it stops, where it starts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from comtl.datafits.gram_datafit import GramDatafit
from comtl.engine import feature_step as feature_steps
from comtl.engine import task_steps
from comtl.engine.alternation import alternate
from comtl.engine.recipe import Recipe, Schedule
from comtl.engine.starts import start_state
from comtl.losses import Logistic, Squared
from comtl.penalties import L1, Free, NonNegative, Ridge, Simplex
from comtl.penalties.learned_relation import LearnedRelation
from comtl.rows.design import Design
from helpers import Problem, feasible, problem


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """K-means on a dozen points spends its time waking threads."""
    with threadpool_limits(1, "openmp"):
        yield


# ---- what a run reports -------------------------------------------------------------------------


def small_run(penalties, ranks=(3, 3), *, schedule=None, fit=None, **kwargs):
    data = problem(0, 12, 6, 10)
    fit, schedule = fit or data.rows(), schedule or Schedule(max_iter=3)
    recipe = Recipe(penalties, ranks, **kwargs)
    return list(alternate(fit, start_state(fit, recipe, schedule, like=data.y), schedule))


def table_fit():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 20)), rng.standard_normal((30, 6))
    return GramDatafit.of_table(Design.standardized(X, np.ones(30)), Y, np.ones(30))


@pytest.mark.parametrize(
    "penalties,limits,fit,expected",
    [
        ({"F": 0.1, "G": 1.0}, (0, 32), None, {"F": "cg", "G": "woodbury"}),
        ({"F": 0.1, "G": 1.0}, (100, 32), None, {"F": "dense", "G": "woodbury"}),
        ({"F": 0.1, "G": 1.0}, (0, 32), table_fit(), {"F": "sylvester", "G": "woodbury"}),
        ({"F": 0.1, "G": 1.0}, (100, 2), None, {"F": "dense", "G": "cg"}),
        ({"F": 0.1, "G": Ridge(1.0)}, (100, 2), None, {"F": "dense", "G": "blocks"}),
        ({"F": L1(0.1), "G": 1.0}, (100, 32), None, {"F": "proximal", "G": "woodbury"}),
        ({"F": 0.1, "G": Simplex()}, (100, 32), None, {"F": "dense", "G": "proximal"}),
        (
            {"F": 0.1, "S": Ridge(1.0), "G": 1.0},
            (100, 32),
            None,
            {"F": "dense", "G": "woodbury", "S": "dense"},
        ),
        (
            {"F": 0.1, "S": NonNegative(1.0), "G": 1.0},
            (100, 32),
            None,
            {"F": "dense", "G": "woodbury", "S": "proximal"},
        ),
    ],
)
def test_every_solver_is_reached(penalties, limits, fit, expected, monkeypatch):
    monkeypatch.setattr(feature_steps, "DENSE_UNKNOWNS", limits[0])
    monkeypatch.setattr(task_steps, "WOODBURY_WIDTH", limits[1])
    run = small_run(penalties, fit=fit)
    holder = "rows" if fit is None else "gram"
    assert [step.solvers for step in run] == [{"rows": holder}] + 3 * [{"rows": holder, **expected}]
    assert [step.sweep for step in run] == [0, 1, 2, 3]


def test_size_decides_between_the_dense_solver_and_conjugate_gradients():
    solvers = {}
    for P in (5, 60):
        data = problem(0, P, 6, 10)
        fit, schedule = data.rows(), Schedule(max_iter=1)
        state = start_state(fit, Recipe({"F": 0.1, "G": 1.0}, (3, 3)), schedule, like=data.y)
        *_, step = alternate(fit, state, schedule)
        solvers[P] = step.solvers["F"]
    assert solvers == {5: "dense", 60: "cg"}


def test_objective_is_the_loss_plus_every_penalty():
    data = problem(0, 12, 6, 10)
    run = small_run({"F": 0.1, "S": Ridge(0.4), "G": 1.0}, (3, 2), shared=0.7)
    state, objective = run[-1].state, run[-1].objective
    point, X = state.factors, data.design.dense_rows(0, len(data.y))
    score = np.sum(X * point.coef.T[data.codes], axis=1) + point.intercepts[data.codes]
    expected = np.sum(data.weights * (data.y - score) ** 2) + 0.4 * np.sum(point.S**2)
    for name, strength in (("F", 0.1), ("G", 1.0)):
        factor, penalty = getattr(point, name), state.penalties[name]
        roots = np.sqrt(np.linalg.svd(factor)[1] ** 2 + penalty.epsilon)
        rest = (len(factor) - len(roots)) * penalty.epsilon**0.5
        expected += strength * (roots.sum() + rest) ** 2
    expected += 0.7 * np.sum(point.shared**2)
    assert 0.0 < state.intercept_penalty < np.inf
    expected += state.intercept_penalty * np.sum(point.random_intercepts**2)
    assert_allclose(objective, expected, rtol=1e-9)


def test_a_run_stops_when_the_objective_no_longer_falls():
    run = small_run({"F": 0.1, "G": 1.0}, schedule=Schedule(max_iter=500, tol=1e-6))
    assert run[-1].converged and len(run) < 500
    assert not any(step.converged for step in run[:-1])
    before, after = (step.objective for step in run[-2:])
    assert before - after <= 1e-6 * after
    assert run[-1].state.is_annealed and not run[0].state.is_annealed


def test_no_run_stops_before_the_smoothing_is_at_rest():
    schedule = Schedule(max_iter=50, tol=0.9, smoothing=1e-4, shrink=0.5)
    run = small_run({"F": 0.1, "G": 1.0}, schedule=schedule)
    assert run[-1].converged and run[-1].state.is_annealed
    assert len(run) > 8
    assert not any(step.state.is_annealed for step in run[:-1])


@pytest.mark.parametrize("name", ["F", "G"])
def test_held_factors_stay_and_are_not_penalised(name):
    held = np.random.default_rng(1).standard_normal((12 if name == "F" else 6, 3))
    run = small_run({"F": 0.1, "G": 1.0}, fixed={name: held}, schedule=Schedule(max_iter=30))
    state = run[-1].state
    assert getattr(state.factors, name) is held
    assert name not in run[-1].solvers
    other = "G" if name == "F" else "F"
    penalty = state.penalties[other].value(getattr(state.factors, other))
    pooled = (
        state.intercept_penalty * np.sum(state.factors.random_intercepts**2)
        if state.has_random_intercepts
        else 0.0
    )
    assert_allclose(state.regularizer, penalty + pooled, rtol=1e-12)
    assert run[-1].objective < 0.9 * run[0].objective


# ---- starts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["svd", "random"])
@pytest.mark.parametrize("kind", ["squared", "logistic"])
@pytest.mark.parametrize("ranks", [(3, 3), (9, 2), (12, 12)])
def test_starts_are_finite_feasible_and_reproducible(init, kind, ranks):
    data = problem(1, 7, 5, 6, labels=kind == "logistic")
    fit = data.rows(Logistic() if kind == "logistic" else Squared())
    for penalties in (
        {"F": 0.1, "S": Ridge(1.0), "G": 1.0},
        {"F": NonNegative(1.0), "S": Free(), "G": Simplex()},
    ):
        states = [
            start_state(fit, Recipe(penalties, ranks), Schedule(), like=data.y, init=init, seed=s)
            for s in (0, 0, 1)
        ]
        first, again, other = (state.factors for state in states)
        assert first.F.shape == (7, ranks[0]) and first.G.shape == (5, ranks[1])
        assert np.isfinite(first.coef).all() and np.any(first.coef != 0.0)
        assert_allclose(first.coef, again.coef, atol=0)
        if init == "random" and isinstance(penalties["F"], float):
            assert np.abs(first.coef - other.coef).max() > 1e-3
        for name, penalty in states[0].penalties.items():
            assert feasible(penalty, getattr(first, name))


def test_the_spectral_start_points_along_the_truth():
    rng = np.random.default_rng(0)
    P, T, n = 20, 15, 60
    truth = np.outer(rng.standard_normal(P), rng.standard_normal(T))
    X, codes = rng.standard_normal((T * n, P)), np.repeat(np.arange(T), n)
    y = np.sum(X * truth.T[codes], axis=1)
    data = Problem(X, y, np.ones(T * n), n * np.arange(T + 1))
    state = start_state(data.gram(), Recipe({"F": 0.1, "G": 1.0}, (1, 1)), Schedule(), like=y)
    assert isinstance(state.penalties["F"], LearnedRelation)
    W = state.factors.coef
    cosine = np.sum(W * truth) / np.linalg.norm(W) / np.linalg.norm(truth)
    assert cosine > 0.95


def test_the_constant_of_the_smoothing_does_not_stop_a_fit_early():
    data = problem(0, 300, 20, 12, rank=2)
    recipe = Recipe({"F": 0.1, "G": 0.1}, (2, 2))
    left = []
    for tol in (1e-4, 1e-7):
        schedule = Schedule(tol=tol, max_iter=500, smoothing=10.0, start_smoothing=10.0)
        start = start_state(data.rows(), recipe, schedule, like=data.y)
        *_, last = alternate(data.rows(), start, schedule)
        # All but a hundredth of the objective is what the smoothing adds.
        assert start.floor > 0.99 * last.objective
        left.append(last.objective - start.floor)
    assert left[0] < 1.15 * left[1]
