"""Small operations on arrays that the standard lacks, or that NumPy does faster its own way."""

from typing import Any

import array_api_compat
import numpy as np

from .backends import Array, namespace

TALL = 2**13
"""Rows above which a thin factorisation goes by inner products."""


def norm(values: Array) -> float:
    """Euclidean norm of all entries."""
    return float(dot(values, values)) ** 0.5


def positive(values: Array) -> Array:
    """Entries above zero, and zero for the rest."""
    return 0.5 * (values + abs(values))


def dot(left: Array, right: Array) -> float:
    """Inner product of two arrays of one shape, over all entries."""
    if type(left) is np.ndarray and type(right) is np.ndarray:
        return float(np.vdot(left, right))
    xp = namespace(left, right)
    return float(xp.matmul(xp.reshape(left, (-1,)), xp.reshape(right, (-1,))))


def matrix_dot(left: Array, right: Array) -> Any:
    """Inner product of two matrices over all entries, or of each pair of many (B,)."""
    if left.ndim == 2:
        return dot(left, right)
    return namespace(left).sum(left * right, axis=(-2, -1))


def weighted_mean(values: Array, weights: Array) -> float:
    """Mean of values with weights."""
    xp = namespace(values)
    weights = xp.astype(weights, values.dtype)
    return float(xp.sum(values * weights)) / float(xp.sum(weights))


def project_simplex(rows: Array) -> Array:
    """Nearest shares of each row: not negative, summing to one."""
    xp = namespace(rows)
    # Adding a number to a row does not move its projection; without, large rows lose the one.
    rows = rows - xp.max(rows, axis=1, keepdims=True)
    ordered = xp.sort(rows, axis=1, descending=True)
    rank = xp.arange(1, rows.shape[1] + 1, dtype=rows.dtype)
    # What is taken off every entry: the largest that any number of leading ones asks for.
    excess = (xp.cumulative_sum(ordered, axis=1) - 1.0) / rank[None, :]
    return positive(rows - xp.max(excess, axis=1, keepdims=True))


def row_dots(left: Array, right: Array) -> Array:
    """Inner product of each row of one matrix with that of another."""
    if array_api_compat.is_numpy_array(left):
        return np.einsum("ik,ik->i", left, right)
    # As a product: on a GPU sums of short rows take three times as long.
    xp = namespace(left)
    return (left * right) @ xp.ones(left.shape[1], dtype=left.dtype)


def orthonormal(matrix: Array) -> tuple[Array, Array]:
    """Orthonormal basis ``Q`` of the columns of a tall matrix, and ``R`` with ``Q R`` the matrix.

    For many rows by way of the small matrix of inner products, many times faster than LAPACK's
    factorisations; directions below the square root of the precision are then columns of zeros.
    """
    xp = namespace(matrix)
    if matrix.shape[0] <= TALL:
        basis, rest = xp.linalg.qr(matrix)
        return basis, rest
    values, turn = xp.linalg.eigh(matrix.T @ matrix)
    kept = values > float(xp.finfo(values.dtype).eps) * values[-1]
    safe = xp.where(kept, values, xp.ones_like(values))
    basis = matrix @ (turn * xp.where(kept, safe**-0.5, xp.zeros_like(values))[None, :])
    eye = xp.astype(kept, basis.dtype) * xp.eye(basis.shape[1], dtype=basis.dtype)
    for _ in range(3):
        # Newton steps mend what small values have cost in orthogonality.
        gap = eye - basis.T @ basis
        if norm(gap) <= 1e2 * float(xp.finfo(values.dtype).eps):
            break
        basis = basis @ (eye + 0.5 * gap)
    return basis, basis.T @ matrix


def task_sums(values: Array) -> Any:
    """Sum over tasks, a number; of many fits one each (B,)."""
    total = namespace(values).sum(values, axis=-1)
    return total if total.ndim else float(total)


def choose(which: Any, one: Any, other: Any) -> Any:
    """One number or the other; of many the one where ``which`` holds."""
    if isinstance(which, bool):
        return one if which else other
    return namespace(which).where(which, one, other)


def along(values: Any, ndim: int) -> Any:
    """Numbers of many fits, (B,), with axes of length one up to ``ndim``; a number as it is."""
    if not getattr(values, "ndim", 0):
        return values
    return values[(slice(None), *[None] * (ndim - 1))]


def with_ones(values: Array) -> Array:
    """Append a column of ones to a matrix, or to each of many."""
    xp = namespace(values)
    ones = xp.ones((*values.shape[:-1], 1), dtype=values.dtype)
    return xp.concat([values, ones], axis=-1)


def block_matrix(rows: list[list[Array]]) -> Array:
    """Matrix, or many of them, from blocks, row by row."""
    concat = namespace(rows[0][0]).concat
    return concat([concat(row, axis=-1) for row in rows], axis=-2)


def is_one(matrix: Array) -> bool:
    """Whether this is one matrix, the identity, so that products by it can be left out."""
    if matrix.ndim > 2 or matrix.shape[0] != matrix.shape[1]:
        return False
    rows = matrix.shape[0]
    xp = namespace(matrix)
    return bool(xp.all(matrix == xp.eye(rows, dtype=matrix.dtype)))


def with_corner(matrix: Array) -> Array:
    """Append a row and a column of zeros with a one in the corner, to one matrix or to many."""
    xp = namespace(matrix)
    *many, rows, columns = matrix.shape
    lifted = xp.zeros((*many, rows + 1, columns + 1), dtype=matrix.dtype)
    lifted[..., :-1, :-1] = matrix
    lifted[..., -1, -1] = 1.0
    return lifted


def solve_symmetric(matrix: Array, right: Array, *, floor: float = 0.0) -> Array:
    """Shortest solution of a positive semidefinite system with eigenvalues of ``floor`` or more."""
    xp = namespace(matrix)
    eps = float(xp.finfo(matrix.dtype).eps)
    if floor > eps**0.5 * abs(float(xp.linalg.trace(matrix))):
        return xp.linalg.solve(matrix, right)
    values, basis = xp.linalg.eigh(0.5 * (matrix + matrix.T))
    kept = values > max(float(values[-1]) * matrix.shape[0] * eps, 0.0)
    safe = xp.where(kept, values, xp.ones_like(values))
    inverse = xp.where(kept, 1.0 / safe, xp.zeros_like(values))
    return basis @ (inverse * (basis.T @ right))
