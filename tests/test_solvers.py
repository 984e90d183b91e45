"""Each solver against the explicit system it stands for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear, nnls

from comtl.arrays.algebra import solve_symmetric
from comtl.engine.feature_step import FeatureSystem
from comtl.factors import State
from comtl.penalties import L1, NonNegative, Ridge, Simplex
from comtl.penalties.learned_relation import LearnedRelation
from comtl.rows.design import Covariance
from comtl.solvers import small_blocks
from comtl.solvers.conjugate_gradient import conjugate_gradient
from comtl.solvers.proximal import largest_eigenvalue, proximal_gradient
from comtl.solvers.small_blocks import coupled_blocks, solve_coupled_blocks
from comtl.solvers.sylvester import TwoTermSylvester
from helpers import covariance_matrix, problem, random_definite, random_factors, random_orthogonal

EXACT = {"rtol": 1e-8, "atol": 1e-8}


def random_covariance(rng, P, rank):
    basis = random_orthogonal(rng, P)[:, :rank]
    return Covariance(basis, rng.uniform(0.0, 3.0, rank), 0.0 if rank == P else 0.2)


# ---- the two-term Sylvester equation ------------------------------------------------------------


@pytest.mark.parametrize("P, rank", [(7, 7), (7, 4), (7, 1), (150, 20)])
@pytest.mark.parametrize("width", [0, 1, 3])
@pytest.mark.parametrize("kind", ["any", "singular", "diagonal"])
def test_sylvester_solves_its_kronecker_system(P, rank, width, kind):
    rng = np.random.default_rng(rank + 10 * width)
    K = 3
    covariance = random_covariance(rng, P, rank)
    given = small = random_definite(rng, K)
    if kind == "singular":
        given = small = np.outer(small[0], small[0])
    elif kind == "diagonal":
        given, small = np.diagonal(small), np.diag(np.diagonal(small))
    low = random_orthogonal(rng, P)[:, :width] * rng.uniform(0.1, 1.0, width)
    penalty = 1.3 * np.eye(P) - low @ low.T
    right = rng.standard_normal((P, K))
    matrix = np.kron(covariance_matrix(covariance), small) + np.kron(penalty, np.eye(K))
    expected = np.linalg.solve(matrix, right.ravel()).reshape(P, K)
    kept = right.copy()
    assert_allclose(TwoTermSylvester(covariance, given, 1.3, low)(right), expected, **EXACT)
    assert_allclose(right, kept, rtol=0, atol=0)


@pytest.mark.parametrize("complete", [True, False])
def test_sylvester_with_as_many_columns_as_rows(complete):
    rng = np.random.default_rng(0)
    C, B, H = random_definite(rng, 6), random_definite(rng, 3), random_definite(rng, 6)
    values, basis = np.linalg.eigh(C)
    covariance = Covariance(basis, values, 0.0)
    if not complete:
        covariance = Covariance(basis[:, 2:], values[2:], 0.3)
    heights, turn = np.linalg.eigh(H)
    low = turn * np.sqrt(heights[-1] - heights)
    right = rng.standard_normal((6, 3))
    found = TwoTermSylvester(covariance, B, float(heights[-1]), low)(right)
    assert_allclose(covariance_matrix(covariance) @ found @ B + H @ found, right, atol=1e-9)


# ---- conjugate gradients ------------------------------------------------------------------------


def test_every_iterate_of_conjugate_gradients_lowers_the_quadratic():
    rng = np.random.default_rng(1)
    matrix, right = random_definite(rng, 12, low=0.01), rng.standard_normal(12)

    def quadratic(x):
        return 0.5 * x @ matrix @ x - right @ x

    values = [0.0]
    for count in range(1, 8):
        solution = conjugate_gradient(lambda x: matrix @ x, right, tol=0.0, max_iter=count)
        assert not solution.converged
        assert solution.iterations == count
        values.append(quadratic(solution.value))
    assert np.all(np.diff(values) < 0)


def test_conjugate_gradients_reach_the_tolerance_and_no_more():
    rng = np.random.default_rng(2)
    matrix, right = random_definite(rng, 30, low=0.01), rng.standard_normal(30)
    iterations = []
    for tol in (1e-1, 1e-9):
        solution = conjugate_gradient(lambda x: matrix @ x, right, tol=tol)
        iterations.append(solution.iterations)
        gap = np.linalg.norm(matrix @ solution.value - right) / np.linalg.norm(right)
        assert solution.converged and gap <= 1.01 * tol
    assert iterations[0] < iterations[1]
    zero = conjugate_gradient(lambda x: matrix @ x, 0.0 * right)
    assert zero.converged and not zero.value.any()


@pytest.mark.parametrize("strength", [0.1, 10.0])
def test_sylvester_preconditioner_saves_most_iterations(strength):
    P, T, K = 60, 40, 4
    data = problem(0, P, T, 30, rank=4, even=True).rows()
    point = random_factors(1, P, T, K)
    penalties = {"F": LearnedRelation(strength).initialised(point.F, 1e-2), "G": Ridge(1.0)}
    state = State(point, penalties, shared=0.5, intercept=True, intercept_penalty=2.0)
    system = FeatureSystem(data, data.quadratic_at(point), state)
    plain, helped = (
        conjugate_gradient(system.operator, system.right(), preconditioner=inverse, tol=1e-8)
        for inverse in (None, system.preconditioner())
    )
    assert plain.converged and helped.converged
    assert 2 * helped.iterations < plain.iterations


# ---- coupled blocks -----------------------------------------------------------------------------


def coupled_matrix(blocks, low, width):
    T, n, _ = blocks.shape
    matrix = np.zeros((T, n, T, n))
    for t in range(T):
        matrix[t, :, t, :] = blocks[t]
    coupling = np.zeros((n, n))
    coupling[:width, :width] = np.eye(width)
    return (matrix - np.einsum("st,ij->sitj", low @ low.T, coupling)).reshape(T * n, T * n)


@pytest.mark.parametrize("sliced", [False, True])
@pytest.mark.parametrize("width,uncoupled", [(3, 0), (3, 1), (0, 3)])
@pytest.mark.parametrize("T", [6, 3, 1])
def test_coupled_blocks_solve_the_dense_system(T, width, uncoupled, sliced, monkeypatch):
    if sliced:
        monkeypatch.setattr(small_blocks, "_SLICE", 80)
    rng = np.random.default_rng(T)
    n = width + uncoupled
    blocks = np.stack([random_definite(rng, n) for _ in range(T)]) + 1.2 * np.eye(n)
    low = np.linalg.qr(rng.standard_normal((T, width)))[0]
    low = np.pad(low, ((0, 0), (0, width - low.shape[1]))) * rng.uniform(0.2, 1.0, width)
    right = rng.standard_normal((T, n))
    matrix = coupled_matrix(blocks, low, width)
    ridge = rng.uniform(0.1, 0.5, n)
    bare = blocks - np.diag(ridge)
    image = coupled_blocks(bare, low, ridge)(right)
    assert_allclose(image.ravel(), matrix @ right.ravel(), **EXACT)
    solution = solve_coupled_blocks(bare, low, ridge, right)
    assert solution.solver == ("woodbury" if width else "blocks")
    assert_allclose(solution.value.ravel(), np.linalg.solve(matrix, right.ravel()), **EXACT)


def test_a_block_of_deficient_rank_is_no_error():
    z = np.array([1.0, 3.0, 1.0 / 3.0])
    blocks = 1e16 * np.outer(z, z)[None]
    right = blocks @ np.ones((3, 1))
    solution = solve_coupled_blocks(blocks, np.zeros((1, 0)), np.zeros(3), right[:, :, 0])
    assert_allclose(blocks @ solution.value[:, :, None], right, rtol=1e-6)


# ---- small symmetric systems --------------------------------------------------------------------


@pytest.mark.parametrize("rank", [6, 4, 1, 0])
def test_symmetric_systems_of_any_rank_give_the_shortest_solution(rank):
    rng = np.random.default_rng(rank)
    half = rng.standard_normal((6, rank))
    matrix, right = half @ half.T, rng.standard_normal(6)
    assert_allclose(
        solve_symmetric(matrix, right), np.linalg.pinv(matrix, rcond=1e-12) @ right, **EXACT
    )


# ---- proximal gradients -------------------------------------------------------------------------


def ista(matrix, gradient, start, penalty, steps=5_000):
    """Plain proximal gradients, no momentum, exact step length."""
    length = 1.0 / np.linalg.eigvalsh(matrix)[-1]
    point = start
    for _ in range(steps):
        slope = gradient + (matrix @ (point - start).ravel()).reshape(start.shape)
        point = penalty.prox(point - length * slope, length)
    return point


def quadratic_problem(seed, rows=5, columns=3):
    rng = np.random.default_rng(seed)
    size = rows * columns
    half, target = rng.standard_normal((2 * size, size)), rng.standard_normal(2 * size)
    return half, target, (rows, columns)


def solve_proximal(half, target, shape, penalty):
    """Minimise ``½‖A q - b‖² + penalty`` from a feasible start by the solver under test."""
    start = penalty.prox(np.ones(shape) / shape[1], 1e-12)
    alpha = penalty.curvature(start)[0]
    matrix = half.T @ half + alpha * np.eye(half.shape[1])
    gradient = (half.T @ (half @ start.ravel() - target)).reshape(shape) + penalty.gradient(start)
    solution = proximal_gradient(
        lambda d: (matrix @ d.ravel()).reshape(shape),
        gradient,
        start,
        penalty,
        tol=1e-12,
        max_iter=10_000,
    )
    assert solution.solver == "proximal" and solution.converged
    return solution.value, (matrix, gradient, start)


@pytest.mark.parametrize("seed", range(3))
def test_proximal_gradients_equal_nonnegative_least_squares(seed):
    half, target, shape = quadratic_problem(seed)
    found, _ = solve_proximal(half, target, shape, NonNegative(0.0))
    assert_allclose(found.ravel(), nnls(half, target)[0], **EXACT)
    found, _ = solve_proximal(half, target, shape, NonNegative(0.8))
    padded = np.vstack([half, 1.6**0.5 * np.eye(15)]), np.concatenate([target, np.zeros(15)])
    expected = lsq_linear(*padded, bounds=(0, np.inf), tol=1e-14, method="bvls").x
    assert_allclose(found.ravel(), expected, **EXACT)


@pytest.mark.parametrize("penalty", [L1(3.0), Simplex(), NonNegative(0.4), Ridge(0.0)])
def test_proximal_gradients_equal_a_long_plain_run(penalty):
    half, target, shape = quadratic_problem(5)
    found, (matrix, gradient, start) = solve_proximal(half, target, shape, penalty)
    assert_allclose(found, ista(matrix, gradient, start, penalty), **EXACT)


@pytest.mark.parametrize("penalty", [L1(0.5), Simplex(), NonNegative(0.3)])
def test_proximal_gradients_never_raise_the_value_however_early_they_stop(penalty):
    rng = np.random.default_rng(0)
    half = rng.standard_normal((8, 8)) * np.logspace(0, -4, 8)
    matrix = half.T @ half + penalty.curvature(np.ones((4, 2)))[0] * np.eye(8)
    start = penalty.prox(rng.random((4, 2)), 1e-12)
    gradient = rng.standard_normal((4, 2)) + penalty.gradient(start)

    def value(point):
        step = (point - start).ravel()
        smooth = 0.5 * step @ matrix @ step + gradient.ravel() @ step
        return smooth + (penalty.value(point) if isinstance(penalty, L1) else 0.0)

    def operator(step):
        return (matrix @ step.ravel()).reshape(step.shape)

    values = [value(start)]
    for count in range(1, 60):
        found = proximal_gradient(operator, gradient, start, penalty, max_iter=count).value
        assert_allclose(penalty.prox(found, 1e-12), found, atol=1e-9)
        values.append(value(found))
    assert np.all(np.diff(values) <= 0.0)


def test_largest_eigenvalue_by_power_iteration():
    matrix = random_definite(np.random.default_rng(0), 9)
    found = largest_eigenvalue(lambda d: (matrix @ d.ravel()).reshape(3, 3), np.ones((3, 3)), 500)
    assert_allclose(found, np.linalg.eigvalsh(matrix)[-1], rtol=1e-6)
    assert largest_eigenvalue(lambda d: 0.0 * d, np.ones((2, 2))) == 0.0
