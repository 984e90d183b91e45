"""Rows in partitions that live elsewhere: one broadcast and one reduction for each product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..datafits.datafit import Datafit, LocalQuadratic, TaskQuadratic
from ..factors import Factors
from ..linear import Scaling
from ..losses import Loss
from ..rows.design import Covariance
from . import kernels
from .executors import Future
from .kernels import Sums
from .partitioned_problem import pooled_covariance

if TYPE_CHECKING:
    from .partitioned_data import PartitionedData

MAX_PARTITIONS_PER_TASK = 4
"""Partitions that a task has rows in, on average, from which all tasks go to every worker."""
MAX_LOCAL_NUMBERS = 2**18
"""Numbers up to which what the partitions say is added up here, with no task for it."""


@dataclass(eq=False)
class PartitionedDatafit(Datafit):
    """Observations in partitions, in the terms of a fit."""

    data: PartitionedData
    spec: kernels.FitSpec
    make_covariance: Callable[[], Covariance]  # shared with the fits of pooled tasks
    task_index: list[np.ndarray]  # numbers of the tasks of each partition
    n_tasks: int
    n_weighted: float = 0.0

    name = "partitions"

    @classmethod
    def of(cls, data: PartitionedData, units: Scaling, loss: Loss) -> PartitionedDatafit:
        spec = kernels.FitSpec(data.encoding, units, loss)
        covariance = cache(partial(pooled_covariance, data, spec))
        fit = cls(data, spec, covariance, data.task_index, data.n_tasks)
        fit.n_weighted = float(fit.run(kernels.n_weighted).totals[0])
        return fit

    def __post_init__(self) -> None:
        self.loss, self.n_features = self.spec.loss, self.data.n_features
        self.workers = self.data.workers
        self.curvatures: Array | None = None  # of a quadratic loss: the same at every point
        self._entries = sum(map(len, self.task_index))
        self._spec = self.workers.scatter(self.spec)

    @property
    def covariance(self) -> Covariance:
        return self.make_covariance()

    def run(
        self,
        work: Callable[..., Sums],
        *columns: Any,
        common: tuple[Any, ...] = (),
        size: tuple[int, int] = (0, 1),
    ) -> Sums:
        """Sum of ``work`` over partitions; ``size`` counts numbers per feature and per task."""
        common = (self._spec, *common)
        handles = self.workers.map(work, self.data.pieces, *columns, common=common)
        numbers = len(self.data.pieces) * self.n_features * size[0] + self._entries * size[1]
        small = numbers <= MAX_LOCAL_NUMBERS
        return self.workers.total(Sums.added, handles, small=small)

    def by_task(self, sums: Sums) -> tuple[Array, ...]:
        return sums.spread(self.n_tasks)

    def by_partition(self, *arrays: Array) -> list[Future]:
        """What each partition needs of arrays with an entry for every task."""
        if self._entries > MAX_PARTITIONS_PER_TASK * self.n_tasks:
            return [self.workers.scatter(kernels.AllTasks(arrays))] * len(self.task_index)
        own = [tuple(array[task_index] for array in arrays) for task_index in self.task_index]
        return [self.workers.scatter(part) for part in own]

    def quadratic_at(self, point: Factors) -> PartitionedLocalQuadratic:
        return PartitionedLocalQuadratic(self, point)

    def with_tasks_pooled(self, labels: np.ndarray, count: int) -> PartitionedDatafit:
        task_index = [np.unique(labels[part]) for part in self.task_index]
        spec = replace(self.spec, labels=labels)
        return replace(self, spec=spec, task_index=task_index, n_tasks=count)

    def losses(self, weights: Array, intercepts: Array) -> Array:
        common = self.workers.scatter(weights), self.workers.scatter(intercepts)
        size = (0, weights.shape[0])
        return self.by_task(self.run(kernels.losses, common=common, size=size))[0]

    def along_segment(self, start: Factors, stop: Factors) -> Callable[[float], float]:
        ends = [BroadcastPoint(self, point) for point in (start, stop)]

        def value(share: float) -> float:
            tasks, common = (p.by_partition for p in ends), (*(p.common for p in ends), share)
            return float(self.run(kernels.along, *tasks, common=common).totals[0])

        return value


@dataclass(eq=False)
class BroadcastPoint:
    """A point as the workers get it, sent when it is first asked for."""

    datafit: PartitionedDatafit
    point: Factors

    @cached_property
    def common(self) -> Future:
        point = self.point
        shared = kernels.SharedFactors(point.F, point.S, point.shared, point.offset)
        return self.datafit.workers.scatter(shared)

    @cached_property
    def by_partition(self) -> list[Future]:
        return self.datafit.by_partition(self.point.G, self.point.random_intercepts)


class PartitionedLocalQuadratic(LocalQuadratic):
    """Derivatives of the loss at a point, summed up over the partitions."""

    def __init__(self, datafit: PartitionedDatafit, point: Factors) -> None:
        self.datafit, self.at = datafit, BroadcastPoint(datafit, point)
        self._value: float | None = None
        self._ready: tuple[Array, Array, Array] | None = None
        self._loadings: tuple[Array, list[Future]] | None = None
        self._curvatures = datafit.curvatures

    def _ask(
        self,
        ask: Callable[..., kernels.Answer],
        *columns: Any,
        values: tuple[Any, ...] = (),
        size: tuple[int, int] = (0, 1),
    ) -> Sums:
        common = (self.at.common, ask, self.datafit.workers.scatter(values))
        columns = (self.at.by_partition, *columns)
        return self.datafit.run(kernels.at_point, *columns, common=common, size=size)

    def _sent(self, loadings: Array) -> list[Future]:
        if self._loadings is None or self._loadings[0] is not loadings:
            self._loadings = loadings, self.datafit.by_partition(loadings)
        return self._loadings[1]

    @property
    def value(self) -> float:
        if self._value is None:
            self._value = float(self._ask(kernels.value).totals[0])
        return self._value

    def value_with(self, loadings: Array) -> float:
        self._ready = loadings, *self._gradient(loadings)
        return self.value

    @property
    def curvature_sums(self) -> Array:
        if self._curvatures is None:
            (self._curvatures,) = self.datafit.by_task(self._ask(kernels.curvature_sums))
            if self.datafit.loss.quadratic:
                self.datafit.curvatures = self._curvatures
        return self._curvatures

    def _gradient(self, loadings: Array) -> tuple[Array, Array]:
        sums = self._ask(kernels.gradient, self._sent(loadings), size=(loadings.shape[1], 1))
        self._value = float(sums.totals[0])
        return sums.totals[1], self.datafit.by_task(sums)[0]

    def gradient(self, loadings: Array) -> tuple[Array, Array]:
        ready, self._ready = self._ready, None  # handed out once: callers add to it
        if ready is not None and np.array_equal(ready[0], loadings):
            return ready[1], ready[2]
        return self._gradient(loadings)

    def normal(self, step: Array, loadings: Array, intercepts: Array) -> tuple[Array, Array]:
        fit = self.datafit
        columns = self._sent(loadings), fit.by_partition(intercepts)
        size = (loadings.shape[1], 1)
        sums = self._ask(kernels.normal, *columns, values=(step,), size=size)
        return sums.totals[0], fit.by_task(sums)[0]

    def task_gradient(self, features: Array) -> Array:
        size = (0, features.shape[1])
        sums = self._ask(kernels.task_gradient, values=(features,), size=size)
        return self.datafit.by_task(sums)[0]

    def task_quadratic(self, features: Array) -> TaskQuadratic:
        values = (None if features is self.at.point.F else features,)  # The workers have that.
        size = (0, (features.shape[1] + 1) ** 2)
        sums = self._ask(kernels.task_quadratic, values=values, size=size)
        self._value = float(sums.totals[0])
        hessian, gradient = self.datafit.by_task(sums)
        return TaskQuadratic(hessian, gradient, self._value)
