"""Units, Grams and covariances of rows in partitions, summed up where these are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import DENSE_SIDE
from ..arrays.blocks import RowBlocks
from ..datafits.gram_datafit import GramDatafit
from ..engine.problem import row_weights
from ..linear import Scaling
from ..losses import Squared
from ..losses.loss import scaled_units, target_unit
from ..rows.design import (
    Covariance,
    Scale,
    column_extent,
    column_squares,
    column_sums,
    column_units,
    sample_step,
    standard_units,
)
from . import kernels
from .kernels import FitSpec, Sums, summed
from .partition import LabelEncoding, Partition, stacked

if TYPE_CHECKING:
    from .partitioned_data import PartitionedData


def partitioned_units(
    data: PartitionedData, *, center: bool, standardize: Scale, scale_target: bool
) -> Scaling:
    """Units of all observations."""
    workers = data.workers
    encoding = workers.scatter(data.encoding)

    def run(add: Any, work: Any, *arguments: Any) -> Any:
        common = (encoding, workers.scatter(arguments))
        return workers.total(add, workers.map(work, data.pieces, common=common))

    extent, size = run(_largest_of, _extents)
    unit = column_units(extent[0], data.dtype, scale=standardize)
    y_unit, limit = 1.0, float(np.finfo(data.dtype).max)
    if scale_target:
        y_unit = target_unit(size, limit, scale=bool(standardize))
    summing = center or standardize == "auto"
    sums, total, weight, y_sum, counted = run(summed, _means, unit, y_unit, summing)
    mean = sums / total if summing else np.zeros_like(unit, dtype=np.float64)
    y_mean = y_sum / weight if center and scale_target else 0.0
    squares, y_square = run(summed, _squares, unit, mean if center else 0.0 * mean, y_unit, y_mean)
    moments = mean, squares, total, int(counted)
    units: Any = {"rows": data.n_rows, "dtype": data.dtype, "center": center, "scale": standardize}
    shift, inverse = standard_units(extent, unit, moments, **units)
    y_shift, y_scale = 0.0, 1.0
    if scale_target:
        spread = (y_square / weight) ** 0.5
        y_shift, y_scale = scaled_units(y_mean, spread, y_unit, scale=bool(standardize))
    return Scaling(shift, inverse, y_shift, y_scale)


def _largest_of(parts: list[tuple[np.ndarray, float]]) -> tuple[np.ndarray, float]:
    return np.max([part[0] for part in parts], axis=0), max(part[1] for part in parts)


def _extents(encoding: LabelEncoding, values: tuple, piece: Partition) -> tuple[np.ndarray, float]:
    obs, _ = piece.encoded(encoding)
    return column_extent(RowBlocks(obs.X), row_weights(obs)), float(np.abs(obs.y).max())


def _means(encoding: LabelEncoding, values: tuple, piece: Partition) -> tuple[Any, ...]:
    unit, y_unit, summing = values
    obs, _ = piece.encoded(encoding)
    weights = row_weights(obs)
    sums: Any = column_sums(RowBlocks(obs.X), unit, weights) if summing else 0.0
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


def summed_grams(data: PartitionedData, units: Scaling) -> GramDatafit:
    """Second moments of every task, or of the rows that all tasks share, of all partitions."""
    workers, spec = data.workers, FitSpec(data.encoding, units, Squared())
    common = (workers.scatter(spec), data.complete)
    sums = workers.total(Sums.added, workers.map(kernels.grams, data.pieces, common=common))
    return GramDatafit(*sums.totals, *sums.spread(len(data.tasks)))


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
    rows, weights, positions = zip(*workers.values(found), strict=True)
    order = np.argsort(np.concatenate(positions))
    design = units.design(stacked(rows)[order])
    return design.covariance(np.concatenate(weights)[order])
