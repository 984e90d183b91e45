"""Centred and scaled views of rows, and the moments of columns that they need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import DENSE_SIDE, Array, is_device_sparse, namespace, orthonormal, take
from ..arrays.backends import is_sparse
from ..arrays.blocks import DEVICE_ENTRIES, Block, RowBlocks
from ..arrays.packed import extreme_entries, per_entry

Scale = bool | str
"""Whether columns are scaled to unit variance; "auto": but for those of two values."""
_SHARE = 1e-9  # Of a variance, by which it may be less than that of two values.
_WIDTH = 4  # Columns of a product that takes about as long as the moments of a block.


def column_extent(blocks: RowBlocks, weights: Array) -> Array:
    """Largest absolute value of each column; least and largest of rows with a weight.

    Of sparse rows the latter are those of stored entries, infinite where there are none.
    """
    xp = namespace(blocks.X)
    weighed = bool(xp.all(weights > 0))

    def extremes(rows: Any, kept: Array | None) -> list[Array]:
        if is_sparse(rows):
            return list(extreme_entries(rows, None if kept is None else per_entry(kept, rows)))
        low = high = rows
        if kept is not None:
            low, high = (xp.where(kept[:, None], rows, end) for end in (xp.inf, -xp.inf))
        return [xp.max(high, axis=0), -xp.min(low, axis=0)]

    def largest(block: Block) -> Array:
        high, low = extremes(block.rows, None)
        ends = [high, low] if weighed else extremes(block.rows, weights[block.obs] > 0)
        return xp.stack([xp.maximum(high, low), *ends])

    def part(number: int) -> Array:
        return reduce(xp.maximum, (largest(block) for block in blocks.chunk(number)))

    return reduce(xp.maximum, blocks.each(part, _WIDTH))


def column_units(largest: Array, dtype: Any, *, scale: Scale) -> Array:
    """Sizes of the columns to sum them up in, so that squares stay within range."""
    xp = namespace(largest)
    if not scale and not bool(xp.all(largest < float(xp.finfo(dtype).max) ** 0.25)):
        raise ValueError(
            "X has values too large to square safely; rescale its columns or leave "
            'standardize="auto".'
        )
    return xp.where(largest > 0, largest, xp.ones_like(largest))


def column_sums(blocks: RowBlocks, unit: Array, weights: Array) -> Array:
    """Weighted sums of the columns over ``unit``, in double precision."""
    xp = namespace(unit)
    weights, unit = xp.astype(weights, xp.float64), xp.astype(unit, xp.float64)

    def sums(block: Block) -> Array:
        rows, share = block.rows, weights[block.obs]
        if not is_sparse(rows):
            return share @ (xp.astype(rows, xp.float64, copy=False) / unit)
        filled = per_entry(share, rows) * rows.data
        return xp.bincount(rows.indices, weights=filled, minlength=rows.shape[1]) / unit

    return blocks.total(sums, _WIDTH)


def column_squares(blocks: RowBlocks, unit: Array, mean: Array, weights: Array) -> Array:
    """Weighted squares about the mean; of sparse rows also weight and number of stored entries."""
    xp = namespace(unit)
    weights, unit = xp.astype(weights, xp.float64), xp.astype(unit, xp.float64)

    def squares(block: Block) -> Array:
        rows, share = block.rows, weights[block.obs]
        if not is_sparse(rows):
            return share @ (xp.astype(rows, xp.float64, copy=False) / unit - mean) ** 2
        each, places = per_entry(share, rows), rows.indices
        gap = rows.data / take(unit, places) - take(mean, places)
        entries = each * gap**2, each, xp.astype(each > 0, xp.float64)
        # Beyond the standard, but all libraries with sparse rows have it.
        counts = [xp.bincount(places, weights=e, minlength=rows.shape[1]) for e in entries]
        return xp.stack(counts)

    return blocks.total(squares, _WIDTH)


def central_moments(mean: Array, squares: Array, total: float, counted: int) -> Array:
    """Second moments about the mean, for sparse rows from those ``counted`` as having a weight."""
    if squares.ndim == 1:
        return squares / total
    xp = namespace(squares)
    inside, filled, stored = squares
    # Exactly zero where every row is stored: a difference of sums would leave its rounding.
    blank = xp.where(stored < counted, xp.clip(total - filled, min=0.0), xp.zeros_like(filled))
    return (inside + blank * mean**2) / total


def half_ranges(
    extent: Array, unit: Array, mean: Array, variance: Array, rounding: Array, blank: Array | None
) -> Array:
    """Half the range of columns of two values, zero for others; moments are over ``unit``.

    Only two values have all the variance that their range and their mean allow.
    """
    xp = namespace(variance)
    high, low = (xp.astype(end, xp.float64) for end in (extent[1, ...], -extent[2, ...]))
    if blank is not None:
        high = xp.where(blank, xp.clip(high, min=0.0), high)
        low = xp.where(blank, xp.clip(low, max=0.0), low)
    room = (high / unit - mean) * (mean - low / unit)
    two = (variance > 0.0) & (xp.abs(room - variance) <= _SHARE * variance + rounding)
    return xp.where(two, 0.5 * high - 0.5 * low, xp.zeros_like(high))


def standard_units(
    extent: Array,
    unit: Array,
    moments: tuple[Array, Array, float, int],
    *,
    rows: int,
    dtype: Any,
    center: bool,
    scale: Scale,
) -> tuple[Array, Array]:
    """Shift and inverse scale of the columns, from :func:`central_moments` over ``unit``."""
    mean, squares, total, counted = moments
    xp = namespace(squares)
    centre = mean if center else xp.zeros_like(mean)
    second = central_moments(centre, squares, total, counted)
    # The mean of n equal numbers is off by some roundings of double precision.
    tiny = float(np.finfo(np.float64).eps) * (rows + 10)
    constant = second <= (tiny * xp.abs(centre)) ** 2
    inverse = xp.ones_like(unit)
    with np.errstate(over="ignore", divide="ignore"):
        if scale:
            inverse = 1.0 / xp.sqrt(xp.where(constant, xp.ones_like(second), second)) / unit
        if scale == "auto":
            blank = squares[2, ...] < counted if squares.ndim > 1 else None
            variance = second - (mean - centre) ** 2
            half = half_ranges(extent, unit, mean, variance, tiny * second, blank)
            shared = half > 0.0
            inverse = xp.where(shared, 1.0 / xp.where(shared, half, xp.ones_like(half)), inverse)
    # Room is left for what the weights of a column are multiplied by.
    fits = inverse < 1e-8 * float(xp.finfo(dtype).max)
    if not bool(xp.all(fits)):
        bad = int(xp.argmin(xp.astype(fits, xp.int8)))
        raise ValueError(f"Column {bad} of X is too small to scale; multiply it up first.")
    inverse = xp.astype(xp.where(constant, xp.zeros_like(inverse), inverse), dtype)
    return xp.astype(centre * (unit * inverse), dtype), inverse


_DENSE_ENTRIES = 2**20
_SAMPLE_ENTRIES = (2**19, 2**22)
"""Observations that a covariance of few, or of many columns is made from, at least."""


@dataclass(frozen=True)
class Design:
    """View ``(X - 1 meanᵀ) diag(inverse_scale)`` of rows; a constant column becomes zero."""

    X: Any
    shift: Array
    inverse_scale: Array

    @classmethod
    def standardized(
        cls, X: Any, weights: Array, *, center: bool = True, scale: Scale = True
    ) -> Design:
        """Rows centred and scaled to unit (weighted) variance, or unit mean square uncentred.

        With "auto" columns of two values have half their range for a unit: as if half of the rows
        had each, so that rare ones do not have the largest say.
        """
        blocks, xp = RowBlocks(X), namespace(weights)
        extent = column_extent(blocks, weights)
        unit = column_units(extent[0, ...], X.dtype, scale=scale)
        total = float(xp.sum(xp.astype(weights, xp.float64)))
        mean = xp.zeros(X.shape[1], dtype=xp.float64)
        if center or scale == "auto":
            mean = column_sums(blocks, unit, weights) / total
        squares = column_squares(blocks, unit, mean if center else 0.0 * mean, weights)
        moments = mean, squares, total, int(xp.count_nonzero(weights))
        units: Any = {"rows": X.shape[0], "dtype": X.dtype, "center": center, "scale": scale}
        return cls(X, *standard_units(extent, unit, moments, **units))

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    @property
    def dtype(self) -> Any:
        return self.X.dtype

    @cached_property
    def blocks(self) -> RowBlocks:
        return RowBlocks(self.X)

    def loaded(self, right: Array) -> tuple[Array, Array]:
        """``V`` and ``c`` such that the product with ``right`` is ``X V - 1 cᵀ``."""
        return self.inverse_scale[:, None] * right, self.shift @ right

    def unloaded(self, back: Array, total: Array) -> Array:
        """Transposed product from ``Xᵀ left``, which is overwritten, and ``leftᵀ 1``."""
        back *= self.inverse_scale[:, None]
        back -= self.shift[:, None] * total[None, :]
        return back

    def __matmul__(self, right: Array) -> Array:
        scaled, constant = self.loaded(right)
        product = self.blocks.forward(scaled)
        product -= constant[None, :]
        return product

    def transposed_matmul(self, left: Array) -> Array:
        return self.unloaded(self.blocks.backward(left), namespace(left).sum(left, axis=0))

    def dense_blocks(self) -> Iterator[tuple[slice, Array]]:
        """Standardised rows made dense block by block, and where these lie."""
        rows, columns = self.shape
        entries = DEVICE_ENTRIES if self.blocks.on_device else _DENSE_ENTRIES
        size = max(1, entries // max(columns, 1))
        for start in range(0, rows, size):
            obs = slice(start, min(start + size, rows))
            yield obs, self.dense_rows(obs.start, obs.stop)

    def dense_rows(self, start: int, stop: int) -> Array:
        """Standardised rows as a dense block: explicit, so that no digits cancel in a Gram."""
        if is_device_sparse(self.X):
            block = self.X.dense(start, stop)
        else:
            block = self.X[start:stop, ...]
            block = block.toarray() if sparse.issparse(block) else block
        return block * self.inverse_scale[None, :] - self.shift[None, :]

    def picked(self, rows: np.ndarray) -> Design:
        return Design(take(self.X, rows), self.shift, self.inverse_scale)

    def covariance(self, weights: Array, rank: int = 16, seed: int = 0) -> Covariance:
        """Pooled second moments for the preconditioner: sampled, and of many columns a part."""
        xp = namespace(weights)
        rows, columns = self.shape
        step = sample_step(rows, columns, self.blocks.nnz)
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
        for obs, rows in self.dense_blocks():
            # One array on both sides lets BLAS fill one triangle only.
            block = rows * xp.sqrt(weights[obs])[:, None]
            moments = moments + block.T @ block
        return moments

    def _mean_square(self, weights: Array, total: float) -> float:
        """Trace of the pooled second moments."""
        xp = namespace(weights)
        used = self.inverse_scale != 0.0
        unit = 1.0 / xp.where(used, self.inverse_scale, xp.ones_like(self.inverse_scale))
        squares = column_squares(self.blocks, unit, self.shift, weights)
        second = central_moments(self.shift, squares, total, int(xp.count_nonzero(weights)))
        return float(xp.sum(xp.where(used, second, xp.zeros_like(second))))


@dataclass(frozen=True)
class Covariance:
    """Symmetric matrix ``V diag(values) Vᵀ + rest (I - V Vᵀ)``."""

    basis: Array
    values: Array
    rest: float

    @classmethod
    def of_moments(cls, moments: Array) -> Covariance:
        xp = namespace(moments)
        values, basis = xp.linalg.eigh(moments)
        return cls(basis, xp.clip(values, min=0.0), 0.0)


def sample_step(rows: int, columns: int, filled: int) -> int:
    """Every how many rows one is enough for the covariance of the columns."""
    if columns <= DENSE_SIDE:
        return rows * columns // max(_SAMPLE_ENTRIES[0], 8 * columns**2)
    return filled // _SAMPLE_ENTRIES[1]
