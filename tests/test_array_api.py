"""The engine on arrays of the strict reference library: same numbers, no NumPy behind its back."""

import array_api_strict as strict
import numpy as np
import pytest
from numpy.testing import assert_allclose

from comtl.arrays.algebra import solve_symmetric
from comtl.datafits.gram_datafit import GramDatafit
from comtl.datafits.rows_datafit import RowsDatafit
from comtl.engine import feature_step as feature_steps
from comtl.engine import task_steps
from comtl.engine.alternation import alternate
from comtl.engine.recipe import InnerTolerance, Recipe, Schedule
from comtl.engine.starts import start_state
from comtl.factors import Factors
from comtl.losses import Logistic, Squared
from comtl.penalties import L1, Free, Ridge
from comtl.penalties.relations import Relation
from comtl.rows import design as design_module
from comtl.rows.design import Covariance
from comtl.solvers.small_blocks import coupled_blocks, solve_coupled_blocks
from comtl.solvers.sylvester import TwoTermSylvester
from helpers import covariance_matrix, plain_design, problem, random_definite, random_factors

LIBRARIES = (np.asarray, strict.asarray)
P, T, K = 6, 5, 3


def assert_same(function):
    """Run a function of ``asarray`` in both libraries; results may be nested in tuples."""
    one, other = (function(asarray) for asarray in LIBRARIES)
    compare(one, other)


def compare(one, other):
    if isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            compare(a, b)
        return
    if isinstance(one, np.ndarray):
        assert isinstance(other, type(strict.asarray(0.0))), f"left the library: {type(other)}"
        assert one.shape == other.shape
    else:
        assert type(one) is type(other)
    assert_allclose(np.asarray(other), one, rtol=1e-8, atol=1e-8)


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def factors(asarray, core=False):
    point = random_factors(1, P, T, K, 2 if core else K, core=core)
    parts = (None if a is None else asarray(a) for a in (point.F, point.S, point.G, point.shared))
    return Factors(*parts, point.offset, asarray(point.random_intercepts))


# ---- parts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(6, 2), (2, 4)])
def test_relations(shape):
    def run(asarray):
        relation = Relation.of_factor(asarray(random(*shape)), 0.1)
        right, vector = asarray(random(shape[0], 3)), asarray(random(shape[0]))
        alpha, low = relation.inverse_parts
        products = relation @ right, relation @ vector, relation.solve(right)
        return *products, relation.trace, relation.inverse_trace, alpha, low @ low.T

    assert_same(run)


def test_direct_solvers():
    rng = np.random.default_rng(0)
    matrix, small = random_definite(rng, P), random_definite(rng, K)
    values, basis = np.linalg.eigh(matrix)
    blocks = np.stack([random_definite(rng, K + 1) for _ in range(T)]) + 2.0 * np.eye(K + 1)

    def run(asarray):
        low, right = asarray(0.2 * random(P, 2)), asarray(random(P, K, seed=1))
        solved = []
        for rank in (P, 4):
            C = Covariance(asarray(basis[:, -rank:]), asarray(values[-rank:]), 0.1)
            solved.append(TwoTermSylvester(C, asarray(small), 1.1, low)(right))
        singular = asarray(np.outer(basis[0], basis[0]))
        solved.append(solve_symmetric(singular, asarray(basis[0])))
        tasks, row, ridge = asarray(blocks), asarray(random(T, K + 1)), asarray(np.ones(K + 1))
        for coupling in (asarray(0.3 * random(T, K)), asarray(np.zeros((T, 0)))):
            solved.append(solve_coupled_blocks(tasks, coupling, ridge, row).value)
            solved.append(coupled_blocks(tasks, coupling, ridge)(row))
        return tuple(solved)

    assert_same(run)


# ---- rows ---------------------------------------------------------------------------------------


def make_fit(kind, asarray):
    data = problem(2, P, T, 8, labels=kind == "logistic")
    design = plain_design(asarray(data.X))
    cells = design, asarray(data.y), asarray(data.weights), data.offsets
    if kind == "gram":
        return GramDatafit.of_rows(*cells)
    if kind == "table":
        Y = asarray(random(len(data.y), T))
        return GramDatafit.of_table(design, Y, asarray(data.weights))
    return RowsDatafit(*cells, Logistic() if kind == "logistic" else Squared())


KINDS = ["squared", "logistic", "gram", "table"]


@pytest.mark.parametrize("side", [1_500, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_datafits(kind, side, monkeypatch):
    monkeypatch.setattr(design_module, "DENSE_SIDE", side)

    def run(asarray):
        fit, point = make_fit(kind, asarray), factors(asarray, core=True)
        expansion = fit.quadratic_at(point)
        quadratic = expansion.task_quadratic(point.feature_loadings)
        line = fit.along_segment(point, point.with_(F=2.0 * point.F))
        if side < P and kind in ("squared", "logistic"):
            covariance = fit.design.covariance(fit.weights, rank=3)
        else:
            covariance = fit.covariance
        return (
            expansion.value,
            line(0.3),
            expansion.curvature_sums,
            expansion.gradient(point.loadings),
            expansion.normal(point.F, point.loadings, point.random_intercepts),
            expansion.task_gradient(point.F),
            quadratic.hessian,
            quadratic.gradient,
            covariance_matrix(covariance),
        )

    assert_same(run)


# ---- a whole run --------------------------------------------------------------------------------


TWO = {"F": 0.1, "G": 1.0}
THREE = {"F": 0.1, "S": Ridge(1.0), "G": 1.0}


@pytest.mark.parametrize(
    "kind,penalties,direct",
    [
        ("squared", TWO, True),
        ("squared", THREE, False),
        ("logistic", TWO, False),
        ("logistic", THREE, True),
        ("gram", TWO, False),
        ("gram", {"F": L1(0.1), "S": Ridge(1.0), "G": 0.1}, True),
        ("squared", {"F": Ridge(0.1), "S": L1(0.1), "G": L1(0.1)}, True),
        ("table", TWO, True),
        ("table", TWO, False),
        ("table", {"F": 0.1, "S": Free(), "G": 1.0}, True),
    ],
)
def test_alternation(kind, penalties, direct, monkeypatch):
    if not direct:
        monkeypatch.setattr(feature_steps, "DENSE_UNKNOWNS", 0)
        monkeypatch.setattr(task_steps, "WOODBURY_WIDTH", 0)

    def run(asarray):
        fit, schedule = (
            make_fit(kind, asarray),
            Schedule(max_iter=2, tol=0.0, inner=InnerTolerance(1e-9)),
        )
        recipe = Recipe(penalties, (K, K), shared=0.5 if direct else None)
        state = start_state(fit, recipe, schedule, like=asarray(np.ones(2)))
        *_, step = alternate(fit, state, schedule)
        point = step.state.factors
        # The factors themselves are determined up to signs only.
        return step.objective, point.coef, point.intercepts, point.shared

    assert_same(run)
