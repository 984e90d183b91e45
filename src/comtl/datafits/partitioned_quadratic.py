"""Tasks' quadratics where their rows are: the task step is solved there.

Tasks meet in sums over all of them only: one system of K² unknowns for the coupling, one of K1·K2
for the core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Array
from ..partitions import shares
from ..partitions.sums import Sums
from ..partitions.workers import Handle
from ..solvers.base import Solution
from ..solvers.woodbury import (
    coupling_capacity,
    meeting,
    solve_coupled_blocks,
    uncoupled_rest,
)
from .base import Quadratic, TaskQuadratic
from .partitioned import PartitionedExpansion, numbers


@dataclass(frozen=True, eq=False)
class PartitionedQuadratic(Quadratic):
    """Tasks' quadratics that stay where the rows are.

    Those of tasks that straddle partitions are added up here.

    Parameters
    ----------
    expansion : PartitionedExpansion
        What they belong to.
    features : handle or None
        Latent features, with a number; None for those of the point.
    alone : list of ndarray
        Which tasks of each partition no other has.
    straddling : ndarray
        Numbers of the tasks that several have, and
    near : TaskQuadratic
        their quadratics.
    value, slopes, curvatures
        Loss, and its derivatives by the intercepts.
    step : ndarray or None
        How far the point has moved since.
    """

    expansion: PartitionedExpansion
    features: Handle
    alone: list[np.ndarray]
    straddling: np.ndarray
    near: TaskQuadratic
    value: float
    slopes: Array
    curvatures: Array
    step: Array | None = None

    @classmethod
    def of(cls, expansion: PartitionedExpansion, features: Array) -> PartitionedQuadratic:
        """Quadratics of the latent weights of given features."""
        fit = expansion.datafit
        counts = np.bincount(np.concatenate(fit.places), minlength=fit.n_tasks)
        alone = [counts[places] == 1 for places in fit.places]
        told = None
        if features is not expansion.at.point.F:
            told = fit.workers.hold((next(numbers), features))
        handles = expansion.sent(shares.quadratic_start, alone, common=(told,))
        first, near = fit.workers.total(_both_added, handles)
        straddling = np.flatnonzero(counts > 1)
        value, (slopes, curvatures) = float(first.whole[0]), fit.by_task(first)
        blocks = TaskQuadratic(near.by_task[0], near.by_task[1], value)
        return cls(expansion, told, alone, straddling, blocks, value, slopes, curvatures)

    def _run(self, work: Callable[..., Sums], *columns: Any, front: tuple[Any, ...] = ()) -> Sums:
        """Sum of what some work makes of the tasks that partitions have alone."""
        fit = self.expansion.datafit
        moved = [None] * len(self.alone) if self.step is None else self._own(self.step)
        common = (*front, fit.terms_held, self.expansion.at.common, self.features)
        handles = fit.workers.map(
            work,
            fit.pieces,
            fit.labels,
            self.expansion.at.own,
            self.alone,
            moved,
            *columns,
            common=common,
        )
        return fit.workers.total(Sums.added, handles)

    def _own(self, array: Array) -> list[Handle]:
        """Rows of the tasks that each partition has alone."""
        fit = self.expansion.datafit
        parts = zip(fit.places, self.alone, strict=True)
        return [fit.workers.hold(array[places[mask]]) for places, mask in parts]

    def _near(self) -> TaskQuadratic:
        moved = None if self.step is None else self.step[self.straddling]
        return self.near if moved is None else self.near.moved(moved)

    def _spread(self, sums: Sums, near: tuple[Array, ...]) -> list[Array]:
        """Arrays of all tasks, from those of partitions and those here."""
        full = []
        for far, own in zip(sums.by_task, near, strict=True):
            array = np.zeros((self.expansion.datafit.n_tasks, *own.shape[1:]), own.dtype)
            array[sums.places], array[self.straddling] = far, own
            full.append(array)
        return full

    @cached_property
    def _whole(self) -> list[Array]:
        near = self._near()
        return self._spread(self._run(shares.quadratic_whole), (near.hessian, near.gradient))

    @property
    def hessian(self) -> Array:
        """All blocks in one place, for steps that cannot do without."""
        return self._whole[0]

    @property
    def gradient(self) -> Array:
        """All gradients in one place."""
        return self._whole[1]

    def moved(self, step: Array) -> PartitionedQuadratic:
        sums = self._run(shares.quadratic_moved, self._own(step))
        before = self._near()
        after = before.moved(step[self.straddling])
        (slopes,) = self._spread(sums, (after.slopes,))
        value = self.value + float(sums.whole[0]) + (after.value - before.value)
        total = step if self.step is None else self.step + step
        return replace(self, step=total, value=value, slopes=slopes)

    def solve(self, core: Array | None, low: Array, ridge: Array, push: Array) -> Solution:
        near = self._near().system(core, low[self.straddling], ridge, push[self.straddling])
        own = self._own(low), self._own(push)
        answer = None
        if low.shape[1]:
            sums = self._run(shares.quadratic_capacity, *own, front=(core, ridge))
            here = coupling_capacity(*near) if len(self.straddling) else (0.0, 0.0)
            answer = meeting(sums.whole[0] + here[0], sums.whole[1] + here[1])
        sums = self._run(shares.quadratic_rest, *own, front=(core, ridge, answer))
        rest = (
            solve_coupled_blocks(*near).value if answer is None else uncoupled_rest(*near, answer)
        )
        (step,) = self._spread(sums, (rest,))
        return Solution(step, "blocks" if answer is None else "woodbury")

    def core_sums(self, G: Array, rows: int) -> tuple[Array, Array]:
        sums = self._run(shares.quadratic_core, self._own(G), front=(rows,))
        near = self._near().core_sums(G[self.straddling], rows)
        return sums.whole[0] + near[0], sums.whole[1] + near[1]


def _both_added(parts: list[tuple[Sums, Sums]]) -> tuple[Sums, Sums]:
    return Sums.added([part[0] for part in parts]), Sums.added([part[1] for part in parts])
