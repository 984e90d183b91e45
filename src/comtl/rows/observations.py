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
    """Rows, targets and weights of all tasks, one observation for each observed target.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        Features without the task column, float64 or float32. May be the caller's own array.
    y : ndarray of shape (n_cells,)
        Targets in the type of X, or indices into `classes`.
    weights : ndarray of shape (n_cells,)
        Positive weights in the type of X.
    offsets : ndarray of shape (n_tasks + 1,)
        Observations ``offsets[t]:offsets[t + 1]`` belong to task t, which has at least one.
    tasks : ndarray of shape (n_tasks,)
        Labels of the tasks: sorted, or in the order of the columns of a two-dimensional y.
    rows : ndarray of shape (n_cells,) or None
        Row of X for each observation; None where observation i is row i.
    classes : ndarray of shape (n_classes,) or None
        Sorted classes of all tasks; None for regression.
    multi_output : bool
        Whether y had two dimensions.
    """

    partitioned: ClassVar[bool] = False
    """Whether the rows lie in partitions elsewhere."""

    X: Matrix
    y: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray
    tasks: np.ndarray
    rows: np.ndarray | None
    classes: np.ndarray | None
    multi_output: bool

    @property
    def n_features(self) -> int:
        """Number of features, the task column not counted."""
        return self.X.shape[1]

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.tasks)

    @property
    def n_cells(self) -> int:
        """Number of observed targets."""
        return self.y.shape[0]

    @property
    def dtype(self) -> np.dtype:
        """Type of the features."""
        return self.X.dtype

    @property
    def weight(self) -> float:
        """Weight of all observations."""
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
        """Library and device of the rows."""
        return device_name(self.X)

    @property
    def on_device(self) -> bool:
        """Whether the rows belong to another library than NumPy."""
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
        """What tells these observations from others."""
        cells = (self.X, self.y, self.codes, self.weights, self.rows, self.tasks, self.classes)
        return joblib.hash(cells)

    @cached_property
    def codes(self) -> np.ndarray:
        """Task of each observation, as an index into `tasks`."""
        return np.repeat(np.arange(self.n_tasks), np.diff(self.offsets))
