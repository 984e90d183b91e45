"""The rows as the engine sees them: centred and scaled without touching the caller's array."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .arrays import DENSE_SIDE, Array, is_packed, namespace, orthonormal, taken
from .blocks import RowBlocks
from .column_moments import (
    central_moments,
    column_extent,
    column_squares,
    column_sums,
    column_units,
    standard_units,
)
from .device_design import device_largest, device_moments

_DENSE_CELLS = 2**20
_DEVICE_CELLS = 2**26
"""Cells of a block that is made dense on a device, which wants larger ones."""
_SAMPLE_CELLS = (2**19, 2**22)
"""Cells that a covariance of few, or of many columns is made from, at least."""


@dataclass(frozen=True)
class Design:
    """Standardised view ``(X - 1 meanᵀ) diag(inverse_scale)`` of dense or sparse rows.

    Centring is implicit, so sparse rows stay sparse. A constant column has inverse scale zero:
    it is a column of zeros here, whatever its size.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.design import Design
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0]])
    >>> design = Design.standardized(X, np.ones(2))
    >>> design @ np.array([[1.0], [1.0]])
    array([[-1.],
           [ 1.]])
    """

    X: Any
    shift: Array
    inverse_scale: Array

    @classmethod
    def plain(cls, X: Any) -> Design:
        """Rows as they are."""
        xp = namespace(X)
        zeros = xp.zeros(X.shape[1], dtype=X.dtype)
        return cls(X, zeros, zeros + 1.0)

    @classmethod
    def standardized(
        cls, X: Any, weights: Array, *, center: bool = True, scale: bool = True
    ) -> Design:
        """Rows centred and scaled to unit (weighted) variance, or unit mean square uncentred."""
        blocks = RowBlocks(X)
        largest = device_largest(X) if blocks.whole else column_extent(blocks)
        unit = column_units(largest, X.dtype, scale=scale)
        if blocks.whole:
            mean, second = device_moments(X, unit, weights, center)
        else:
            total = float(weights.astype(np.float64).sum())
            mean = np.zeros(X.shape[1])
            if center:
                mean = column_sums(blocks, unit, weights) / total
            squares = column_squares(blocks, unit, mean, weights)
            count = int(np.count_nonzero(weights)) if blocks.packed else None
            second = central_moments(mean, squares, total, count)
        return cls(X, *standard_units(unit, mean, second, X.shape[0], X.dtype, scale=scale))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.X.shape

    @property
    def dtype(self) -> Any:
        """Type of the entries."""
        return self.X.dtype

    @cached_property
    def blocks(self) -> RowBlocks:
        """The rows as they are given, cut for threads and cache."""
        return RowBlocks(self.X)

    def loaded(self, right: Array) -> tuple[Array, Array]:
        """``V`` and ``c`` such that the product with ``right`` is ``X V - 1 cᵀ``."""
        return self.inverse_scale[:, None] * right, self.shift @ right

    def unloaded(self, back: Array, total: Array) -> Array:
        """Product of the transpose with some ``left``, from ``Xᵀ left`` and ``leftᵀ 1``.

        ``back`` is used up.
        """
        back *= self.inverse_scale[:, None]
        back -= self.shift[:, None] * total[None, :]
        return back

    def __matmul__(self, right: Array) -> Array:
        scaled, constant = self.loaded(right)
        product = self.blocks.forward(scaled)
        product -= constant[None, :]
        return product

    def transposed_matmul(self, left: Array) -> Array:
        """Product of the transpose with ``left`` of shape (rows, k)."""
        return self.unloaded(self.blocks.backward(left), namespace(left).sum(left, axis=0))

    def dense_blocks(self) -> list[tuple[int, int]]:
        """Row ranges to be made dense one at a time."""
        rows, columns = self.shape
        cells = _DEVICE_CELLS if self.blocks.whole else _DENSE_CELLS
        size = max(1, cells // max(columns, 1))
        return [(start, min(start + size, rows)) for start in range(0, rows, size)]

    def dense_rows(self, start: int, stop: int) -> Array:
        """Standardised rows as a dense block: explicit, so that no digits cancel in a Gram."""
        if is_packed(self.X):
            block = self.X.dense(start, stop)
        else:
            block = self.X[start:stop, ...]
            block = block.toarray() if sparse.issparse(block) else block
        return block * self.inverse_scale[None, :] - self.shift[None, :]

    def take(self, rows: np.ndarray) -> Array:
        """Standardised rows of any numbers as a dense block."""
        return self.picked(rows).dense_rows(0, len(rows))

    def picked(self, rows: np.ndarray) -> Design:
        """View of rows of any numbers."""
        return Design(taken(self.X, rows), self.shift, self.inverse_scale)

    def covariance(self, weights: Array, rank: int = 16, seed: int = 0) -> Covariance:
        """Pooled weighted second moments, as a preconditioner needs them: from some of the rows.

        For few columns the whole matrix, else its leading part.
        """
        xp = namespace(weights)
        rows, columns = self.shape
        step = sample_step(rows, columns, self.blocks.filled)
        if step > 1:
            # Every so many rows: tasks lie next to each other, so each has its part.
            kept = np.arange(0, rows, step)
            sample = self.picked(kept)
            return sample.covariance(xp.take(weights, xp.asarray(kept), axis=0), rank, seed)
        total = float(xp.sum(weights))
        if columns <= DENSE_SIDE:
            return Covariance.of_moments(self.second_moments(weights) / total)
        rng = np.random.default_rng(seed)
        basis = xp.asarray(rng.standard_normal((columns, rank)), dtype=self.dtype)
        for _ in range(3):
            basis, _ = orthonormal(basis)
            basis = self.transposed_matmul(weights[:, None] * (self @ basis)) / total
        basis, triangle = orthonormal(basis)
        left, values, _ = xp.linalg.svd(triangle, full_matrices=False)
        rest = max(self._mean_square(weights, total) - float(xp.sum(values)), 0.0)
        return Covariance(basis @ left, values, rest / (columns - rank))

    def second_moments(self, weights: Array) -> Array:
        """Weighted sum of ``x xᵀ`` over the rows."""
        xp = namespace(weights)
        columns = self.shape[1]
        moments = xp.zeros((columns, columns), dtype=self.dtype)
        for start, stop in self.dense_blocks():
            # One array on both sides lets BLAS fill one triangle only.
            block = self.dense_rows(start, stop) * xp.sqrt(weights[start:stop])[:, None]
            moments = moments + block.T @ block
        return moments

    def _mean_square(self, weights: Array, total: float) -> float:
        """Trace of the pooled second moments."""
        if is_packed(self.X):
            inside = self.X.spread(weights, self.shift, self.inverse_scale)
            return inside / total + float(self.shift @ self.shift)
        if sparse.issparse(self.X):
            row_weights = np.repeat(weights, np.diff(self.X.indptr))
            blank = self.shift[self.X.indices]
            gap = self.X.data * self.inverse_scale[self.X.indices] - blank
            return float(row_weights @ (gap**2 - blank**2)) / total + float(self.shift @ self.shift)
        xp = namespace(weights)
        squares = 0.0
        for start, stop in self.dense_blocks():
            row_squares = xp.sum(self.dense_rows(start, stop) ** 2, axis=1)
            squares += float(xp.sum(weights[start:stop] * row_squares))
        return squares / total


@dataclass(frozen=True)
class Covariance:
    """Symmetric matrix ``V diag(values) Vᵀ + rest (I - V Vᵀ)``.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.design import Covariance
    >>> Covariance(np.eye(2)[:, :1], np.array([3.0]), rest=1.0).toarray()
    array([[3., 0.],
           [0., 1.]])
    """

    basis: Array
    values: Array
    rest: float

    @classmethod
    def of_moments(cls, moments: Array) -> Covariance:
        """The whole matrix, by its eigenvectors."""
        xp = namespace(moments)
        values, basis = xp.linalg.eigh(moments)
        return cls(basis, xp.clip(values, min=0.0), 0.0)

    def toarray(self) -> Array:
        """Return the dense matrix: for tests and small sizes."""
        xp = namespace(self.basis)
        eye = xp.eye(self.basis.shape[0], dtype=self.basis.dtype)
        return self.rest * eye + (self.basis * (self.values - self.rest)[None, :]) @ self.basis.T


def sample_step(rows: int, columns: int, filled: int) -> int:
    """Every how many rows one is enough for the covariance of the columns."""
    if columns <= DENSE_SIDE:
        return rows * columns // max(_SAMPLE_CELLS[0], 8 * columns**2)
    return filled // _SAMPLE_CELLS[1]
