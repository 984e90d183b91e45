"""Rows in partitions that live elsewhere: one broadcast and one reduction for each product.

The factors stay here. A partition gets what it needs of them: all of ``F``, and of the tasks those
that it has rows of. What comes back is added up on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from ..arrays import Array
from ..datafits.datafit import Datafit, LocalQuadratic, TaskQuadratic
from ..factors import Factors
from ..rows.design import Covariance
from . import kernels as shares
from .kernels import Terms
from .sums import Sums
from .workers import Future, Workers

_numbers = count()
"""What tells points apart."""

MAX_PARTITIONS_PER_TASK = 4
"""Partitions that a task has rows in, on average, from which all tasks go to every worker."""
MAX_LOCAL_NUMBERS = 2**18
"""Numbers up to which what the partitions say is added up here, with no task for it."""


class PartitionedDatafit(Datafit):
    """Observations in partitions, in the terms of a fit; ``labels`` pool the tasks of each."""

    name = "partitions"

    def __init__(
        self,
        workers: Workers,
        pieces: list[Future],
        task_index: list[np.ndarray],
        terms: Terms,
        size: tuple[int, int],
        n_weighted: float,
        covariance: Callable[[], Covariance],
        labels: list[np.ndarray] | None = None,
    ) -> None:
        self.workers, self.pieces, self.task_index = workers, pieces, task_index
        self.terms, self.loss = terms, terms.loss
        self.n_features, self.n_tasks = size
        self.n_weighted, self._covariance = n_weighted, covariance
        self.labels = [None] * len(pieces) if labels is None else labels
        self._entries = sum(map(len, task_index))
        self.curvatures: Array | None = None  # of a quadratic loss: the same at every point
        self.terms_held = workers.scatter(terms)

    @cached_property
    def covariance(self) -> Covariance:
        return self._covariance()

    def run(
        self,
        work: Callable[..., Sums],
        *columns: Any,
        common: tuple[Any, ...] = (),
        size: tuple[int, int] = (0, 1),
    ) -> Sums:
        """Sum of ``work`` over partitions; ``size`` counts numbers per feature and per task."""
        common = (self.terms_held, *common)
        handles = self.workers.map(work, self.pieces, self.labels, *columns, common=common)
        numbers = len(self.pieces) * self.n_features * size[0] + self._entries * size[1]
        small = numbers <= MAX_LOCAL_NUMBERS
        return self.workers.total(Sums.added, handles, small=small)

    def by_task(self, sums: Sums) -> tuple[Array, ...]:
        return sums.spread(self.n_tasks)

    def held(self, *arrays: Array) -> list[Future]:
        """What each partition needs of arrays with an entry for every task."""
        if self._entries > MAX_PARTITIONS_PER_TASK * self.n_tasks:
            return [self.workers.scatter(shares.Whole(arrays))] * len(self.task_index)
        own = [tuple(array[task_index] for array in arrays) for task_index in self.task_index]
        return [self.workers.scatter(part) for part in own]

    def quadratic_at(self, point: Factors) -> PartitionedLocalQuadratic:
        return PartitionedLocalQuadratic(self, point)

    def with_tasks_pooled(self, labels: np.ndarray, count: int) -> PartitionedDatafit:
        own = [labels[task_index] for task_index in self.task_index]
        return PartitionedDatafit(
            self.workers,
            self.pieces,
            [np.unique(part) for part in own],
            self.terms,
            (self.n_features, count),
            self.n_weighted,
            lambda: self.covariance,
            own,
        )

    def losses(self, weights: Array, intercepts: Array) -> Array:
        common = self.workers.scatter(weights), self.workers.scatter(intercepts)
        size = (0, weights.shape[0])
        return self.by_task(self.run(shares.losses, common=common, size=size))[0]

    def along_segment(self, start: Factors, stop: Factors) -> Callable[[float], float]:
        first, last = (BroadcastPoint(self, point) for point in (start, stop))

        def value(share: float) -> float:
            common = (first.common, last.common, share)
            return float(self.run(shares.along, first.own, last.own, common=common).whole[0])

        return value


class BroadcastPoint:
    """A point as the workers get it, sent when it is first asked for."""

    def __init__(self, datafit: PartitionedDatafit, point: Factors) -> None:
        self.datafit, self.point, self.number = datafit, point, next(_numbers)

    @cached_property
    def common(self) -> Future:
        point = self.point
        told = (self.number, point.F, point.S, point.shared, point.offset)
        return self.datafit.workers.scatter(told)

    @cached_property
    def own(self) -> list[Future]:
        return self.datafit.held(self.point.G, self.point.random_intercepts)


class PartitionedLocalQuadratic(LocalQuadratic):
    """Derivatives of the loss at a point, summed up over the partitions."""

    def __init__(self, datafit: PartitionedDatafit, point: Factors) -> None:
        self.datafit, self.at = datafit, BroadcastPoint(datafit, point)
        self._value: float | None = None
        self._ready: tuple[Array, Array, Array] | None = None
        self._loadings: tuple[Array, list[Future]] | None = None
        self._curvatures = datafit.curvatures

    def _run(
        self,
        work: Callable[..., Sums],
        *columns: Any,
        common: tuple[Any, ...] = (),
        size: tuple[int, int] = (0, 1),
    ) -> Sums:
        common = (self.at.common, *common)
        return self.datafit.run(work, self.at.own, *columns, common=common, size=size)

    def _held(self, loadings: Array) -> list[Future]:
        """Mixing of the tasks, sent once for all products with it."""
        if self._loadings is None or self._loadings[0] is not loadings:
            self._loadings = loadings, self.datafit.held(loadings)
        return self._loadings[1]

    @property
    def value(self) -> float:
        if self._value is None:
            self._value = float(self._run(shares.value).whole[0])
        return self._value

    def value_with(self, loadings: Array) -> float:
        self._ready = loadings, *self._gradient(loadings)
        return self.value

    @property
    def curvature_sums(self) -> Array:
        if self._curvatures is None:
            (self._curvatures,) = self.datafit.by_task(self._run(shares.curvature_sums))
            if self.datafit.loss.quadratic:
                self.datafit.curvatures = self._curvatures
        return self._curvatures

    def _gradient(self, loadings: Array) -> tuple[Array, Array]:
        sums = self._run(shares.gradient, self._held(loadings), size=(loadings.shape[1], 1))
        self._value = float(sums.whole[0])
        return sums.whole[1], self.datafit.by_task(sums)[0]

    def gradient(self, loadings: Array) -> tuple[Array, Array]:
        ready, self._ready = self._ready, None  # handed out once: callers add to it
        if ready is not None and np.array_equal(ready[0], loadings):
            return ready[1], ready[2]
        return self._gradient(loadings)

    def normal(self, step: Array, loadings: Array, intercepts: Array) -> tuple[Array, Array]:
        fit = self.datafit
        own = fit.held(intercepts)
        common = (fit.workers.scatter(step),)
        size = (loadings.shape[1], 1)
        sums = self._run(shares.normal, self._held(loadings), own, common=common, size=size)
        return sums.whole[0], fit.by_task(sums)[0]

    def task_gradient(self, features: Array) -> Array:
        common = (self.datafit.workers.scatter(features),)
        sums = self._run(shares.task_gradient, common=common, size=(0, features.shape[1]))
        return self.datafit.by_task(sums)[0]

    def task_quadratic(self, features: Array) -> TaskQuadratic:
        own = features is self.at.point.F
        common = (None if own else self.datafit.workers.scatter(features),)
        size = (0, (features.shape[1] + 1) ** 2)
        sums = self._run(shares.task_quadratic, common=common, size=size)
        self._value = float(sums.whole[0])
        hessian, gradient = self.datafit.by_task(sums)
        return TaskQuadratic(hessian, gradient, self._value)
