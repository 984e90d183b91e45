"""Tasks of one population whose rows are in partitions: Grams and bounds are summed up there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import with_ones
from ..arrays.segments import local_offsets
from ..hierarchical.likelihoods import Bernoulli, Bound
from ..hierarchical.logistic_bound import ClassRows, summed_bound
from ..hierarchical.population import evenly_scaled
from ..hierarchical.posterior import Posterior
from ..hierarchical.task_data import TaskRows
from ..linear import Scaling
from ..losses import Logistic
from ..rows.design import Scale
from .kernels import FitSpec, Sums
from .partition import Partition

if TYPE_CHECKING:
    from .partitioned_data import PartitionedData


@dataclass(frozen=True, eq=False)
class PartitionedPopulation:
    """Observations in partitions, their units, and the columns of weights that are meant."""

    data: PartitionedData
    units: Scaling
    columns: np.ndarray

    def of_columns(self, columns: np.ndarray) -> PartitionedPopulation:
        return replace(self, columns=columns)

    @property
    def task_data(self) -> TaskRows:
        """Second moments of every task."""
        return TaskRows.of_grams(self.data.grams_of(self.units))

    @property
    def bernoulli(self) -> Bernoulli:
        """Likelihood of two classes."""
        return Bernoulli.of(self._bound)

    def _bound(self, posterior: Posterior | None) -> Bound:
        """Sum of the bounds of all partitions, which suit a posterior best."""
        data, workers = self.data, self.data.workers
        effects: list[Any] = [None] * len(data.pieces)
        if posterior is not None:
            number = np.full(len(data.tasks), -1)
            number[self.columns] = np.arange(len(self.columns))
            arrays = posterior.weights, posterior.covariances
            # Columns that are not of the population get weights too, which nobody looks at.
            effects = [tuple(array[number[index]] for array in arrays) for index in data.task_index]
        spec = workers.scatter(FitSpec(data.encoding, self.units, Logistic()))
        effects = [workers.scatter(part) for part in effects]
        sums = workers.total(Sums.added, workers.map(_bound, data.pieces, effects, common=(spec,)))
        return summed_bound(*(array[self.columns] for array in sums.spread(len(data.tasks))))


def partitioned_population(
    obs: PartitionedData, *, standardize: Scale, classification: bool
) -> PartitionedPopulation:
    """Population of the observations, in units that all partitions share."""
    units = obs.units(center=True, standardize=standardize or True, scale_target=not classification)
    units = units if standardize else evenly_scaled(units)
    return PartitionedPopulation(obs, units, np.arange(len(obs.tasks)))


def _bound(spec: FitSpec, piece: Partition, effects: Any) -> Sums:
    """Quadratic bound of each task's rows."""
    obs, task_index = piece.encoded(spec.encoding)
    design = spec.units.design(obs.X if obs.rows is None else obs.X[obs.rows])
    tasks, size = obs.n_tasks, obs.n_features + 1
    totals = tuple(np.zeros((tasks, *shape)) for shape in ((size, size), (), (size,), ()))
    for part, block_rows in design.dense_blocks():
        first, last, local = local_offsets(obs.offsets, part.start, part.stop)
        rows = with_ones(block_rows)
        inside = None if effects is None else [array[first:last] for array in effects]
        sums = ClassRows(rows, obs.y[part], obs.weights[part], local).sums(inside)
        for total, array in zip(totals, sums, strict=True):
            total[first:last] += array
    return Sums((), task_index, totals)
