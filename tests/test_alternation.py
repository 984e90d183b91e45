"""A run of the alternation: solvers, reports, starts, an objective that falls, an end."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from threadpoolctl import threadpool_limits

from comtl.datafits.gram_datafit import GramDatafit
from comtl.datafits.rows_datafit import RowsDatafit
from comtl.engine import alternation, task_steps
from comtl.engine import feature_step as feature_steps
from comtl.engine.recipe import Recipe, Schedule
from comtl.engine.starts import start_state
from comtl.losses import LOSSES, Logistic, Loss, Squared
from comtl.penalties import L1, ElasticNet, Free, NonNegative, Ridge, Simplex
from comtl.penalties.learned_relation import LearnedRelation
from comtl.rows.design import Design
from helpers import Problem, feasible, problem, run


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """K-means on a dozen points spends its time waking threads."""
    with threadpool_limits(1, "openmp"):
        yield


# ---- what a run reports -------------------------------------------------------------------------


def small_run(penalties, ranks=(3, 3), *, schedule=None, fit=None, **kwargs):
    fit, schedule = fit or problem(0, 12, 6, 10).rows(), schedule or Schedule(max_iter=3)
    return run(fit, Recipe(penalties, ranks, **kwargs), schedule)


def table_fit():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 20)), rng.standard_normal((30, 6))
    return GramDatafit.of_table(Design.standardized(X, np.ones(30)), Y, np.ones(30))


@pytest.mark.parametrize(
    "penalties,limits,fit,solvers",
    [
        ({"F": 0.1, "G": 1.0}, (0, 32), None, "cg woodbury"),
        ({"F": 0.1, "G": 1.0}, (100, 32), None, "dense woodbury"),
        ({"F": 0.1, "G": 1.0}, (0, 32), table_fit(), "sylvester woodbury"),
        ({"F": 0.1, "G": 1.0}, (100, 2), None, "dense cg"),
        ({"F": 0.1, "G": Ridge(1.0)}, (100, 2), None, "dense blocks"),
        ({"F": L1(0.1), "G": 1.0}, (100, 32), None, "proximal woodbury"),
        ({"F": 0.1, "G": Simplex()}, (100, 32), None, "dense proximal"),
        ({"F": 0.1, "G": 1.0, "S": Ridge(1.0)}, (100, 32), None, "dense woodbury dense"),
        ({"F": 0.1, "G": 1.0, "S": NonNegative(1.0)}, (100, 32), None, "dense woodbury proximal"),
    ],
)
def test_every_solver_is_reached(penalties, limits, fit, solvers, monkeypatch):
    monkeypatch.setattr(feature_steps, "DENSE_UNKNOWNS", limits[0])
    monkeypatch.setattr(task_steps, "WOODBURY_WIDTH", limits[1])
    start, *sweeps = small_run(penalties, fit=fit)
    expected = dict(zip(penalties, solvers.split(), strict=True))
    assert start.solvers == {"rows": "rows" if fit is None else "gram"}
    assert [step.solvers for step in sweeps] == 3 * [start.solvers | expected]
    assert [start.sweep, *(step.sweep for step in sweeps)] == [0, 1, 2, 3]


def test_objective_is_the_loss_plus_every_penalty():
    data = problem(0, 12, 6, 10)
    steps = small_run({"F": 0.1, "S": Ridge(0.4), "G": 1.0}, (3, 2), shared=0.7)
    state, objective = steps[-1].state, steps[-1].objective
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
    steps = small_run({"F": 0.1, "G": 1.0}, schedule=Schedule(max_iter=500, tol=1e-6))
    assert steps[-1].converged and len(steps) < 500
    assert not any(step.converged for step in steps[:-1])
    before, after = (step.objective for step in steps[-2:])
    assert before - after <= 1e-6 * after
    assert steps[-1].state.is_annealed and not steps[0].state.is_annealed


def test_no_run_stops_before_the_smoothing_is_at_rest():
    schedule = Schedule(max_iter=50, tol=0.9, smoothing=1e-4, shrink=0.5)
    steps = small_run({"F": 0.1, "G": 1.0}, schedule=schedule)
    assert steps[-1].converged and steps[-1].state.is_annealed
    assert len(steps) > 8
    assert not any(step.state.is_annealed for step in steps[:-1])


@pytest.mark.parametrize("name", ["F", "G"])
def test_held_factors_stay_and_are_not_penalised(name):
    held = np.random.default_rng(1).standard_normal((12 if name == "F" else 6, 3))
    steps = small_run({"F": 0.1, "G": 1.0}, fixed={name: held}, schedule=Schedule(max_iter=30))
    state = steps[-1].state
    assert getattr(state.factors, name) is held
    assert name not in steps[-1].solvers
    other = "G" if name == "F" else "F"
    penalty = state.penalties[other].value(getattr(state.factors, other))
    if state.has_random_intercepts:
        penalty += state.intercept_penalty * np.sum(state.factors.random_intercepts**2)
    assert_allclose(state.regularizer, penalty, rtol=1e-12)
    assert steps[-1].objective < 0.9 * steps[0].objective


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
        start, *_, last = run(data.rows(), recipe, schedule)
        # All but a hundredth of the objective is what the smoothing adds.
        assert start.state.floor > 0.99 * last.objective
        left.append(last.objective - start.state.floor)
    assert left[0] < 1.15 * left[1]


# ---- the objective never rises: any model, any shape, every block -------------------------------


strengths = st.sampled_from([1e-3, 0.03, 0.3, 3.0, 30.0])
smooth_or_not = [st.builds(kind, strengths) for kind in (Ridge, L1, ElasticNet, NonNegative)]
# A bare number is the strength of a learned relation.
factor_penalties = st.one_of(strengths, *smooth_or_not, st.builds(Simplex))
core_penalties = st.one_of(*smooth_or_not, st.builds(Free))


@dataclass(frozen=True)
class Case:
    """A random problem, a random model, and whether direct solvers may run."""

    data: Problem
    holder: str
    recipe: Recipe
    loss: Loss
    smoothing: float
    init: str
    direct: bool

    def fit(self):
        data = self.data
        if self.holder == "gram":
            return data.gram()
        if self.holder in ("table", "cells"):
            # All tasks on the rows of the first, with the targets that fit in.
            count = int(np.diff(data.offsets).min())
            X, share = data.X[:count], data.weights[:count]
            row = data.offsets[:-1][None, :] + np.arange(count)[:, None]
            design = Design.standardized(sparse.csr_array(X), share)
            if self.holder == "table":
                return GramDatafit.of_table(design, data.y[row], share)
            T = row.shape[1]
            rows, offsets = np.tile(np.arange(count), T), count * np.arange(T + 1)
            y, loss = data.y[row].T.ravel(), self.loss
            return RowsDatafit(design, y, np.tile(share, T), offsets, loss, rows=rows)
        return data.rows(self.loss, packed=self.holder == "sparse")


@st.composite
def cases(draw):
    P, T, n = draw(st.integers(1, 9)), draw(st.integers(1, 8)), draw(st.integers(1, 6))
    name = draw(st.sampled_from(sorted(LOSSES)))
    labels = LOSSES[name].regression_link is None or (name == "squared" and draw(st.booleans()))
    data = problem(
        draw(st.integers(0, 2**20)),
        P,
        T,
        n,
        rank=draw(st.integers(1, 4)),
        labels=labels,
        even=draw(st.booleans()),
    )
    if name == "poisson":
        data = replace(data, y=np.floor(np.exp(draw(st.sampled_from([1.0, 3.0])) * data.y)))
    penalties = {"F": draw(factor_penalties), "G": draw(factor_penalties)}
    K1 = K2 = draw(st.integers(1, 6))
    if draw(st.booleans()):
        penalties["S"], K2 = draw(core_penalties), draw(st.integers(1, 6))
    shared, intercept = draw(st.none() | strengths), draw(st.booleans())
    holders = ["dense", "sparse", "cells"] + (["gram", "table"] if name == "squared" else [])
    return Case(
        data,
        draw(st.sampled_from(holders)),
        Recipe(penalties, (K1, K2), shared=shared, intercept=intercept),
        LOSSES[name],
        draw(st.sampled_from([1e-6, 1e-3, 0.1])),
        draw(st.sampled_from(["svd", "random"])),
        draw(st.booleans()),
    )


def watched(moves):
    """``line_search``, noting the objective before and after each block's step."""

    def descend(fit, old, new):
        taken = alternation_descend(fit, old, new)
        moves.append([fit.quadratic_at(s.factors).value + s.regularizer for s in (old, taken)])
        return taken

    return descend


def summed(data, point):
    """Size of what is added up to the loss: the loss is no more exact than that.

    It matters where the data are fitted without error, and for a free core, which may grow
    without bound in directions that the rows hardly see.
    """
    X, size = np.abs(data.design.dense_rows(0, len(data.y))), np.abs(point.coef).T[data.codes]
    return np.sum(data.weights * (np.abs(data.y) + np.sum(X * size, axis=1)) ** 2)


alternation_descend = alternation.line_search


@settings(max_examples=250, suppress_health_check=list(HealthCheck))
@given(cases())
def test_objective_never_increases(case):
    fit, schedule = case.fit(), Schedule(max_iter=8, tol=0.0, smoothing=case.smoothing)
    with pytest.MonkeyPatch.context() as patch:
        if not case.direct:
            patch.setattr(feature_steps, "DENSE_UNKNOWNS", 0)
            patch.setattr(task_steps, "WOODBURY_WIDTH", 0)
        moves = []
        patch.setattr(alternation, "line_search", watched(moves))
        steps = run(fit, case.recipe, schedule, init=case.init)
    objective = np.array([step.objective for step in steps])
    assert np.isfinite(objective).all()
    # Sweep by sweep, and every block on its own.
    rounding = max(1e-14 * summed(case.data, step.state.factors) for step in steps)
    for before, after in (*pairwise(objective), *moves):
        assert after <= before + 1e-10 * abs(after) + rounding
    assert moves
    final = steps[-1].state
    for name, penalty in final.penalties.items():
        assert feasible(penalty, getattr(final.factors, name))


@pytest.mark.parametrize("penalties", [{"F": L1(1e-30), "G": L1(1e-30)}, {"F": 1e-30, "G": 1e-30}])
@pytest.mark.parametrize("T", [1, 4])
def test_labels_beyond_doubt_do_not_break_a_fit(penalties, T):
    """Without a penalty to speak of, separable classes leave next to no curvature anywhere."""
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    data = Problem(y[:, None], y, np.ones(40), 40 // T * np.arange(T + 1))
    fit, schedule = data.rows(Logistic()), Schedule(max_iter=60, tol=0.0)
    step = run(fit, Recipe(penalties, (1, 1)), schedule)[-1]
    assert 0.0 <= step.objective < 1e-10
    assert fit.quadratic_at(step.state.factors).curvature_sums.max() < 1e-12
