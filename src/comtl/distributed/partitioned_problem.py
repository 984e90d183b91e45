"""From rows in partitions to the problem that the engine solves."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import DENSE_BYTES, DENSE_SIDE
from ..datafits.datafit import Datafit
from ..datafits.gram_datafit import GramDatafit
from ..engine.problem import (
    Problem,
    Scaling,
    row_weights,
    sweep_costs,
    target_unit,
    target_units_of,
)
from ..losses import Loss, Squared
from ..rows.blocks import RowBlocks
from ..rows.design import (
    Covariance,
    Design,
    central_moments,
    column_extent,
    column_squares,
    column_sums,
    column_units,
    sample_step,
    standard_units,
)
from . import kernels as shares
from .kernels import Terms
from .partition import LabelEncoding, Partition
from .partitioned_data import PartitionedData
from .partitioned_datafit import PartitionedDatafit
from .sums import Sums
from .workers import concat_lists


def partitioned_units(
    data: PartitionedData, *, center: bool, standardize: bool, scale_target: bool
) -> tuple[Scaling, float]:
    """Units of all observations, and their weight."""
    workers = data.workers
    view = workers.scatter(data.view)

    def run(add: Any, work: Any, *told: Any) -> Any:
        common = (view, workers.scatter(told))
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
    return Scaling(shift, inverse, y_shift, y_scale), weight


def _largest_of(parts: list[tuple[np.ndarray, float]]) -> tuple[np.ndarray, float]:
    return np.max([part[0] for part in parts], axis=0), max(part[1] for part in parts)


def summed(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Sums of the entries of tuples."""
    return tuple(sum(values[1:], values[0]) for values in zip(*parts, strict=True))


def _extents(view: LabelEncoding, told: tuple[()], piece: Partition) -> tuple[np.ndarray, float]:
    cells, _ = piece.seen(view)
    return column_extent(RowBlocks(cells.X)), float(np.abs(cells.y).max())


def _means(view: LabelEncoding, told: tuple[Any, ...], piece: Partition) -> tuple[Any, ...]:
    unit, y_unit, center = told
    cells, _ = piece.seen(view)
    weights = row_weights(cells)
    sums: Any = column_sums(RowBlocks(cells.X), unit, weights) if center else 0.0
    own = cells.weights.astype(np.float64)
    y = float(own @ (cells.y / y_unit).astype(np.float64))
    total = float(weights.astype(np.float64).sum())
    return sums, total, float(own.sum()), y, np.count_nonzero(weights)


def _squares(view: LabelEncoding, told: tuple[Any, ...], piece: Partition) -> tuple[Any, ...]:
    unit, mean, y_unit, y_mean = told
    cells, _ = piece.seen(view)
    squares = column_squares(RowBlocks(cells.X), unit, mean, row_weights(cells))
    gap = (cells.y / y_unit).astype(np.float64) - y_mean
    return squares, float(cells.weights.astype(np.float64) @ gap**2)


def build_partitioned_problem(
    data: PartitionedData,
    loss: Loss,
    *,
    center: bool,
    standardize: bool,
    scale_target: bool,
    width: int,
    grams: bool = True,
    fits: int = 1,
) -> Problem:
    """Sum up units and Grams over the partitions, or leave the rows there."""
    units, weight = partitioned_units(
        data, center=center, standardize=standardize, scale_target=scale_target
    )
    terms = Terms(data.view, units, loss)
    return Problem(_datafit(data, terms, (width, fits), weight, grams=grams), units)


def _datafit(
    data: PartitionedData, terms: Terms, work: tuple[int, int], weight: float, *, grams: bool
) -> Datafit:
    """Grams where one table would have them: they are summed up once and live here."""
    features, tasks = data.n_features, len(data.tasks)
    if grams and terms.loss.quadratic and features <= DENSE_SIDE:
        if data.complete:
            return table_grams(data, terms)
        size = data.dtype.itemsize * tasks * (features + 1) ** 2
        width, fits = work
        costs = sweep_costs(tasks, data.n_rows, features, width, data.nnz, fits)
        if data.plain and size <= DENSE_BYTES and costs["gram"] <= costs["rows"]:
            return task_grams(data, terms)
    return PartitionedDatafit(
        data.workers,
        data.pieces,
        data.task_index,
        terms,
        (features, tasks),
        weight,
        lambda: pooled_covariance(data, terms),
    )


def partitioned_grams(data: PartitionedData, units: Scaling) -> GramDatafit:
    """Second moments of each task's observations in given units."""
    return task_grams(data, Terms(data.view, units, Squared()))


def task_grams(data: PartitionedData, terms: Terms) -> GramDatafit:
    """Second moments of every task, summed up over the partitions."""
    workers = data.workers
    found = workers.map(shares.grams, data.pieces, common=(workers.scatter(terms),))
    return GramDatafit(*workers.total(Sums.added, found).spread(len(data.tasks)))


def table_grams(data: PartitionedData, terms: Terms) -> GramDatafit:
    """Second moments of rows that all tasks share, summed up over the partitions."""
    workers = data.workers
    found = workers.map(shares.table_grams, data.pieces, common=(workers.scatter(terms),))
    sums = workers.total(Sums.added, found)
    return GramDatafit(sums.whole[0], *sums.spread(len(data.tasks)))


def pooled_covariance(data: PartitionedData, terms: Terms) -> Covariance:
    """Second moments of the features, from the rows that one table would take."""
    workers, units = data.workers, terms.units
    step = sample_step(data.n_rows, data.n_features, data.nnz)
    common = (workers.scatter(terms), step)
    if data.n_features <= DENSE_SIDE:
        found = workers.map(shares.moments, data.pieces, data.firsts, common=common)
        total, weight = workers.total(summed, found)
        return Covariance.of_moments(total / weight)
    found = workers.map(shares.samples, data.pieces, data.firsts, common=common)
    rows, weights, positions = zip(*workers.total(concat_lists, found), strict=True)
    order = np.argsort(np.concatenate(positions))
    together = sparse.csr_array(sparse.vstack(rows)) if data.packed else np.concatenate(rows)
    design = Design(together[order], units.shift, units.inverse_scale)
    return design.covariance(np.concatenate(weights)[order])
