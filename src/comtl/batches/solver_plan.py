"""Which fits of a batch go by which solver: the choice that a fit on its own would make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engine.block_steps import DENSE_UNKNOWNS, WOODBURY_WIDTH

Part = tuple[slice, int, bool]
"""Fits from where to where, the width of the widest, and whether a direct solver serves."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Ranks of the fits of a batch, rising, with their numbers of features and tasks."""

    ranks: np.ndarray
    n_features: int
    n_tasks: int

    @property
    def feature_parts(self) -> list[Part]:
        return self._parts(self.n_features * (self.ranks + 1) + self.n_tasks <= DENSE_UNKNOWNS)

    @property
    def task_parts(self) -> list[Part]:
        return self._parts(self.ranks <= WOODBURY_WIDTH)

    def _parts(self, direct: np.ndarray) -> list[Part]:
        first, last = int(direct.sum()), len(self.ranks)
        bounds = [(0, first, True), (first, last, False)]
        return [
            (slice(start, stop), int(self.ranks[stop - 1]), small)
            for start, stop, small in bounds
            if start < stop
        ]

    def taken(self, places: np.ndarray) -> Plan:
        return Plan(self.ranks[places], self.n_features, self.n_tasks)
