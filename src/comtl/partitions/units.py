"""Centre and scale of rows and targets in partitions, in three passes over them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..blocks import RowBlocks
from ..column_moments import (
    central_moments,
    column_extent,
    column_squares,
    column_sums,
    column_units,
    standard_units,
)
from ..problem import Units, row_weights, target_unit, target_units_of
from .data import PartitionedData
from .pieces import Piece, View


def partitioned_units(
    data: PartitionedData, *, center: bool, standardize: bool, scale_target: bool
) -> tuple[Units, float]:
    """Units of all cells, and their weight."""
    workers = data.workers
    view = workers.hold(data.view)

    def run(add: Any, work: Any, *told: Any) -> Any:
        common = (view, workers.hold(told))
        return workers.total(add, workers.map(work, data.pieces, common=common))

    largest, size = run(_largest_of, _extents)
    unit = column_units(largest, data.dtype, scale=standardize)
    y_unit = (
        target_unit(size, float(np.finfo(data.dtype).max), scale=standardize)
        if scale_target
        else 1.0
    )
    sums, total, weight, y_sum, counted = run(summed, _means, unit, y_unit, center)
    mean = sums / total if center else np.zeros_like(unit, dtype=np.float64)
    y_mean = y_sum / weight if center and scale_target else 0.0
    squares, y_square = run(summed, _squares, unit, mean, y_unit, y_mean)
    second = central_moments(mean, squares, total, int(counted) if data.packed else None)
    shift, inverse = standard_units(unit, mean, second, data.n_rows, data.dtype, scale=standardize)
    y_shift, y_scale = 0.0, 1.0
    if scale_target:
        spread = (y_square / weight) ** 0.5
        y_shift, y_scale = target_units_of(y_mean, spread, y_unit, scale=standardize)
    return Units(shift, inverse, y_shift, y_scale), weight


def _largest_of(parts: list[tuple[np.ndarray, float]]) -> tuple[np.ndarray, float]:
    return np.max([part[0] for part in parts], axis=0), max(part[1] for part in parts)


def summed(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Sums of the entries of tuples.

    Examples
    --------
    >>> from comtl.partitions.units import summed
    >>> summed([(1, 2.0), (3, 4.0)])
    (4, 6.0)
    """
    return tuple(sum(values[1:], values[0]) for values in zip(*parts, strict=True))


def _extents(view: View, told: tuple[()], piece: Piece) -> tuple[np.ndarray, float]:
    cells, _ = piece.seen(view)
    return column_extent(RowBlocks(cells.X)), float(np.abs(cells.y).max())


def _means(view: View, told: tuple[Any, ...], piece: Piece) -> tuple[Any, ...]:
    unit, y_unit, center = told
    cells, _ = piece.seen(view)
    weights = row_weights(cells)
    sums: Any = column_sums(RowBlocks(cells.X), unit, weights) if center else 0.0
    own = cells.weights.astype(np.float64)
    y = float(own @ (cells.y / y_unit).astype(np.float64))
    total = float(weights.astype(np.float64).sum())
    return sums, total, float(own.sum()), y, np.count_nonzero(weights)


def _squares(view: View, told: tuple[Any, ...], piece: Piece) -> tuple[Any, ...]:
    unit, mean, y_unit, y_mean = told
    cells, _ = piece.seen(view)
    squares = column_squares(RowBlocks(cells.X), unit, mean, row_weights(cells))
    gap = (cells.y / y_unit).astype(np.float64) - y_mean
    return squares, float(cells.weights.astype(np.float64) @ gap**2)
