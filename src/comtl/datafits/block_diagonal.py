"""Products of rows with a column for each task, where a row meets the column of its own task.

So it is where ``G`` is held at the identity, and so it can be made by the weights ``F Gᵀ`` of the
tasks, which pays where sparse rows hold more than these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import Array, on_device
from ..arrays.blocks import RowBlocks, across, stored

MIN_TASKS = 32
"""Tasks from which on it pays for dense rows; see benchmarks/bench_own_weights.md."""
ALL_ENTRY, ALL_COLUMN, OWN_ENTRY, OWN_WEIGHT, OWN_COLUMN = 4.0, 0.6, 2.0, 5.0, 0.12
"""Nanoseconds of sparse rows forth and back. By all columns: an entry, and one for each column; by
own columns: an entry, a weight, and a weight for each column it is mixed of. Measured there too."""
MAX_ENTRIES = 2**25
"""Entries of sparse rows whose columns are separated, which takes four bytes each."""

Work = Callable[[slice, Any], Array]
"""Values that are made of the scores of some rows, if there are scores."""


def unmixed(loadings: Array) -> bool:
    """Whether tasks have a column each and, at most, one more that all share."""
    tasks, width = loadings.shape
    if on_device(loadings) or not 0 <= width - tasks <= 1:
        return False
    square = loadings[:, :tasks]
    return (
        bool(np.all(np.diagonal(square) == 1.0))
        and int(np.count_nonzero(square)) == tasks
        and bool(np.all(loadings[:, tasks:] == 1.0))
    )


def task_weights(features: np.ndarray, loadings: np.ndarray) -> np.ndarray:
    """Weights of each task, ``(T, P)``, from the columns ``(P, k)`` that it mixes."""
    tasks, width = loadings.shape
    if not unmixed(loadings):
        return loadings @ features.T
    own = features if width == tasks else features[:, :tasks] + features[:, tasks:]
    return np.ascontiguousarray(own.T)


def mixed_sums(sums: np.ndarray, loadings: np.ndarray) -> np.ndarray:
    """Undo :func:`task_weights` on the way back, from sums ``(T, P)`` to columns ``(P, k)``."""
    tasks, width = loadings.shape
    if not unmixed(loadings):
        return sums.T @ loadings
    return np.column_stack([sums.T, sums.sum(axis=0)] if width > tasks else [sums.T])


def blocks_are_cheaper(blocks: RowBlocks, tasks: int, width: int, *, plain: bool) -> bool:
    """Whether rows rather meet the weights of their task; ``plain``: the columns are these."""
    if blocks.on_device:
        return False
    if not blocks.packed:
        return plain and tasks >= MIN_TASKS
    if blocks.nnz > MAX_ENTRIES:
        return False
    weights = tasks * blocks.shape[1]
    own = OWN_ENTRY * blocks.nnz + weights * (OWN_WEIGHT + (0 if plain else OWN_COLUMN * width))
    return own < blocks.nnz * (ALL_ENTRY + ALL_COLUMN * width)


@dataclass(frozen=True, eq=False)
class TaskBlock:
    """Consecutive rows, of the tasks from ``first`` on, each with its task's columns apart."""

    obs: slice
    rows: Any
    codes: np.ndarray
    first: int
    count: int

    @classmethod
    def of(cls, obs: slice, rows: Any, codes: np.ndarray) -> TaskBlock:
        """Rows of sorted tasks ``codes``; sparse ones as rows of ``count`` times P columns."""
        first, count = int(codes[0]), int(codes[-1] - codes[0]) + 1
        own = codes - first
        if sparse.issparse(rows) and count > 1:
            columns = rows.shape[1]
            large = count * columns > np.iinfo(np.int32).max
            index = np.int64 if large else rows.indices.dtype
            begin = np.repeat(own.astype(index) * columns, np.diff(rows.indptr))
            parts = rows.data, begin + rows.indices, rows.indptr.astype(index, copy=False)
            rows = stored(sparse.csr_array, (len(codes), count * columns), *parts)
        return cls(obs, rows, own, first, count)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Product of each row with the weights (T, P) of its task."""
        weights = weights[self.first : self.first + self.count]
        if sparse.issparse(self.rows):
            return self.rows @ weights.reshape(-1)
        return np.einsum("np,np->n", self.rows, weights[self.codes])

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums (count, P) of each task's rows times their values."""
        if sparse.issparse(self.rows):
            return (across(self.rows) @ values).reshape(self.count, -1)
        ends = np.arange(len(values) + 1)
        mix = sparse.csr_array((values, self.codes, ends), shape=(len(values), self.count))
        return mix.T @ self.rows


class TaskBlocks:
    """Rows sorted by task, in blocks, each multiplied by the weights of its task."""

    def __init__(self, blocks: RowBlocks, codes: np.ndarray, tasks: int) -> None:
        self.blocks, self.codes, self.tasks = blocks, codes, tasks
        # Blocks of sparse rows are kept: their columns are separated once.
        numbers = range(len(blocks.ranges)) if blocks.packed else ()
        self._kept = [list(self._chunk(number)) for number in numbers]

    def __reduce__(self) -> tuple[Any, ...]:
        return TaskBlocks, (self.blocks, self.codes, self.tasks)

    def _chunk(self, number: int) -> Iterator[TaskBlock]:
        for block in self.blocks.chunk(number):
            yield TaskBlock.of(block.obs, block.rows, self.codes[block.obs])

    def run(self, weights: np.ndarray | None, work: Work, *, back: bool) -> Any:
        """Sums (T, P) of rows times ``work(observations, scores)``; None without ``back``."""

        def part(number: int) -> list[tuple[TaskBlock, np.ndarray]]:
            parts = []
            for block in self._kept[number] if self._kept else self._chunk(number):
                score = None if weights is None else block.scores(weights)
                value = work(block.obs, score)
                if back:
                    parts.append((block, block.sums(value)))
            return parts

        total = None
        for pieces in self.blocks.each(part, 1):
            for block, piece in pieces:
                if total is None:
                    total = np.zeros((self.tasks, piece.shape[1]), dtype=piece.dtype)
                total[block.first : block.first + block.count] += piece
        return total

    def scores(self, weights: np.ndarray) -> np.ndarray:
        result = np.empty(len(self.codes), dtype=np.result_type(weights, self.blocks.X.dtype))

        def keep(obs: slice, score: np.ndarray) -> np.ndarray:
            result[obs] = score
            return score

        self.run(np.ascontiguousarray(weights), keep, back=False)
        return result

    def sums(self, values: np.ndarray) -> np.ndarray:
        return self.run(None, lambda obs, score: values[obs], back=True)
