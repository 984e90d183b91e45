"""Tasks of one population whose rows are in partitions: their sums are made there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import with_ones
from ..arrays.segments import local_offsets
from ..hierarchical.laplace import ClassRows, SummedClasses
from ..hierarchical.likelihoods import Bernoulli
from ..hierarchical.population import evenly_scaled
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
        return Bernoulli.of(SummedClasses(self))

    def sums(self, coef: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """Sums of the quadratic model by task, as :meth:`ClassRows.sums` has them."""
        return self._summed(() if coef is None else (coef,))

    def skew_sums(self, coef: np.ndarray, covariances: np.ndarray) -> np.ndarray:
        """As :meth:`ClassRows.skew_sums`."""
        return self._summed((coef, covariances))[0]

    def _summed(self, effects: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        data, workers = self.data, self.data.workers
        number = np.full(len(data.tasks), -1)
        number[self.columns] = np.arange(len(self.columns))
        # Columns that are not of the population get weights too, which nobody looks at.
        own = [tuple(array[number[index]] for array in effects) for index in data.task_index]
        spec = workers.scatter(FitSpec(data.encoding, self.units, Logistic()))
        parts = workers.map(_sums, data.pieces, list(map(workers.scatter, own)), common=(spec,))
        sums = workers.total(Sums.added, parts)
        return tuple(array[self.columns] for array in sums.spread(len(data.tasks)))


def partitioned_population(
    obs: PartitionedData, *, standardize: Scale, classification: bool
) -> PartitionedPopulation:
    """Population of the observations, in units that all partitions share."""
    units = obs.units(center=True, standardize=standardize or True, scale_target=not classification)
    units = units if standardize else evenly_scaled(units)
    return PartitionedPopulation(obs, units, np.arange(len(obs.tasks)))


def _sums(spec: FitSpec, piece: Partition, effects: tuple[np.ndarray, ...]) -> Sums:
    """Quadratic model of each task's rows about weights, or with covariances its skewness."""
    obs, task_index = piece.encoded(spec.encoding)
    design = spec.units.design(obs.X if obs.rows is None else obs.X[obs.rows])
    totals: list[np.ndarray] = []
    for part, block_rows in design.dense_blocks():
        first, last, local = local_offsets(obs.offsets, part.start, part.stop)
        rows = ClassRows(with_ones(block_rows), obs.y[part], obs.weights[part], local)
        inside: list[Any] = [array[first:last] for array in effects]
        sums = (rows.skew_sums(*inside),) if len(inside) == 2 else rows.sums(*inside or [None])
        if not totals:
            totals = [np.zeros((obs.n_tasks, *array.shape[1:])) for array in sums]
        for total, array in zip(totals, sums, strict=True):
            total[first:last] += array
    return Sums((), task_index, tuple(totals))
