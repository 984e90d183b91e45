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
from ..datafits.datafit import Datafit, Expansion, TaskQuadratic
from ..factors import Factors
from ..rows.design import Covariance
from . import kernels as shares
from .kernels import Terms
from .sums import Sums
from .workers import Handle, Workers

_numbers = count()
"""What tells points apart."""

CROWDED = 4
"""Partitions that a task has rows in, on average, from which all tasks go to every worker."""
FEW = 2**18
"""Numbers up to which what the partitions say is added up here, with no task for it."""


class PartitionedDatafit(Datafit):
    """Cells in partitions, in the terms of a fit.

    Parameters
    ----------
    workers : Workers
        Who holds the partitions.
    pieces : list of handles
        The cells of each.
    places : list of ndarray
        Numbers of the tasks of each.
    terms : Terms
        View, units and loss.
    size : tuple of int
        Features and tasks.
    n_weighted : float
        Weight of all cells.
    covariance : callable
        Makes the pooled second moments.
    labels : list of ndarray, optional
        Labels by which the tasks of each partition are taken together; ``places`` are theirs.
    """

    name = "partitions"

    def __init__(
        self,
        workers: Workers,
        pieces: list[Handle],
        places: list[np.ndarray],
        terms: Terms,
        size: tuple[int, int],
        n_weighted: float,
        covariance: Callable[[], Covariance],
        labels: list[np.ndarray] | None = None,
    ) -> None:
        self.workers, self.pieces, self.places = workers, pieces, places
        self.terms, self.loss = terms, terms.loss
        self.n_features, self.n_tasks = size
        self.n_weighted, self._covariance = n_weighted, covariance
        self.labels = [None] * len(pieces) if labels is None else labels
        self._entries = sum(map(len, places))
        self.curvatures: Array | None = None  # of a quadratic loss: the same at every point
        self.terms_held = workers.hold(terms)

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
        """Sum of what some work makes of every partition.

        ``size`` counts the numbers that it says of a feature, and of a task.
        """
        common = (self.terms_held, *common)
        handles = self.workers.map(work, self.pieces, self.labels, *columns, common=common)
        numbers = len(self.pieces) * self.n_features * size[0] + self._entries * size[1]
        small = numbers <= FEW
        return self.workers.total(Sums.added, handles, small=small)

    def by_task(self, sums: Sums) -> tuple[Array, ...]:
        """Arrays with an entry for every task."""
        return sums.spread(self.n_tasks)

    def held(self, *arrays: Array) -> list[Handle]:
        """What each partition needs of arrays with an entry for every task."""
        if self._entries > CROWDED * self.n_tasks:
            return [self.workers.hold(shares.Whole(arrays))] * len(self.places)
        own = [tuple(array[places] for array in arrays) for places in self.places]
        return [self.workers.hold(part) for part in own]

    def expand(self, point: Factors) -> PartitionedExpansion:
        return PartitionedExpansion(self, point)

    def merged(self, labels: np.ndarray, count: int) -> PartitionedDatafit:
        own = [labels[places] for places in self.places]
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
        common = self.workers.hold(weights), self.workers.hold(intercepts)
        size = (0, weights.shape[0])
        return self.by_task(self.run(shares.losses, common=common, size=size))[0]

    def line(self, start: Factors, stop: Factors) -> Callable[[float], float]:
        first, last = (Spread(self, point) for point in (start, stop))

        def value(share: float) -> float:
            common = (first.common, last.common, share)
            return float(self.run(shares.along, first.own, last.own, common=common).whole[0])

        return value


class Spread:
    """A point as the workers get it, sent when it is first asked for."""

    def __init__(self, datafit: PartitionedDatafit, point: Factors) -> None:
        self.datafit, self.point, self.number = datafit, point, next(_numbers)

    @cached_property
    def common(self) -> Handle:
        """What every partition needs."""
        point = self.point
        told = (self.number, point.F, point.S, point.shared, point.offset)
        return self.datafit.workers.hold(told)

    @cached_property
    def own(self) -> list[Handle]:
        """What each partition needs for itself."""
        return self.datafit.held(self.point.G, self.point.deviations)


class PartitionedExpansion(Expansion):
    """Derivatives of the loss at a point, summed up over the partitions."""

    def __init__(self, datafit: PartitionedDatafit, point: Factors) -> None:
        self.datafit, self.at = datafit, Spread(datafit, point)
        self._value: float | None = None
        self._ready: tuple[Array, Array, Array] | None = None
        self._mixing: tuple[Array, list[Handle]] | None = None
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

    def _held(self, mixing: Array) -> list[Handle]:
        """Mixing of the tasks, sent once for all products with it."""
        if self._mixing is None or self._mixing[0] is not mixing:
            self._mixing = mixing, self.datafit.held(mixing)
        return self._mixing[1]

    @property
    def value(self) -> float:
        if self._value is None:
            self._value = float(self._run(shares.value).whole[0])
        return self._value

    def value_with(self, mixing: Array) -> float:
        self._ready = mixing, *self._gradient(mixing)
        return self.value

    @property
    def curvature_sums(self) -> Array:
        if self._curvatures is None:
            (self._curvatures,) = self.datafit.by_task(self._run(shares.curvature_sums))
            if self.datafit.loss.quadratic:
                self.datafit.curvatures = self._curvatures
        return self._curvatures

    def _gradient(self, mixing: Array) -> tuple[Array, Array]:
        sums = self._run(shares.gradient, self._held(mixing), size=(mixing.shape[1], 1))
        self._value = float(sums.whole[0])
        return sums.whole[1], self.datafit.by_task(sums)[0]

    def gradient(self, mixing: Array) -> tuple[Array, Array]:
        ready, self._ready = self._ready, None  # handed out once: callers add to it
        if ready is not None and np.array_equal(ready[0], mixing):
            return ready[1], ready[2]
        return self._gradient(mixing)

    def normal(self, step: Array, mixing: Array, intercepts: Array) -> tuple[Array, Array]:
        fit = self.datafit
        own = fit.held(intercepts)
        common = (fit.workers.hold(step),)
        size = (mixing.shape[1], 1)
        sums = self._run(shares.normal, self._held(mixing), own, common=common, size=size)
        return sums.whole[0], fit.by_task(sums)[0]

    def task_gradient(self, features: Array) -> Array:
        common = (self.datafit.workers.hold(features),)
        sums = self._run(shares.task_gradient, common=common, size=(0, features.shape[1]))
        return self.datafit.by_task(sums)[0]

    def task_quadratic(self, features: Array) -> TaskQuadratic:
        own = features is self.at.point.F
        common = (None if own else self.datafit.workers.hold(features),)
        size = (0, (features.shape[1] + 1) ** 2)
        sums = self._run(shares.task_quadratic, common=common, size=size)
        self._value = float(sums.whole[0])
        hessian, gradient = self.datafit.by_task(sums)
        return TaskQuadratic(hessian, gradient, self._value)
