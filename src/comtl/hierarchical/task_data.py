r"""Rows of all tasks, in blocks of tasks of like size.

.. math:: y_t = \tilde X_t (β + u_t) + e_t, \quad u_t \sim N(0, B), \quad e_t \sim N(0, σ_t^2 I),
    \quad β \sim N(0, v I) \text{ or fixed}

with the intercept as the last column of ``X̃``. Of a task with more rows than columns a root of its
second moments says the same: as many rows as there are columns, and the squares beyond them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import padded_index
from ..datafits.gram_datafit import GramDatafit

MIN_ESTIMABLE = 1e-10
"""Smallest eigenvalue of the rows' Gram, over the largest, that determines a direction."""
BLOCK_CELLS = 2**22
"""Numbers in a block at most, but for a task that is larger by itself."""
PADDING = 1.3
"""Longest task of a block over the shortest."""


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some tasks with their rows and targets, padded with zeros."""

    tasks: np.ndarray
    rows: np.ndarray  # (T, m, q), the intercept's column last
    targets: np.ndarray  # (T, m)
    index: np.ndarray  # number of each row, -1 where there is none

    @cached_property
    def flat(self) -> np.ndarray:
        """Rows of all tasks."""
        return self.rows.reshape(-1, self.rows.shape[2])

    @cached_property
    def ones(self) -> np.ndarray:
        """The intercept's column, ``(T, m)``."""
        return np.ascontiguousarray(self.rows[:, :, -1])

    @cached_property
    def kernel(self) -> np.ndarray:
        """Products of the rows of each task with each other, without the intercept."""
        return self.rows @ np.swapaxes(self.rows, 1, 2) - self.level

    @property
    def level(self) -> np.ndarray:
        """Products of the intercept's column."""
        return self.ones[:, :, None] * self.ones[:, None, :]

    def times(self, matrix: np.ndarray) -> np.ndarray:
        """Rows times a matrix or vector in common."""
        return (self.flat @ matrix).reshape(*self.rows.shape[:2], *matrix.shape[1:])

    def spread(self, slopes: np.ndarray, intercept: float) -> np.ndarray:
        """``X diag X̃ᵀ``, for the variances of slopes, one in common or of each."""
        if np.ptp(slopes) > 0.0:
            return (self.rows * np.append(slopes, intercept)) @ np.swapaxes(self.rows, 1, 2)
        level = intercept * self.level
        return level + slopes[0] * self.kernel if slopes[0] != 0.0 else level

    def effect_sums(self, weights: np.ndarray) -> np.ndarray:
        """``x_jᵀ W x_j`` of each slope's column, summed over tasks."""
        product = (weights @ self.rows).reshape(self.flat.shape)
        return np.einsum("ij,ij->j", product, self.flat)[:-1]

    def effect_squares(self, weights: np.ndarray) -> np.ndarray:
        """The same, squared for each task."""
        forms = np.einsum("tmq,tmq->tq", weights @ self.rows, self.rows)
        return np.einsum("tq,tq->q", forms, forms)[:-1]


@dataclass(frozen=True, eq=False)
class TaskRows:
    """Rows and targets of every task, times the roots of their weights."""

    blocks: Sequence[RowBlock]
    counts: np.ndarray  # weight of each task's rows
    rest: np.ndarray  # squares of each task's targets that no row has a part in
    n_rows: int  # rows in the order of the blocks' index

    @classmethod
    def of(
        cls, rows: np.ndarray, target: np.ndarray, weights: np.ndarray, offsets: np.ndarray
    ) -> TaskRows:
        """Rows that come task by task."""
        root, sizes = np.sqrt(weights), np.diff(offsets)
        rows, target = root[:, None] * rows, root * target
        blocks = []
        for tasks in _batches(sizes, rows.shape[1]):
            index, inside = padded_index(offsets, tasks)
            block, values = rows[index], target[index]
            block[~inside], values[~inside] = 0.0, 0.0
            blocks.append(RowBlock(tasks, block, values, np.where(inside, index, -1)))
        codes = np.repeat(np.arange(len(sizes)), sizes)
        counts = np.bincount(codes, weights, minlength=len(sizes))
        return cls(blocks, counts, np.zeros(len(sizes)), len(rows))

    @classmethod
    def of_grams(cls, sums: GramDatafit) -> TaskRows:
        """Rows that have the second moments of those of each task."""
        rounding = float(np.finfo(sums.gram.dtype).eps)
        gram, moment = (np.asarray(part, dtype=float) for part in (sums.gram, sums.moment))
        tasks, size = moment.shape
        level = np.maximum(gram.diagonal(axis1=1, axis2=2).max(axis=1), 1e-300)
        # Rounding would leave what is singular not quite positive.
        raised = gram + (4.0 * size * rounding * level)[:, None, None] * np.eye(size)
        root = np.linalg.cholesky(raised)
        inverse = np.broadcast_to(np.linalg.inv(root), (tasks, size, size))
        targets = (inverse @ moment[:, :, None])[:, :, 0]
        rest = np.maximum(sums.energy - np.sum(targets**2, axis=1), 0.0)
        rows = np.broadcast_to(np.swapaxes(root, 1, 2), (tasks, size, size))
        counts = np.broadcast_to(gram[:, -1, -1], tasks)
        numbers = np.arange(tasks * size).reshape(tasks, size)
        blocks = [
            RowBlock(part, rows[part], targets[part], numbers[part])
            for part in _batches(np.full(tasks, size), size)
        ]
        return cls(blocks, counts, rest, tasks * size)

    @property
    def energy(self) -> float:
        """Weighted sum of squared targets."""
        return float(self.rest.sum()) + sum(float(np.sum(b.targets**2)) for b in self.blocks)

    @cached_property
    def size(self) -> int:
        """Columns, with the intercept."""
        return self.blocks[0].rows.shape[2]

    @cached_property
    def directions(self) -> np.ndarray:
        """Directions of fixed effects that the rows determine."""
        pooled = sum(block.flat.T @ block.flat for block in self.blocks)
        return estimable_directions(np.asarray(pooled))

    @cached_property
    def kernel(self) -> np.ndarray:
        """Products of all rows with each other, without the intercept."""
        rows = np.concatenate([block.flat[:, :-1] for block in self.blocks])
        return np.asarray(rows @ rows.T)

    def in_order(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Values of the rows of each block, as these came."""
        found = np.zeros(self.n_rows)
        for block, part in zip(self.blocks, values, strict=True):
            inside = block.index >= 0
            found[block.index[inside]] = part[inside]
        return found


def _batches(sizes: np.ndarray, width: int) -> list[np.ndarray]:
    """Tasks of like size, as many at a time as a block has room for."""
    order = np.argsort(sizes, kind="stable")
    batches, first = [], 0
    while first < len(order):
        least = max(int(sizes[order[first]]), 4)
        last = int(np.searchsorted(sizes[order], PADDING * least, side="right"))
        longest = max(int(sizes[order[max(last, first + 1) - 1]]), 1)
        last = min(max(last, first + 1), first + max(1, BLOCK_CELLS // (longest * width)))
        batches.append(order[first:last])
        first = last
    return batches


def estimable_directions(pooled: np.ndarray) -> np.ndarray:
    """Orthonormal directions of fixed effects, as columns, that rows of this Gram determine."""
    size = np.sqrt(np.diagonal(pooled))
    inverse = 1.0 / np.where(size > 0.0, size, 1.0)
    values, basis = np.linalg.eigh(inverse[:, None] * pooled * inverse)
    rounding = 10.0 * len(values) * float(np.finfo(pooled.dtype).eps)
    left = values <= values[-1] * max(MIN_ESTIMABLE, rounding)
    # Without any part in the open directions: the shortest weights of all that fit alike.
    turned = np.linalg.qr(inverse[:, None] * basis[:, left], mode="complete")[0]
    return turned[:, np.count_nonzero(left) :]
