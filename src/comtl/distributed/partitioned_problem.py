"""From rows in partitions to the problem that the engine solves."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import DENSE_BYTES, DENSE_SIDE
from ..arrays.blocks import RowBlocks
from ..datafits.datafit import Datafit
from ..datafits.gram_datafit import GramDatafit
from ..engine.problem import Problem, row_weights, sweep_costs
from ..linear import Scaling
from ..losses import Loss, Squared
from ..losses.loss import scaled_units, target_unit
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
from . import kernels
from .kernels import FitSpec, Sums
from .partition import LabelEncoding, Partition
from .partitioned_data import PartitionedData
from .partitioned_datafit import PartitionedDatafit


def partitioned_units(
    data: PartitionedData, *, center: bool, standardize: bool, scale_target: bool
) -> tuple[Scaling, float]:
    """Units of all observations, and their weight."""
    workers = data.workers
    encoding = workers.scatter(data.encoding)

    def run(add: Any, work: Any, *arguments: Any) -> Any:
        common = (encoding, workers.scatter(arguments))
        return workers.total(add, workers.map(work, data.pieces, common=common))

    largest, size = run(_largest_of, _extents)
    unit = column_units(largest, data.dtype, scale=standardize)
    y_unit, limit = 1.0, float(np.finfo(data.dtype).max)
    if scale_target:
        y_unit = target_unit(size, limit, scale=standardize)
    sums, total, weight, y_sum, counted = run(summed, _means, unit, y_unit, center)
    mean = sums / total if center else np.zeros_like(unit, dtype=np.float64)
    y_mean = y_sum / weight if center and scale_target else 0.0
    squares, y_square = run(summed, _squares, unit, mean, y_unit, y_mean)
    second = central_moments(mean, squares, total, int(counted))
    shift, inverse = standard_units(unit, mean, second, data.n_rows, data.dtype, scale=standardize)
    y_shift, y_scale = 0.0, 1.0
    if scale_target:
        spread = (y_square / weight) ** 0.5
        y_shift, y_scale = scaled_units(y_mean, spread, y_unit, scale=standardize)
    return Scaling(shift, inverse, y_shift, y_scale), weight


def _largest_of(parts: list[tuple[np.ndarray, float]]) -> tuple[np.ndarray, float]:
    return np.max([part[0] for part in parts], axis=0), max(part[1] for part in parts)


def summed(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Sums of the entries of tuples."""
    return tuple(sum(values[1:], values[0]) for values in zip(*parts, strict=True))


def _extents(encoding: LabelEncoding, values: tuple, piece: Partition) -> tuple[np.ndarray, float]:
    obs, _ = piece.encoded(encoding)
    return column_extent(RowBlocks(obs.X)), float(np.abs(obs.y).max())


def _means(encoding: LabelEncoding, values: tuple, piece: Partition) -> tuple[Any, ...]:
    unit, y_unit, center = values
    obs, _ = piece.encoded(encoding)
    weights = row_weights(obs)
    sums: Any = column_sums(RowBlocks(obs.X), unit, weights) if center else 0.0
    own = obs.weights.astype(np.float64)
    y = float(own @ (obs.y / y_unit).astype(np.float64))
    total = float(weights.astype(np.float64).sum())
    return sums, total, float(own.sum()), y, np.count_nonzero(weights)


def _squares(encoding: LabelEncoding, values: tuple, piece: Partition) -> tuple[Any, ...]:
    unit, mean, y_unit, y_mean = values
    obs, _ = piece.encoded(encoding)
    squares = column_squares(RowBlocks(obs.X), unit, mean, row_weights(obs))
    gap = (obs.y / y_unit).astype(np.float64) - y_mean
    return squares, float(obs.weights.astype(np.float64) @ gap**2)


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
    spec = FitSpec(data.encoding, units, loss)
    return Problem(_datafit(data, spec, (width, fits), weight, grams=grams), units)


def _datafit(
    data: PartitionedData, spec: FitSpec, work: tuple[int, int], weight: float, *, grams: bool
) -> Datafit:
    """Grams where one table would have them: they are summed up once and live here."""
    features, tasks = data.n_features, len(data.tasks)
    if grams and spec.loss.quadratic and features <= DENSE_SIDE:
        if data.complete:
            return table_grams(data, spec)
        size = data.dtype.itemsize * tasks * (features + 1) ** 2
        width, fits = work
        costs = sweep_costs(tasks, data.n_rows, features, width, data.nnz, fits)
        if data.plain and size <= DENSE_BYTES and costs["gram"] <= costs["rows"]:
            return task_grams(data, spec)
    return PartitionedDatafit(
        data.workers,
        data.pieces,
        data.task_index,
        spec,
        features,
        tasks,
        weight,
        lambda: pooled_covariance(data, spec),
        [None] * len(data.pieces),
    )


def partitioned_grams(data: PartitionedData, units: Scaling) -> GramDatafit:
    """Second moments of each task's observations in given units."""
    return task_grams(data, FitSpec(data.encoding, units, Squared()))


def task_grams(data: PartitionedData, spec: FitSpec) -> GramDatafit:
    """Second moments of every task, summed up over the partitions."""
    workers = data.workers
    found = workers.map(kernels.grams, data.pieces, common=(workers.scatter(spec),))
    return GramDatafit(*workers.total(Sums.added, found).spread(len(data.tasks)))


def table_grams(data: PartitionedData, spec: FitSpec) -> GramDatafit:
    """Second moments of rows that all tasks share, summed up over the partitions."""
    workers = data.workers
    found = workers.map(kernels.table_grams, data.pieces, common=(workers.scatter(spec),))
    sums = workers.total(Sums.added, found)
    return GramDatafit(sums.totals[0], *sums.spread(len(data.tasks)))


def pooled_covariance(data: PartitionedData, spec: FitSpec) -> Covariance:
    """Second moments of the features, from the rows that one table would take."""
    workers, units = data.workers, spec.units
    step = sample_step(data.n_rows, data.n_features, data.nnz)
    common = (workers.scatter(spec), step)
    if data.n_features <= DENSE_SIDE:
        found = workers.map(kernels.moments, data.pieces, data.firsts, common=common)
        total, weight = workers.total(summed, found)
        return Covariance.of_moments(total / weight)
    found = workers.map(kernels.sample, data.pieces, data.firsts, common=common)
    rows, weights, positions = zip(*workers.each(found), strict=True)
    order = np.argsort(np.concatenate(positions))
    together = sparse.csr_array(sparse.vstack(rows)) if data.packed else np.concatenate(rows)
    design = Design(together[order], units.shift, units.inverse_scale)
    return design.covariance(np.concatenate(weights)[order])
