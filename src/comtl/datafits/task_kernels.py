r"""Inner products of the rows of each task: a ridge regression of a task has as many unknowns.

.. math:: (X^\top C X + D)^{-1} = D^{-1} - D^{-1} X^\top
    C^{1/2} (I + C^{1/2} X D^{-1} X^\top C^{1/2})^{-1} C^{1/2} X D^{-1}
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import segment_sum
from ..design import Design
from ..solvers.conjugate_gradient import conjugate_gradient
from .row_kernels import inner_products, scaled_rows

if TYPE_CHECKING:
    from .rows import RowsDatafit

MOST_ROWS, MOST_NUMBERS = 240, 2**24
"""Rows of the largest task, and numbers in all kernels, up to which they are made; see
benchmarks/bench_own_weights.md."""
DIGITS = 1e8
"""What rows may bring about over the penalty: half the digits must be left of their difference."""


@dataclass(frozen=True, eq=False)
class TaskKernels:
    """Inverses ``C^½ (I + C^½ K C^½)⁻¹ C^½`` of all tasks, ``(T, m, m)``, and where cells lie."""

    inverses: np.ndarray
    places: np.ndarray

    @classmethod
    def of(
        cls,
        design: Design,
        rows: np.ndarray | None,
        curvature: np.ndarray,
        offsets: np.ndarray,
        sizes: tuple[float, float],
    ) -> TaskKernels | None:
        """Kernels of cells sorted by task; None where they would be larger than they are worth.

        ``sizes`` are the factors of the rows' products and of the constant in the kernel.
        """
        counts = np.diff(offsets)
        tasks, most = len(counts), int(counts.max(initial=0))
        if most > min(MOST_ROWS, design.shape[1]) or tasks * most**2 > MOST_NUMBERS:
            return None
        X, levels, square = scaled_rows(design, rows)
        kernels = np.zeros((tasks, most, most))
        for task, (start, stop) in enumerate(pairwise(offsets)):
            kernel = inner_products(X[start:stop], levels[start:stop], square)
            count = stop - start
            kernels[task, :count, :count] = sizes[0] * kernel + sizes[1]
        own_task = np.repeat(np.arange(tasks), counts)
        places = np.arange(len(own_task)) + most * own_task - offsets[:-1][own_task]
        root = np.zeros((tasks, most))
        root.reshape(-1)[places] = np.sqrt(np.maximum(curvature, 0.0))
        kernels *= root[:, :, None] * root[:, None, :]
        if np.diagonal(kernels, axis1=1, axis2=2).max(initial=0.0) > DIGITS:
            return None
        kernels += np.eye(most)
        inverses = np.linalg.inv(kernels)
        inverses *= root[:, :, None] * root[:, None, :]
        return cls(inverses, places)

    def solve(self, values: np.ndarray) -> np.ndarray:
        """Apply the inverses to one number a cell."""
        tasks, most, _ = self.inverses.shape
        table = np.zeros((tasks, most))
        table.reshape(-1)[self.places] = values
        solved = (self.inverses @ table[:, :, None]).reshape(-1)[self.places]
        return solved.astype(values.dtype, copy=False)


class TaskRidge:
    """Weights and intercepts of each task, and weights that all share, from their right sides.

    Parameters
    ----------
    datafit : RowsDatafit
        The rows.
    kernels : TaskKernels
        Of the same rows, in sizes of one over the penalties.
    alpha, level, shared : float
        What is added to the Hessian for weights, intercepts and, unless None, the shared part.
    """

    def __init__(
        self,
        datafit: RowsDatafit,
        kernels: TaskKernels,
        alpha: float,
        level: float,
        shared: float | None,
    ) -> None:
        self.datafit, self.kernels = datafit, kernels
        self.alpha, self.level, self.shared = alpha, level, shared
        tasks, dtype = datafit.n_tasks, datafit.y.dtype
        self._own, self._all = np.eye(tasks, dtype=dtype), np.ones((tasks, 1), dtype=dtype)
        self._none = np.zeros(tasks, dtype=dtype)

    def __call__(self, right: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve for ``(P, T)``, or one more column for the shared part, and ``(T,)``."""
        fit, tasks = self.datafit, self.datafit.n_tasks
        own = right[:, :tasks]
        scores = fit.scores(own / self.alpha, self._own, sums / self.level)
        values = self.kernels.solve(scores)
        parts = []
        if self.shared is not None:
            # The tasks' own unknowns are eliminated, which leaves as many as there are features.
            found = conjugate_gradient(
                self._schur, right[:, tasks:] - self._back(values, self._all), tol=1e-9
            )
            values = values + self._forth(found.value)
            parts = [found.value]
        total = segment_sum(values, fit.offsets)
        slopes = (own - fit.backward(values, total, self._own)) / self.alpha
        return np.concatenate([slopes, *parts], axis=1), (sums - total) / self.level

    def _schur(self, shared: np.ndarray) -> np.ndarray:
        return self._back(self._forth(shared), self._all) + self.shared * shared

    def _forth(self, shared: np.ndarray) -> np.ndarray:
        return self.kernels.solve(self.datafit.scores(shared, self._all, self._none))

    def _back(self, values: np.ndarray, mixing: np.ndarray) -> np.ndarray:
        sums = segment_sum(values, self.datafit.offsets)
        return self.datafit.backward(values, sums, mixing)
