"""Sums over partitions, some of them by task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array


@dataclass(frozen=True, eq=False)
class Sums:
    """Arrays to be added up, and arrays with an entry for each of some tasks."""

    totals: tuple[Array, ...]
    task_index: np.ndarray
    by_task: tuple[Array, ...] = ()

    @staticmethod
    def added(parts: list[Sums]) -> Sums:
        """Sum over all tasks that any of the parts has."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*(part.totals for part in parts), strict=True)
        totals = tuple(sum(values[1:], values[0]) for values in columns)
        if not parts[0].by_task:
            return Sums(totals, parts[0].task_index)
        task_index = parts[0].task_index
        same = all(np.array_equal(part.task_index, task_index) for part in parts[1:])
        if not same:
            task_index = np.unique(np.concatenate([part.task_index for part in parts]))
        by_task = tuple(
            np.zeros((len(task_index), *array.shape[1:]), array.dtype) for array in parts[0].by_task
        )
        for part in parts:
            inside: Any = slice(None) if same else np.searchsorted(task_index, part.task_index)
            for total, array in zip(by_task, part.by_task, strict=True):
                total[inside] += array
        return Sums(totals, task_index, by_task)

    def spread(self, tasks: int) -> tuple[Array, ...]:
        """The arrays by task, with zeros for tasks that no partition has."""
        if len(self.task_index) == tasks:
            return self.by_task
        full = tuple(np.zeros((tasks, *array.shape[1:]), array.dtype) for array in self.by_task)
        for total, array in zip(full, self.by_task, strict=True):
            total[self.task_index] = array
        return full
