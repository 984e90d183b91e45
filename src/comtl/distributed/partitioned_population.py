"""Tasks of one population whose rows are in partitions: Grams and bounds are summed up there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import segment_gram, segment_sum, with_ones
from ..arrays.segments import local_offsets
from ..datafits.gram_datafit import GramDatafit
from ..hierarchical.likelihoods import Bernoulli, Bound, Gaussian, Likelihood
from ..hierarchical.logistic_bound import bound_constant, bound_curvature, bound_xi
from ..hierarchical.population import evenly_scaled
from ..hierarchical.posterior import Posterior
from ..hierarchical.task_data import TaskGrams
from ..linear import Scaling
from ..losses import Logistic, Squared
from ..rows.design import Design
from .kernels import FitSpec, Sums
from .partition import Partition
from .partitioned_data import PartitionedData
from .partitioned_problem import partitioned_units, summed_grams


@dataclass(frozen=True, eq=False)
class PartitionedPopulation:
    """Observations in partitions, their units, and the columns of weights that are meant."""

    data: PartitionedData
    units: Scaling
    columns: np.ndarray

    @property
    def size(self) -> tuple[int, int]:
        """Number of columns of weights and of features."""
        return len(self.columns), self.data.n_features

    def of_columns(self, columns: np.ndarray) -> PartitionedPopulation:
        return replace(self, columns=columns)

    def gaussian(self, *, heteroscedastic: bool) -> Likelihood:
        spec = FitSpec(self.data.encoding, self.units, Squared())
        one_table = self.data.complete and not heteroscedastic
        return Gaussian(
            heteroscedastic, TaskGrams(summed_grams(self.data, spec, one_table=one_table))
        )

    def bernoulli(self) -> Likelihood:
        """Likelihood of two classes."""
        return Bernoulli.of(self._bound)

    def _bound(self, posterior: Posterior | None) -> Bound:
        """Sum of the bounds of all partitions, which suit a posterior best."""
        data, workers = self.data, self.data.workers
        own: list[Any] = [None] * len(data.pieces)
        if posterior is not None:
            assert posterior.covariances is not None
            own = self._by_piece(posterior.weights, posterior.covariances)
        spec = workers.scatter(FitSpec(data.encoding, self.units, Logistic()))
        own = [workers.scatter(part) for part in own]
        sums = workers.total(Sums.added, workers.map(_bound, data.pieces, own, common=(spec,)))
        gram, moment, constant, weight = (
            array[self.columns] for array in sums.spread(len(data.tasks))
        )
        grams = TaskGrams(GramDatafit(gram, moment, np.zeros(len(gram))))
        return Bound(grams, float(constant.sum()), float(weight.sum()))

    def _by_piece(self, *arrays: np.ndarray) -> list[Any]:
        """What each partition needs of arrays with an entry for each column of the population."""
        inside = np.full(len(self.data.tasks), -1)
        inside[self.columns] = np.arange(len(self.columns))
        return [tuple(array[inside[index]] for array in arrays) for index in self.data.task_index]


def partitioned_population(
    obs: PartitionedData, *, standardize: bool, classification: bool
) -> PartitionedPopulation:
    """Population of the observations, in units that all partitions share."""
    units, _ = partitioned_units(
        obs, center=True, standardize=True, scale_target=not classification
    )
    if not standardize:
        even = evenly_scaled(Design(None, units.shift, units.inverse_scale))
        units = replace(units, shift=even.shift, inverse_scale=even.inverse_scale)
    return PartitionedPopulation(obs, units, np.arange(len(obs.tasks)))


def _bound(spec: FitSpec, piece: Partition, own: Any) -> Sums:
    """Quadratic bound of each task's rows; exact where the given weights have their scores.

    Columns that are not of the population get weights too, which nobody looks at.
    """
    obs, task_index = piece.encoded(spec.encoding)
    X = obs.X if obs.rows is None else obs.X[obs.rows]
    design = spec.units.design(X)
    size, tasks = obs.n_features + 1, obs.n_tasks
    gram, moment = np.zeros((tasks, size, size)), np.zeros((tasks, size))
    constant, weight = np.zeros(tasks), np.zeros(tasks)
    for start, stop in design.dense_blocks():
        first, last, local = local_offsets(obs.offsets, start, stop)
        rows = with_ones(design.dense_rows(start, stop))
        share, signs = obs.weights[start:stop], obs.y[start:stop]
        at = np.zeros(stop - start)
        if own is not None:
            weights, covariances = own
            at = bound_xi(rows, weights[first:last], covariances[first:last], local)
        gram[first:last] += segment_gram(rows, 2.0 * share * bound_curvature(at), local)
        moment[first:last] += segment_sum(rows * (0.5 * share * signs)[:, None], local)
        constant[first:last] += segment_sum(bound_constant(share, at), local)
        weight[first:last] += segment_sum(share, local)
    return Sums((), task_index, (gram, moment, constant, weight))
