"""Sparse rows on a device, maps from rows to observations, and entries of arrays of any library."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import array_api_compat
import numpy as np

from .backends import Array, is_device_sparse, namespace, on_device
from .segments import segment_sum


class RowSelector:
    """Map from rows to observations on a device: observation ``i`` is row ``rows[i]``."""

    packed_on_device = True

    def __init__(self, rows: np.ndarray, count: int, like: Array) -> None:
        xp = namespace(like)
        self.shape, self.dtype, self.nnz = (len(rows), count), like.dtype, len(rows)
        self.data = xp.asarray(rows)
        order = np.argsort(rows, kind="stable")
        used, sizes = np.unique(rows, return_counts=True)
        place = np.full(count, len(used))
        place[used] = np.arange(len(used))
        self._order, self._place = xp.asarray(order), xp.asarray(place)
        self._offsets = np.concatenate([[0], np.cumsum(sizes)])

    def __matmul__(self, values: Array) -> Array:
        """Values of the observations from those of the rows."""
        return namespace(values).take(values, self.data, axis=0)

    def backward(self, values: Array) -> Array:
        """Sum over the observations of each row, zero for a row without observations."""
        xp = namespace(values)
        sums = segment_sum(xp.take(values, self._order, axis=0), self._offsets)
        none = xp.zeros((1, *values.shape[1:]), dtype=values.dtype)
        return xp.take(xp.concat([sums, none], axis=0), self._place, axis=0)


class DeviceCSR:
    """CSR of torch or CuPy; the transpose is kept as a copy, since libraries are slow at it."""

    packed_on_device = True

    def __init__(self, data: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> None:
        self.data, self.indices, self.indptr = data, indices, indptr
        self.shape = (int(shape[0]), int(shape[1]))

    @classmethod
    def of(cls, X: Any) -> DeviceCSR:
        """Rows as comtl holds them, without a copy where they are CSR already."""
        if isinstance(X, DeviceCSR):
            return X
        if array_api_compat.is_torch_array(X):
            X = X.detach()
            X = X if "sparse_csr" in str(X.layout) else X.to_sparse_csr()
            return cls(X.values(), X.col_indices(), X.crow_indices(), X.shape)
        X = X.tocsr()
        return cls(X.data, X.indices, X.indptr, X.shape)

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def nnz(self) -> int:
        return int(self.data.shape[0])

    def astype(self, dtype: Any) -> DeviceCSR:
        values = namespace(self.data).astype(self.data, dtype)
        return DeviceCSR(values, self.indices, self.indptr, self.shape)

    @cached_property
    def _native(self) -> Any:
        return _native(self.data, self.indices, self.indptr, self.shape)

    @cached_property
    def _transposed(self) -> Any:
        if array_api_compat.is_torch_array(self.data):
            csc = self._native.to_sparse_csc()
            parts = csc.values(), csc.row_indices(), csc.ccol_indices()
            return _native(*parts, self.shape[::-1])
        return self._native.T.tocsr()

    def __matmul__(self, right: Array) -> Array:
        return self._native @ right if right.shape[1] else self._none(right, self.shape[0])

    def backward(self, left: Array) -> Array:
        return self._transposed @ left if left.shape[1] else self._none(left, self.shape[1])

    def _none(self, like: Array, rows: int) -> Array:
        return namespace(like).zeros((rows, 0), dtype=like.dtype)

    def take(self, rows: np.ndarray) -> DeviceCSR:
        xp = namespace(self.data)
        if array_api_compat.is_cupy_array(self.data):
            return DeviceCSR.of(self._native[xp.asarray(rows)])
        chosen = xp.asarray(rows)
        starts = xp.take(self.indptr, chosen, axis=0)
        sizes = xp.take(self.indptr, chosen + 1, axis=0) - starts
        indptr = xp.cumulative_sum(sizes, include_initial=True, dtype=self.indptr.dtype)
        total = int(indptr[-1])
        index = xp.repeat(starts - indptr[:-1], sizes) + xp.arange(total, dtype=self.indptr.dtype)
        values, indices = (xp.take(part, index, axis=0) for part in (self.data, self.indices))
        return DeviceCSR(values, indices, indptr, (len(rows), self.shape[1]))

    def dense(self, start: int, stop: int) -> Array:
        if array_api_compat.is_cupy_array(self.data):
            return self._native[start:stop].toarray()
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - self.indptr[start]
        shape = (stop - start, self.shape[1])
        return _native(self.data[first:last], self.indices[first:last], indptr, shape).to_dense()

    def split(self, column: int) -> tuple[Array, DeviceCSR]:
        """A column, dense, and the rows without it."""
        xp = namespace(self.data)
        kept = self.indices != column
        one = xp.astype(xp.arange(self.shape[1]) == column, self.dtype)
        counts = xp.cumulative_sum(xp.astype(kept, self.indptr.dtype), include_initial=True)
        indptr = xp.astype(xp.take(counts, self.indptr, axis=0), self.indptr.dtype)
        indices = self.indices[kept]
        indices = indices - xp.astype(indices > column, indices.dtype)
        rest = DeviceCSR(self.data[kept], indices, indptr, (self.shape[0], self.shape[1] - 1))
        return (self @ one[:, None])[:, 0], rest

    @cached_property
    def rows(self) -> Array:
        """Row of each stored entry."""
        xp = namespace(self.data)
        entries = xp.arange(self.nnz, dtype=self.indptr.dtype)
        return xp.searchsorted(self.indptr, entries, side="right") - 1


def _native(values: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Any:
    """Matrix of the library itself, which shares the arrays."""
    if array_api_compat.is_torch_array(values):
        import torch

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
            return torch.sparse_csr_tensor(indptr, indices, values, shape, check_invariants=False)
    import cupyx.scipy.sparse

    return cupyx.scipy.sparse.csr_matrix((values, indices, indptr), shape=shape)


def take(values: Array, numbers: np.ndarray) -> Array:
    """Entries or rows of given numbers, where the values lie."""
    if type(values) is np.ndarray:
        return values.take(numbers, axis=0)  # many times faster than by an index
    if not on_device(values):
        return values[numbers]
    if is_device_sparse(values):
        return values.take(numbers)
    xp = namespace(values)
    return xp.take(values, xp.asarray(numbers), axis=0)


def take_pairs(table: Array, rows: np.ndarray, columns: np.ndarray) -> Array:
    """Single entries of a table, where it lies."""
    if not on_device(table):
        return table[rows, columns]
    flat = namespace(table).reshape(table, (-1,))
    return take(flat, rows * table.shape[1] + columns)


def per_entry(values: Array, rows: Any) -> Array:
    """The value, one for each of some sparse rows, that belongs to each stored entry."""
    if is_device_sparse(rows):
        return take(values, rows.rows)
    return np.repeat(values, np.diff(rows.indptr))


def extreme_entries(rows: Any, kept: Array | None = None) -> tuple[Array, Array]:
    """Largest and least stored value, the latter negative, in each column of sparse rows.

    Only of the entries that are ``kept``, if given; -inf where there are none.
    """
    xp = namespace(rows)
    found = []
    for values in (rows.data, -rows.data):
        values = values if kept is None else xp.where(kept, values, -xp.inf)
        largest = xp.full(rows.shape[1], -xp.inf, dtype=rows.dtype)
        if array_api_compat.is_torch_array(values):
            indices = xp.astype(rows.indices, xp.int64)
            largest.scatter_reduce_(0, indices, values, reduce="amax")
        elif array_api_compat.is_cupy_array(values):
            import cupyx

            cupyx.scatter_max(largest, rows.indices, values)
        else:
            np.maximum.at(largest, rows.indices, values)
        found.append(largest)
    return found[0], found[1]
