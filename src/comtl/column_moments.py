"""Extent, sums and moments of the columns of rows, and the units that follow from them.

Each is a sum over rows, so that the parts of rows which lie apart may be added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .arrays import Array, namespace
from .blocks import RowBlocks, added

_WIDTH = 4  # Columns of a product that takes about as long as the moments of a block.


def column_extent(blocks: RowBlocks) -> np.ndarray:
    """Largest absolute value of each column."""

    def part(number: int) -> np.ndarray:
        return np.max([_extent(block.rows) for block in blocks.chunk(number)], axis=0)

    return np.max(list(blocks.each(part, _WIDTH)), axis=0)


def _extent(rows: Any) -> np.ndarray:
    if not sparse.issparse(rows):
        return np.maximum(rows.max(axis=0), -rows.min(axis=0))
    largest = np.zeros(rows.shape[1], rows.dtype)
    np.maximum.at(largest, rows.indices, np.abs(rows.data))
    return largest


def column_units(largest: Array, dtype: Any, *, scale: bool) -> Array:
    """Sizes of the columns to sum them up in, so that squares stay within range."""
    xp = namespace(largest)
    if not scale and not bool(xp.all(largest < float(xp.finfo(dtype).max) ** 0.25)):
        raise ValueError(
            "X has values too large to square safely; rescale its columns or leave "
            "standardize=True."
        )
    return xp.where(largest > 0, largest, xp.ones_like(largest))


def column_sums(blocks: RowBlocks, unit: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted sums of the columns over ``unit``, in double precision."""
    weights, unit, columns = weights.astype(np.float64), unit.astype(np.float64), blocks.shape[1]

    def part(number: int) -> np.ndarray:
        sums = np.zeros(columns)
        for block in blocks.chunk(number):
            share = weights[block.start : block.stop]
            if blocks.packed:
                filled = np.repeat(share, np.diff(block.rows.indptr)) * block.rows.data
                sums += np.bincount(block.rows.indices, filled, minlength=columns) / unit
            else:
                sums += share @ (block.rows / unit)
        return sums

    return added(blocks.each(part, _WIDTH))


def column_squares(
    blocks: RowBlocks, unit: np.ndarray, mean: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Weighted squares about the mean of what is stored of each column, in double precision.

    Of sparse rows also the weight and the number of entries stored, as further rows.
    """
    weights, unit, columns = weights.astype(np.float64), unit.astype(np.float64), blocks.shape[1]

    def part(number: int) -> np.ndarray:
        sums = np.zeros((3, columns))
        for block in blocks.chunk(number):
            share = weights[block.start : block.stop]
            if blocks.packed:
                places = block.rows.indices
                each = np.repeat(share, np.diff(block.rows.indptr))
                gap = block.rows.data / unit[places] - mean[places]
                for row, entry in enumerate((each * gap**2, each, each > 0)):
                    sums[row] += np.bincount(places, entry, minlength=columns)
            else:
                sums[0] += share @ (block.rows / unit - mean) ** 2
        return sums

    return added(blocks.each(part, _WIDTH))


def central_moments(
    mean: np.ndarray, squares: np.ndarray, total: float, counted: int | None
) -> np.ndarray:
    """Second moments about the mean, from :func:`column_squares` of rows of weight ``total``.

    ``counted`` is the number of rows with a weight, for sparse ones.
    """
    inside, filled, stored = squares
    if counted is None:
        return inside / total
    # Exactly zero where every row is stored: a difference of sums would leave its rounding.
    blank = np.where(stored < counted, np.maximum(total - filled, 0.0), 0.0)
    return (inside + blank * mean**2) / total


def standard_units(
    unit: Array, mean: Array, second: Array, rows: int, dtype: Any, *, scale: bool
) -> tuple[Array, Array]:
    """Shift and inverse scale of the columns, from their moments over ``unit``."""
    xp = namespace(second)
    # The mean of n equal numbers is off by some roundings of double precision.
    tiny = float(np.finfo(np.float64).eps) * (rows + 10)
    constant = second <= (tiny * xp.abs(mean)) ** 2
    inverse = xp.ones_like(unit)
    if scale:
        with np.errstate(over="ignore", divide="ignore"):
            inverse = 1.0 / xp.sqrt(xp.where(constant, xp.ones_like(second), second)) / unit
    if not bool(xp.all(xp.isfinite(inverse))):
        bad = int(xp.argmin(xp.astype(xp.isfinite(inverse), xp.int8)))
        raise ValueError(f"Column {bad} of X is too small to scale; multiply it up first.")
    inverse = xp.astype(xp.where(constant, xp.zeros_like(inverse), inverse), dtype)
    return xp.astype(mean * (unit * inverse), dtype), inverse
