"""The sparse precision of a relation, and the equations that it enters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import connected_components
from sklearn.covariance import graphical_lasso

from comtl.design import Covariance
from comtl.solvers.sparse_precision import sparse_precision
from comtl.solvers.sylvester import TwoTermSylvester
from helpers import random_definite


def smoothed(n, rank, seed=0):
    """Singular cross products plus a little, in units of their diagonal."""
    factor = np.random.default_rng(seed).standard_normal((n, rank))
    return factor @ factor.T / rank + 0.1 * np.eye(n)


def cost(matrix, rho, precision):
    outside = np.abs(precision).sum() - np.abs(np.diag(precision)).sum()
    inverse = np.trace(np.linalg.inv(precision))
    return np.sum(matrix * precision) + rho * outside + inverse


@pytest.mark.parametrize("rho", [0.0, 0.03, 0.3, 10.0])
@pytest.mark.parametrize(("n", "rank"), [(1, 1), (3, 1), (8, 3), (25, 4), (6, 12)])
def test_precision_meets_its_optimality_condition(n, rank, rho):
    """Convex, so that the subgradient decides: Θ⁻² - A is ρ times a sign where Θ is not zero."""
    matrix = smoothed(n, rank)
    solution = sparse_precision(matrix, rho, np.eye(n), tol=1e-10, max_iter=5000)
    assert solution.converged
    found = solution.value
    assert np.array_equal(found, found.T)
    inverse = np.linalg.inv(found)
    slope = inverse @ inverse - matrix
    outside = ~np.eye(n, dtype=bool)
    linked = outside & (found != 0.0)
    assert_allclose(np.diag(slope), 0.0, atol=1e-6)
    assert_allclose(slope[linked], rho * np.sign(found[linked]), atol=1e-6)
    assert np.all(np.abs(slope[outside]) <= rho + 1e-6)


def test_precision_at_both_ends():
    matrix = smoothed(7, 3)
    values, basis = np.linalg.eigh(matrix)
    exact = (basis / np.sqrt(values)) @ basis.T
    found = sparse_precision(matrix, 0.0, np.eye(7), tol=1e-10, max_iter=5000).value
    assert_allclose(found, exact, atol=1e-7)
    largest = np.abs(matrix - np.diag(np.diag(matrix))).max()
    found = sparse_precision(matrix, largest, np.eye(7), tol=1e-10, max_iter=5000).value
    assert_allclose(found, np.diag(np.diag(matrix) ** -0.5), atol=1e-7)


@pytest.mark.parametrize("rho", [0.75, 0.9, 1.1])
def test_precision_falls_apart_where_that_of_scikit_learn_does(rho):
    """The groups without links between them are those of the graphical lasso."""
    matrix = smoothed(12, 3, seed=3)
    found = sparse_precision(matrix, rho, np.eye(12), tol=1e-8, max_iter=5000).value
    _, other = graphical_lasso(matrix, rho, enet_tol=1e-6)
    (count, groups), (_, expected) = (connected_components(m != 0.0) for m in (found, other))
    assert 1 < count < 12
    assert_allclose(groups, expected)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 50), st.sampled_from([0.01, 0.1, 1.0]))
def test_precision_is_not_beaten_by_its_neighbours(n, rank, seed, rho):
    matrix, rng = smoothed(n, rank, seed), np.random.default_rng(seed)
    found = sparse_precision(matrix, rho, random_definite(rng, n)).value
    best = cost(matrix, rho, found)
    for _ in range(5):
        step = 0.02 * rng.standard_normal((n, n))
        assert best <= cost(matrix, rho, found + step + step.T + 0.1 * np.eye(n)) + 1e-6
        assert best <= cost(matrix, rho, random_definite(rng, n)) + 1e-6


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
    found = TwoTermSylvester(covariance, B, float(heights[-1]), low).solve(right).value
    assert_allclose(covariance.toarray() @ found @ B + H @ found, right, atol=1e-9)
