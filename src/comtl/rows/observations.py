"""The training observations, grouped by task, as every model takes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias

import joblib
import numpy as np
from scipy import sparse

from ..arrays import device_name, namespace, on_device

Matrix: TypeAlias = np.ndarray | sparse.csr_array


@dataclass(frozen=True, eq=False)
class Observations:
    """Rows, targets and weights sorted by task, one observation for each observed target."""

    partitioned: ClassVar[bool] = False
    """Whether the rows lie in partitions elsewhere."""

    X: Matrix
    y: np.ndarray  # in the type of X, or indices into classes
    weights: np.ndarray  # positive
    offsets: np.ndarray  # task t has observations offsets[t]:offsets[t + 1], at least one
    tasks: np.ndarray
    rows: np.ndarray | None  # row of each observation; None if observation i is row i
    classes: np.ndarray | None  # sorted; None for regression
    multi_output: bool

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)

    @property
    def n_observations(self) -> int:
        return self.y.shape[0]

    @property
    def dtype(self) -> np.dtype:
        return self.X.dtype

    @property
    def weight(self) -> float:
        return float(namespace(self.weights).sum(self.weights))

    def average(self, measure: Callable[[Observations], float]) -> float:
        """Weighted mean over all observations, where ``measure`` gives that of some of them."""
        return measure(self)

    @property
    def max_abs(self) -> float:
        """Largest absolute target."""
        xp = namespace(self.weights)
        return float(xp.max(xp.abs(self.y)))

    @property
    def plain(self) -> bool:
        """Whether every observation has a row of its own."""
        return self.rows is None

    @property
    def device(self) -> str:
        return device_name(self.X)

    @property
    def on_device(self) -> bool:
        return on_device(self.X)

    @property
    def seen(self) -> np.ndarray:
        """Whether a task has observations of a class, ``(n_tasks, n_classes)``."""
        assert self.classes is not None
        table = np.zeros((self.n_tasks, len(self.classes)), dtype=bool)
        table[self.codes, self.y] = True
        return table

    @property
    def fingerprint(self) -> str:
        """Hash of the observations."""
        parts = (self.X, self.y, self.codes, self.weights, self.rows, self.tasks, self.classes)
        return joblib.hash(parts)

    @cached_property
    def codes(self) -> np.ndarray:
        """Task of each observation, as an index into `tasks`."""
        return np.repeat(np.arange(self.n_tasks), np.diff(self.offsets))
