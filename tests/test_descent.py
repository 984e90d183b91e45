"""The objective never rises: any model, any shape, every block."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_limits

from comtl.datafits.gram_datafit import GramDatafit
from comtl.datafits.rows_datafit import RowsDatafit
from comtl.engine import alternation, task_steps
from comtl.engine import feature_step as feature_steps
from comtl.engine.alternation import alternate
from comtl.engine.recipe import Recipe, Schedule
from comtl.engine.starts import start_state
from comtl.losses import LOSSES, Logistic, Loss
from comtl.penalties import L1, ElasticNet, Free, NonNegative, Ridge, Simplex
from comtl.rows.design import Design
from helpers import Problem, feasible, problem


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """K-means on a dozen points spends its time waking threads."""
    with threadpool_limits(1, "openmp"):
        yield


strengths = st.sampled_from([1e-3, 0.03, 0.3, 3.0, 30.0])
# A bare number is the strength of a learned relation.
factor_penalties = st.one_of(
    strengths,
    st.builds(Ridge, strengths),
    st.builds(L1, strengths),
    st.builds(ElasticNet, strengths),
    st.builds(NonNegative, strengths),
    st.builds(Simplex),
)
core_penalties = st.one_of(
    st.builds(Ridge, strengths),
    st.builds(L1, strengths),
    st.builds(ElasticNet, strengths),
    st.builds(NonNegative, strengths),
    st.builds(Free),
)


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
        state = start_state(fit, case.recipe, schedule, like=case.data.y, init=case.init)
        moves = []
        patch.setattr(alternation, "line_search", watched(moves))
        run = list(alternate(fit, state, schedule))
    objective = np.array([step.objective for step in run])
    assert np.isfinite(objective).all()
    # Sweep by sweep, and every block on its own.
    rounding = max(1e-14 * summed(case.data, step.state.factors) for step in run)
    for before, after in (*pairwise(objective), *moves):
        assert after <= before + 1e-10 * abs(after) + rounding
    assert moves
    final = run[-1].state
    for name, penalty in final.penalties.items():
        assert feasible(penalty, getattr(final.factors, name))


@pytest.mark.parametrize("penalties", [{"F": L1(1e-30), "G": L1(1e-30)}, {"F": 1e-30, "G": 1e-30}])
@pytest.mark.parametrize("T", [1, 4])
def test_labels_beyond_doubt_do_not_break_a_fit(penalties, T):
    """Without a penalty to speak of, separable classes leave next to no curvature anywhere."""
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    data = Problem(y[:, None], y, np.ones(40), 40 // T * np.arange(T + 1))
    fit, schedule = data.rows(Logistic()), Schedule(max_iter=60, tol=0.0)
    state = start_state(fit, Recipe(penalties, (1, 1)), schedule, like=y)
    *_, step = alternate(fit, state, schedule)
    assert 0.0 <= step.objective < 1e-10
    assert fit.quadratic_at(step.state.factors).curvature_sums.max() < 1e-12
