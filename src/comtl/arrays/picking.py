"""Rows and entries of given numbers, wherever they lie; numbers are those of the host."""

from __future__ import annotations

import numpy as np

from .spaces import Array, is_packed, namespace, on_device

BLOCK_CELLS = 2**26
"""Numbers of rows on a device that are looked at in one go."""


def taken(values: Array, numbers: np.ndarray) -> Array:
    """Entries or rows of given numbers, where the values lie.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import taken
    >>> taken(np.array([1.0, 2.0, 3.0]), np.array([2, 0]))
    array([3., 1.])
    """
    if not on_device(values):
        return values[numbers]
    if is_packed(values):
        return values.take(numbers)
    xp = namespace(values)
    return xp.take(values, xp.asarray(numbers), axis=0)


def picked(table: Array, rows: np.ndarray, columns: np.ndarray) -> Array:
    """Single entries of a table, where it lies.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import picked
    >>> picked(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1]), np.array([0]))
    array([3.])
    """
    if not on_device(table):
        return table[rows, columns]
    flat = namespace(table).reshape(table, (-1,))
    return taken(flat, rows * table.shape[1] + columns)


def row_parts(values: Array, like: Array | None = None) -> list[Array]:
    """Rows in consecutive parts of a bounded size, without a copy, or cut as another matrix is.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import row_parts
    >>> len(row_parts(np.ones((3, 2))))
    1
    """
    like = values if like is None else like
    rows = values.shape[0]
    size = max(1, BLOCK_CELLS // max(1, like.shape[1] if len(like.shape) == 2 else 1))
    return [values[start : min(start + size, rows), ...] for start in range(0, rows, size)]
