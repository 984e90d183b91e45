"""The array namespace of the data, and the few operations the array API lacks.

The engine is written against the array API standard, so that it follows whatever library the
rows came in. This is the only file that may name a library.
"""

from __future__ import annotations

from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
from scipy import sparse

Array = Any
"""An array of any library that follows the array API standard."""

# Formed P x P or T x T arrays (pooled covariance, Grams, eigenbases) stay within these bounds.
DENSE_SIDE = 1_500
DENSE_BYTES = 256 * 2**20
TALL = 2**13
"""Rows above which a thin factorisation goes by inner products."""


def namespace(*arrays: Array) -> Any:
    """Return the array namespace of dense arrays; SciPy sparse matrices count as NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import namespace
    >>> namespace(np.ones(3)).sum(np.ones(3))
    np.float64(3.0)
    """
    if type(arrays[0]) is np.ndarray and len(arrays) == 1:  # called hundreds of times a sweep
        return array_api_compat.numpy
    if all(isinstance(a, np.ndarray | sparse.sparray | sparse.spmatrix) for a in arrays):
        return array_api_compat.numpy
    return array_api_compat.array_namespace(*(a for a in arrays if not sparse.issparse(a)))


def to_numpy(values: Array) -> np.ndarray:
    """Copy of an array for NumPy, wherever it lies; NumPy's own as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import to_numpy
    >>> to_numpy(np.ones(2))
    array([1., 1.])
    """
    if isinstance(values, np.ndarray):
        return values
    if array_api_compat.is_torch_array(values):
        return values.detach().cpu().numpy()
    return values.get() if array_api_compat.is_cupy_array(values) else np.array(values)


def segment_sum(values: Array, offsets: np.ndarray) -> Array:
    """Sum consecutive rows: entry ``t`` is the sum of ``values[offsets[t]:offsets[t + 1]]``.

    Every segment must hold at least one row.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import segment_sum
    >>> segment_sum(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 3]))
    array([3., 3.])
    """
    xp = namespace(values)
    if array_api_compat.is_numpy_array(values):
        return np.add.reduceat(values, offsets[:-1], axis=0)
    total = xp.cumulative_sum(values, axis=0, include_initial=True)
    edges = xp.asarray(np.asarray(offsets), device=array_api_compat.device(values))
    bounds = xp.take(total, edges, axis=0)
    return bounds[1:, ...] - bounds[:-1, ...]


def norm(values: Array) -> float:
    """Euclidean norm of all entries.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import norm
    >>> norm(np.array([[3.0], [4.0]]))
    5.0
    """
    return float(dot(values, values)) ** 0.5


def positive(values: Array) -> Array:
    """Entries above zero, and zero for the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import positive
    >>> positive(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return 0.5 * (values + abs(values))


def dot(left: Array, right: Array) -> float:
    """Inner product of two arrays of one shape, over all entries.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import dot
    >>> dot(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    11.0
    """
    if type(left) is np.ndarray and type(right) is np.ndarray:
        return float(np.vdot(left, right))
    xp = namespace(left, right)
    return float(xp.matmul(xp.reshape(left, (-1,)), xp.reshape(right, (-1,))))


def row_dots(left: Array, right: Array) -> Array:
    """Inner product of each row of one matrix with that of another.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import row_dots
    >>> row_dots(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([11.])
    """
    if array_api_compat.is_numpy_array(left):
        return np.einsum("ik,ik->i", left, right)
    return namespace(left).sum(left * right, axis=1)


def local_offsets(offsets: np.ndarray, start: int, stop: int) -> tuple[int, int, np.ndarray]:
    """First and last segment with cells in ``start:stop``, and their bounds counted from start.

    A segment may straddle the range; it is then cut.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import local_offsets
    >>> local_offsets(np.array([0, 5, 8, 20]), 6, 10)
    (1, 3, array([0, 2, 4]))
    """
    first = int(np.searchsorted(offsets, start, side="right")) - 1
    last = int(np.searchsorted(offsets, stop, side="left"))
    return first, last, np.clip(offsets[first : last + 1], start, stop) - start


def segment_gram(values: Array, weights: Array, offsets: np.ndarray) -> Array:
    """Weighted Gram matrix of each segment of rows, ``(T, K, K)``.

    Segments of similar length are padded to one length and multiplied in one batch.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import segment_gram
    >>> segment_gram(np.array([[1.0], [2.0], [3.0]]), np.ones(3), np.array([0, 2, 3])).ravel()
    array([5., 9.])
    """
    xp = namespace(values)
    sizes = np.diff(offsets)
    width = values.shape[1]
    parts, order = [], []
    for tasks in similar_sizes(sizes):
        index, inside = padded_index(offsets, tasks)
        flat = xp.asarray(index.reshape(-1))
        block = xp.reshape(xp.take(values, flat, axis=0), (*index.shape, width))
        share = xp.reshape(xp.take(weights, flat, axis=0), index.shape)
        share = xp.where(xp.asarray(inside), share, xp.zeros_like(share))
        parts.append(xp.matmul(xp.matrix_transpose(block * share[:, :, None]), block))
        order.append(tasks)
    back = np.argsort(np.concatenate(order))
    return xp.take(xp.concat(parts, axis=0), xp.asarray(back), axis=0)


def segment_forms(values: Array, matrices: Array, offsets: np.ndarray) -> Array:
    """Quadratic form ``xᵀ C_t x`` of each row with the matrix of its segment, ``(n,)``.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import segment_forms
    >>> segment_forms(np.array([[1.0], [2.0]]), np.array([[[3.0]]]), np.array([0, 2]))
    array([ 3., 12.])
    """
    xp = namespace(values)
    sizes = np.diff(offsets)
    parts, order = [], []
    for tasks in similar_sizes(sizes):
        index, inside = padded_index(offsets, tasks)
        flat = xp.asarray(index.reshape(-1))
        block = xp.reshape(xp.take(values, flat, axis=0), (*index.shape, values.shape[1]))
        own = xp.take(matrices, xp.asarray(tasks), axis=0)
        forms = xp.sum(xp.matmul(block, own) * block, axis=2)
        parts.append(xp.reshape(forms, (-1,))[xp.asarray(inside.reshape(-1))])
        order.append(index[inside])
    back = np.argsort(np.concatenate(order))
    return xp.take(xp.concat(parts, axis=0), xp.asarray(back), axis=0)


def padded_index(offsets: np.ndarray, segments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of some segments, a segment a line, and which of them are more than padding.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import padded_index
    >>> padded_index(np.array([0, 2, 3]), np.array([0, 1]))[0]
    array([[0, 1],
           [2, 0]])
    """
    sizes = np.diff(offsets)[segments]
    steps = np.arange(sizes.max())
    inside = steps[None, :] < sizes[:, None]
    return np.where(inside, offsets[:-1][segments][:, None] + steps[None, :], 0), inside


def orthonormal(matrix: Array) -> tuple[Array, Array]:
    """Orthonormal basis ``Q`` of the columns of a tall matrix, and ``R`` with ``Q R`` the matrix.

    For many rows by way of the small matrix of inner products, many times faster than LAPACK's
    factorisations; directions below the square root of the precision are then columns of zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import orthonormal
    >>> basis, rest = orthonormal(np.array([[3.0], [4.0]]))
    >>> (basis @ rest).round(6)
    array([[3.],
           [4.]])
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


def similar_sizes(sizes: np.ndarray) -> list[np.ndarray]:
    """Group segment numbers by length, within a factor of two."""
    octave = np.frexp(sizes.astype(float))[1]
    order = np.argsort(octave, kind="stable")
    cuts = np.flatnonzero(np.diff(octave[order])) + 1
    return np.split(order, cuts)


def with_ones(values: Array) -> Array:
    """Append a column of ones to a matrix, or to each of many.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import with_ones
    >>> with_ones(np.array([[2.0], [3.0]]))
    array([[2., 1.],
           [3., 1.]])
    """
    xp = namespace(values)
    ones = xp.ones((*values.shape[:-1], 1), dtype=values.dtype)
    return xp.concat([values, ones], axis=-1)


def with_corner(matrix: Array) -> Array:
    """Append a row and a column of zeros with a one in the corner, for the intercept.

    Of many matrices at once, each gets its own.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import with_corner
    >>> with_corner(np.array([[2.0, 3.0]]))
    array([[2., 3., 0.],
           [0., 0., 1.]])
    """
    xp = namespace(matrix)
    *many, rows, columns = matrix.shape
    lifted = xp.zeros((*many, rows + 1, columns + 1), dtype=matrix.dtype)
    lifted[..., :-1, :-1] = matrix
    lifted[..., -1, -1] = 1.0
    return lifted
