"""Sparse rows on a device, with the products that the engine asks for."""

from __future__ import annotations

import numpy as np

from .segments import segment_sum
from .spaces import Array, namespace


class PickedRows:
    """Map from rows to cells on a device: cell ``i`` is row ``rows[i]`` of a matrix.

    Parameters
    ----------
    rows : ndarray of shape (n_cells,)
        Row of each cell.
    count : int
        Rows that there are.
    like : array
        Gives library, device and type.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.arrays import PickedRows
    >>> cells = PickedRows(np.array([2, 0, 2]), 3, np.ones(1))
    >>> cells.forward(np.array([1.0, 2.0, 3.0])), cells.backward(np.array([1.0, 2.0, 3.0]))
    (array([3., 1., 3.]), array([2., 0., 4.]))
    """

    packed_on_device = True

    def __init__(self, rows: np.ndarray, count: int, like: Array) -> None:
        xp = namespace(like)
        self.shape, self.dtype, self.nnz = (len(rows), count), like.dtype, len(rows)
        self.values = xp.asarray(rows)
        order = np.argsort(rows, kind="stable")
        used, sizes = np.unique(rows, return_counts=True)
        place = np.full(count, len(used))
        place[used] = np.arange(len(used))
        self._order, self._place = xp.asarray(order), xp.asarray(place)
        self._offsets = np.concatenate([[0], np.cumsum(sizes)])

    def forward(self, values: Array) -> Array:
        """Values of the cells from those of the rows."""
        return namespace(values).take(values, self.values, axis=0)

    def backward(self, values: Array) -> Array:
        """Sum over the cells of each row, zero for a row without cells."""
        xp = namespace(values)
        sums = segment_sum(xp.take(values, self._order, axis=0), self._offsets)
        none = xp.zeros((1, *values.shape[1:]), dtype=values.dtype)
        return xp.take(xp.concat([sums, none], axis=0), self._place, axis=0)
