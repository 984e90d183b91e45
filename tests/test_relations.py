"""The low-rank relation against the dense matrix it stands for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from comtl import arrays
from comtl.penalties.relations import Relation
from helpers import random_definite

SHAPES = [(7, 3), (5, 5), (3, 6), (1, 1), (1, 4), (12, 1)]
EPSILON = 0.03


def random_factor(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def dense(factor, epsilon):
    """``(F Fᵀ + ε I)^½ / trace`` by a plain eigendecomposition."""
    values, basis = np.linalg.eigh(factor @ factor.T + epsilon * np.eye(len(factor)))
    root = (basis * np.sqrt(np.maximum(values, 0.0))) @ basis.T
    return root / np.trace(root)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("epsilon", [1e-6, EPSILON, 10.0])
def test_equals_the_dense_square_root(shape, epsilon):
    factor = random_factor(shape)
    relation, expected = Relation.of_factor(factor, epsilon), dense(factor, epsilon)
    assert relation.shape == expected.shape
    assert_allclose(relation.toarray(), expected, atol=1e-10)
    right = random_factor((shape[0], 4), seed=1)
    assert_allclose(relation @ right, expected @ right, atol=1e-10)
    assert_allclose(relation @ right[:, 0], expected @ right[:, 0], atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_solve_is_the_inverse(shape):
    relation = Relation.of_factor(random_factor(shape), EPSILON)
    inverse = np.linalg.inv(dense(random_factor(shape), EPSILON))
    right = random_factor((shape[0], 2), seed=1)
    assert_allclose(relation.solve(right), inverse @ right, rtol=1e-9, atol=1e-9)
    assert_allclose(relation.solve(right[:, 0]), inverse @ right[:, 0], rtol=1e-9, atol=1e-9)
    assert_allclose(relation.solve(relation @ right), right, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_traces_and_the_parts_of_the_inverse(shape):
    factor = random_factor(shape)
    relation = Relation.of_factor(factor, EPSILON)
    inverse = np.linalg.inv(dense(factor, EPSILON))
    alpha, low = relation.inverse_parts
    assert_allclose(alpha * np.eye(shape[0]) - low @ low.T, inverse, rtol=1e-9, atol=1e-9)
    assert_allclose(np.trace(relation.toarray()), 1.0, rtol=1e-12)
    assert_allclose(relation.inverse_trace, np.trace(inverse), rtol=1e-10)
    root = dense(factor, EPSILON) * relation.trace
    assert_allclose(root @ root, factor @ factor.T + EPSILON * np.eye(shape[0]), atol=1e-10)


@pytest.mark.parametrize("shape", [(5, 2), (3, 6), (4, 4)])
def test_of_factor_is_the_best_matrix_of_trace_one(shape):
    factor, rng = random_factor(shape), np.random.default_rng(2)

    def cost(matrix):
        inverse = np.linalg.inv(matrix)
        return np.trace(factor.T @ inverse @ factor) + EPSILON * np.trace(inverse)

    best = Relation.of_factor(factor, EPSILON).toarray()
    lowest = cost(best)
    for share in np.repeat([1.0, 0.1, 1e-3], 50):
        other = random_definite(rng, shape[0])
        assert cost((1 - share) * best + share * other / np.trace(other)) > lowest


def test_zero_factor_relates_nothing():
    relation = Relation.of_factor(np.zeros((4, 2)), EPSILON)
    assert_allclose(relation.toarray(), np.eye(4) / 4, atol=1e-15)


@pytest.mark.parametrize("rank", [4, 2, 0])
@pytest.mark.parametrize("tall", [False, True])
def test_bases_by_inner_products_are_as_good_as_those_of_lapack(tall, rank, monkeypatch):
    if tall:
        monkeypatch.setattr(arrays.algebra, "TALL", 10)
    rng = np.random.default_rng(0)
    sizes = np.array([1.0, 1e-2, 1e-4, 1e-6])[:rank]
    left, right = (np.linalg.qr(rng.standard_normal((n, 4)))[0][:, :rank] for n in (50, 4))
    matrix = (left * sizes) @ right.T
    basis, rest = arrays.orthonormal(matrix)
    assert_allclose(basis @ rest, matrix, atol=1e-12)
    lengths = np.sort(np.linalg.svd(basis, compute_uv=False))[::-1]
    assert_allclose(lengths[:rank], 1.0, atol=1e-9)
    assert_allclose(lengths * (1.0 - lengths), 0.0, atol=1e-9)
    dense = np.linalg.svd(matrix @ matrix.T + 1e-6 * np.eye(50))[0]
    relation = Relation.of_factor(matrix, 1e-6)
    expected = (
        dense @ np.diag(np.sqrt(np.linalg.eigvalsh(matrix @ matrix.T)[::-1] + 1e-6)) @ dense.T
    )
    assert_allclose(relation.toarray() * relation.trace, expected, atol=1e-9)
