"""Ridge by the inner products of rows, where rows are fewer than features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg, sparse

from ..arrays import Array, on_device, segment_sum, take
from ..rows.design import Design
from ..solvers.conjugate_gradient import conjugate_gradient
from .datafit import FeaturePenalty

if TYPE_CHECKING:
    from .rows_datafit import RowsDatafit

MAX_OBSERVATIONS, SPARSE_ENTRY_COST = 3_000, 16.0
"""Observations up to which all their products are kept, and what an entry of sparse rows costs
beside one of dense ones; see benchmarks/bench_row_kernels.md."""


def scaled_rows(design: Design, rows: np.ndarray | None) -> tuple[Any, np.ndarray, float]:
    """Rows in their units, and what centring takes from an inner product: by row, and once."""
    X = design.X if rows is None else take(design.X, rows)
    X = X * design.inverse_scale[None, :]
    X = X.tocsr() if sparse.issparse(X) else X
    return X, X @ design.shift, float(design.shift @ design.shift)


def inner_products(X: Any, level: np.ndarray, square: float) -> np.ndarray:
    """Inner products of centred rows."""
    products = X @ X.T
    products = products.toarray() if sparse.issparse(products) else products
    return products - level[:, None] - level + square


def dual_is_cheaper(X: Any, observations: float, width: int, passes: float) -> bool:
    """Whether factorising the rows' products costs less than ``passes`` over X of this width."""
    rows, features = X.shape
    if not observations <= min(MAX_OBSERVATIONS, features):
        return False
    entries = SPARSE_ENTRY_COST * X.nnz / rows if sparse.issparse(X) else features
    return bool(observations**2 / 3.0 <= passes * 2.0 * entries * width)


@dataclass(frozen=True, eq=False)
class RowRidge:
    """Dual ridge regression: the feature step's unknowns ``(Q, u, b)`` from their right sides."""

    datafit: RowsDatafit
    curvature: np.ndarray
    loadings: np.ndarray
    penalty: FeaturePenalty

    @classmethod
    def of(
        cls,
        datafit: RowsDatafit,
        curvature: np.ndarray,
        loadings: np.ndarray,
        penalty: FeaturePenalty,
        passes: float,
    ) -> RowRidge | None:
        """None where it is dearer than ``passes`` over the rows, or loses too many digits."""
        if on_device(datafit.y) or penalty.low_rank.shape[1] > len(datafit.y):
            return None
        # Weights count as repetitions, for this choice too: it shows in the last digits.
        obs = max(float(np.count_nonzero(datafit.weights)), datafit.n_weighted)
        if not dual_is_cheaper(datafit.design.X, obs, loadings.shape[1], passes):
            return None
        ridge = cls(datafit, curvature, loadings, penalty)
        largest = np.diagonal(ridge._matrix).max(initial=0.0)
        return ridge if largest <= MAX_CONDITION else None

    @property
    def width(self) -> int:
        """Columns of the loadings but for that of the shared weights."""
        return self.loadings.shape[1] - int(np.isfinite(self.penalty.shared))

    @cached_property
    def _root(self) -> np.ndarray:
        return np.sqrt(np.maximum(self.curvature, 0.0))

    @cached_property
    def _inner(self) -> np.ndarray:
        """``C`` of ``(αI - NNᵀ)⁻¹ = (I + N C Nᵀ) / α``."""
        alpha, low = self.penalty.alpha, self.penalty.low_rank
        return np.linalg.inv(alpha * np.eye(low.shape[1]) - low.T @ low)

    @cached_property
    def _factor(self) -> tuple[np.ndarray, bool]:
        return linalg.cho_factor(self._matrix.T, overwrite_a=True, check_finite=False)

    @cached_property
    def _flat(self) -> np.ndarray:
        """Effect of one on the common intercept, which has no penalty."""
        return self._solved(self._root) if self.penalty.offset else np.zeros_like(self._root)

    def _solved(self, values: np.ndarray) -> np.ndarray:
        return linalg.cho_solve(self._factor, values, check_finite=False)

    @cached_property
    def _matrix(self) -> np.ndarray:
        """``I + C^½ K C^½``; ``K`` is what the penalty's inverse makes of the rows' products."""
        fit, penalty = self.datafit, self.penalty
        kernel = np.zeros_like(fit.products)
        if self.width:
            factor = self.loadings[fit.codes, : self.width]
            related = (factor / penalty.alpha) @ factor.T
            products = fit.products
            if penalty.low_rank.shape[1]:
                latent = fit.latent(penalty.low_rank)
                products = products + (latent @ self._inner) @ latent.T
            kernel += related * products
        if np.isfinite(penalty.shared):
            kernel += fit.products / penalty.shared
        if np.isfinite(penalty.level):
            kernel += (fit.codes[:, None] == fit.codes) / penalty.level
        kernel *= self._root[:, None]
        kernel *= self._root
        kernel.reshape(-1)[:: len(kernel) + 1] += 1.0
        return kernel

    def _over_penalty(self, matrix: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        penalty, low = self.penalty, self.penalty.low_rank
        factor = matrix[:, : self.width]
        if low.shape[1]:
            factor = factor + low @ (self._inner @ (low.T @ factor))
        parts = factor / penalty.alpha, matrix[:, self.width :] / penalty.shared
        return np.concatenate(parts, axis=1), sums / penalty.level

    def __call__(self, matrix: Array, sums: Array, total: float) -> tuple[Array, Array, float]:
        """Solve for ``(P, k)``, ``(T,)`` and one number."""
        fit, root = self.datafit, self._root
        slopes, deviations = self._over_penalty(matrix, sums)
        inner = self._solved(root * fit.scores(slopes, self.loadings, deviations))
        spread = float(root @ self._flat)
        offset = (float(total) - float(root @ inner)) / spread if spread else 0.0
        values = (root * (inner + offset * self._flat)).astype(matrix.dtype, copy=False)
        each = segment_sum(values, fit.offsets)
        back = fit.backward(values, each, self.loadings)
        return *self._over_penalty(matrix - back, sums - each), matrix.dtype.type(offset)


MAX_TASK_ROWS, MAX_KERNEL_NUMBERS = 240, 2**24
"""Rows of the largest task, and numbers in all kernels, up to which they are made; see
benchmarks/bench_own_weights.md."""
MAX_CONDITION = 1e8
"""What rows may bring about over the penalty: half the digits must be left of their difference."""


@dataclass(frozen=True, eq=False)
class TaskKernels:
    """Inverses ``C^½ (I + C^½ K C^½)⁻¹ C^½`` of all tasks, ``(T, m, m)``."""

    inverses: np.ndarray
    position: np.ndarray

    @classmethod
    def of(
        cls, datafit: RowsDatafit, curvature: np.ndarray, alpha: float, level: float
    ) -> TaskKernels | None:
        """Kernels under these penalties; None where they are too large or lose too many digits."""
        design, offsets, codes = datafit.design, datafit.offsets, datafit.codes
        tasks, most = datafit.n_tasks, int(np.diff(offsets).max(initial=0))
        if on_device(datafit.y) or most > min(MAX_TASK_ROWS, design.shape[1]):
            return None
        if tasks * most**2 > MAX_KERNEL_NUMBERS:
            return None
        X, levels, square = scaled_rows(design, datafit.rows)
        kernels = np.zeros((tasks, most, most))
        for task, (start, stop) in enumerate(pairwise(offsets)):
            kernel = inner_products(X[start:stop], levels[start:stop], square)
            kernels[task, : stop - start, : stop - start] = kernel / alpha + 1.0 / level
        position = np.arange(len(codes)) + most * codes - offsets[:-1][codes]
        root = np.zeros((tasks, most))
        root.reshape(-1)[position] = np.sqrt(np.maximum(curvature, 0.0))
        kernels *= root[:, :, None] * root[:, None, :]
        if np.diagonal(kernels, axis1=1, axis2=2).max(initial=0.0) > MAX_CONDITION:
            return None
        kernels += np.eye(most)
        inverses = np.linalg.inv(kernels)
        inverses *= root[:, :, None] * root[:, None, :]
        return cls(inverses, position)

    def solve(self, values: np.ndarray) -> np.ndarray:
        tasks, most, _ = self.inverses.shape
        table = np.zeros((tasks, most))
        table.reshape(-1)[self.position] = values
        solved = (self.inverses @ table[:, :, None]).reshape(-1)[self.position]
        return solved.astype(values.dtype, copy=False)


@dataclass(frozen=True, eq=False)
class TaskRidge:
    """Dual ridge regression of each task, with weights that all share eliminated to the last."""

    datafit: RowsDatafit
    kernels: TaskKernels
    alpha: float
    level: float
    shared: float | None

    @cached_property
    def _identity(self) -> np.ndarray:
        return np.eye(self.datafit.n_tasks, dtype=self.datafit.y.dtype)

    @cached_property
    def _ones(self) -> np.ndarray:
        return np.ones((self.datafit.n_tasks, 1), dtype=self.datafit.y.dtype)

    def __call__(self, right: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve for ``(P, T)``, or one more column for the shared part, and ``(T,)``."""
        fit, tasks = self.datafit, self.datafit.n_tasks
        own = right[:, :tasks]
        scores = fit.scores(own / self.alpha, self._identity, sums / self.level)
        values = self.kernels.solve(scores)
        parts = []
        if self.shared is not None:
            # The tasks' own unknowns are eliminated, which leaves as many as there are features.
            reduced = right[:, tasks:] - self._adjoint(values, self._ones)
            common = conjugate_gradient(self._schur, reduced, tol=1e-9).value
            values = values + self._product(common)
            parts = [common]
        total = segment_sum(values, fit.offsets)
        slopes = (own - fit.backward(values, total, self._identity)) / self.alpha
        return np.concatenate([slopes, *parts], axis=1), (sums - total) / self.level

    def _schur(self, shared: np.ndarray) -> np.ndarray:
        return self._adjoint(self._product(shared), self._ones) + self.shared * shared

    def _product(self, shared: np.ndarray) -> np.ndarray:
        return self.kernels.solve(
            self.datafit.scores(shared, self._ones, np.zeros_like(self._ones[:, 0]))
        )

    def _adjoint(self, values: np.ndarray, loadings: np.ndarray) -> np.ndarray:
        sums = segment_sum(values, self.datafit.offsets)
        return self.datafit.backward(values, sums, loadings)
