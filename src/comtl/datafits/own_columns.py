"""Products of rows with a column for each task, where a row meets the column of its own task.

So it is where ``G`` is held at the identity: all columns of a product with ``F`` but one would be
thrown away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import Array, on_device

FEWEST = 32
"""Tasks from which on it pays; see benchmarks/bench_own_weights.md."""


def own_columns(mixing: Array) -> bool:
    """Whether tasks have a column each and, at most, one more that all share.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.datafits.own_columns import own_columns
    >>> own_columns(np.eye(9)), own_columns(np.ones((9, 9)))
    (True, False)
    """
    tasks, width = mixing.shape
    if on_device(mixing) or not 0 <= width - tasks <= 1:
        return False
    square = mixing[:, :tasks]
    return (
        bool(np.all(np.diagonal(square) == 1.0))
        and int(np.count_nonzero(square)) == tasks
        and bool(np.all(mixing[:, tasks:] == 1.0))
    )


def own_weights(features: np.ndarray, tasks: int) -> np.ndarray:
    """Weights of each task, ``(P, T)``, from its column and the one that all share, if any."""
    if features.shape[1] == tasks:
        return features
    return features[:, :tasks] + features[:, tasks:]


def own_scores(rows: Any, weights: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Product of each row with the column ``codes`` of the weights ``(P, T)``.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.datafits.own_columns import own_scores
    >>> own_scores(np.ones((2, 3)), np.array([[1.0, 2.0]] * 3), np.array([0, 1]))
    array([3., 6.])
    """
    if not sparse.issparse(rows):
        return np.einsum("np,np->n", rows, weights.T[codes])
    each = np.repeat(codes, np.diff(rows.indptr))
    products = rows.data * weights[rows.indices, each]
    # Differences of running sums, which single precision has not the digits for.
    total = np.concatenate([[0.0], np.cumsum(products, dtype=np.float64)])
    return np.diff(total[rows.indptr]).astype(weights.dtype, copy=False)


def own_sums(rows: Any, values: np.ndarray, codes: np.ndarray, tasks: int) -> np.ndarray:
    """Sums ``(P, T)`` of each task's rows times their values.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.datafits.own_columns import own_sums
    >>> own_sums(np.ones((2, 1)), np.array([2.0, 3.0]), np.array([0, 1]), 2)
    array([[2., 3.]])
    """
    columns = rows.shape[1]
    if not sparse.issparse(rows):
        ends = np.arange(len(codes) + 1)
        mix = sparse.csr_array((values, codes, ends), shape=(len(codes), tasks))
        return (mix.T @ rows).T
    lengths = np.diff(rows.indptr)
    place = rows.indices.astype(np.int64) * tasks + np.repeat(codes, lengths)
    filled = rows.data * np.repeat(values, lengths)
    total = np.bincount(place, filled, minlength=columns * tasks).reshape(columns, tasks)
    return total.astype(values.dtype, copy=False)
