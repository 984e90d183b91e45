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
from .block_diagonal import unmixed
from .datafit import FeaturePenalty, RowSolve

if TYPE_CHECKING:
    from .rows_datafit import RowsDatafit

MAX_OBSERVATIONS, SPARSE_ENTRY_COST = 3_000, 16.0
"""Observations up to which all their products are kept, and what an entry of sparse rows costs
beside one of dense ones; see benchmarks/bench_row_kernels.md."""
MAX_TASK_ROWS, MAX_KERNEL_NUMBERS = 240, 2**24
"""Most rows of a task, and numbers in all kernels; see benchmarks/bench_own_weights.md."""
MAX_CONDITION = 1e8
"""What rows may bring about over the penalty: half the digits must be left of their difference."""


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


def dual_ridge(
    datafit: RowsDatafit,
    curvature: np.ndarray,
    loadings: np.ndarray,
    penalty: FeaturePenalty,
    passes: float,
) -> RowSolve | None:
    """Penalised inverse Hessian by products of rows; None where it is dearer or loses digits."""
    if on_device(datafit.y):
        return None
    tasks = TaskRidge.of(datafit, curvature, loadings, penalty)
    if tasks is not None or penalty.low_rank.shape[1] > len(datafit.y):
        return tasks
    # Weights count as repetitions, for this choice too: it shows in the last digits.
    obs = max(float(np.count_nonzero(datafit.weights)), datafit.n_weighted)
    if not dual_is_cheaper(datafit.design.X, obs, loadings.shape[1], passes):
        return None
    rows = RowRidge(datafit, curvature, loadings, penalty)
    return rows if np.diagonal(rows.matrix).max(initial=0.0) <= MAX_CONDITION else None


@dataclass(frozen=True, eq=False)
class RowRidge:
    """Dual ridge regression: the feature step's unknowns ``(Q, u, b)`` from their right sides."""

    datafit: RowsDatafit
    curvature: np.ndarray
    loadings: np.ndarray
    penalty: FeaturePenalty

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
        return linalg.cho_factor(self.matrix.T, overwrite_a=True, check_finite=False)

    @cached_property
    def _flat(self) -> np.ndarray:
        """Effect of one on the common intercept, which has no penalty."""
        return self._solved(self._root) if self.penalty.offset else np.zeros_like(self._root)

    def _solved(self, values: np.ndarray) -> np.ndarray:
        return linalg.cho_solve(self._factor, values, check_finite=False)

    @cached_property
    def matrix(self) -> np.ndarray:
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


@dataclass(frozen=True, eq=False)
class TaskRidge:
    """Dual ridge regression of each task, with weights that all share eliminated to the last."""

    datafit: RowsDatafit
    curvature: np.ndarray
    loadings: np.ndarray
    penalty: FeaturePenalty
    inverses: np.ndarray  # (T, m, m): C^½ (I + C^½ K C^½)⁻¹ C^½ of the tasks' kernels K
    inside: np.ndarray  # (T, m): what is no padding

    @classmethod
    def of(
        cls,
        datafit: RowsDatafit,
        curvature: np.ndarray,
        loadings: np.ndarray,
        penalty: FeaturePenalty,
    ) -> TaskRidge | None:
        """None if tasks share more than a column, kernels are too large or lose many digits."""
        design, offsets = datafit.design, datafit.offsets
        tasks, most = datafit.n_tasks, int(np.diff(offsets).max(initial=0))
        separate = loadings.shape[1] == tasks + int(np.isfinite(penalty.shared))
        if not separate or not unmixed(loadings) or penalty.low_rank.shape[1]:
            return None
        if most > min(MAX_TASK_ROWS, design.shape[1]) or tasks * most**2 > MAX_KERNEL_NUMBERS:
            return None
        X, levels, square = scaled_rows(design, datafit.rows)
        kernels = np.zeros((tasks, most, most))
        for task, (start, stop) in enumerate(pairwise(offsets)):
            kernel = inner_products(X[start:stop], levels[start:stop], square)
            kernel = kernel / penalty.alpha + 1.0 / penalty.level
            kernels[task, : stop - start, : stop - start] = kernel
        inside = np.arange(most) < np.diff(offsets)[:, None]
        root = np.zeros((tasks, most))
        root[inside] = np.sqrt(np.maximum(curvature, 0.0))
        kernels *= root[:, :, None] * root[:, None, :]
        if np.diagonal(kernels, axis1=1, axis2=2).max(initial=0.0) > MAX_CONDITION:
            return None
        kernels += np.eye(most)
        inverses = np.linalg.inv(kernels)
        inverses *= root[:, :, None] * root[:, None, :]
        return cls(datafit, curvature, loadings, penalty, inverses, inside)

    def _solved(self, values: np.ndarray) -> np.ndarray:
        table = np.zeros((*self.inside.shape, 1))
        table[self.inside, 0] = values
        return (self.inverses @ table)[self.inside, 0].astype(values.dtype, copy=False)

    def __call__(self, matrix: Array, sums: Array, total: float) -> tuple[Array, Array, float]:
        """Solve for ``(P, k)``, ``(T,)`` and one number, which is not coupled with the others."""
        fit, penalty, tasks = self.datafit, self.penalty, self.datafit.n_tasks
        right, each, all_tasks = matrix[:, :tasks], *np.split(self.loadings, [tasks], axis=1)
        values = self._solved(fit.scores(right / penalty.alpha, each, sums / penalty.level))
        common = matrix[:, tasks:]
        if np.isfinite(penalty.shared):
            # The tasks' own unknowns are eliminated, which leaves as many as there are features.
            still = np.zeros_like(sums)

            def product(shared: np.ndarray) -> np.ndarray:
                return self._solved(fit.scores(shared, all_tasks, still))

            def adjoint(values: np.ndarray) -> np.ndarray:
                return fit.backward(values, segment_sum(values, fit.offsets), all_tasks)

            def schur(shared: np.ndarray) -> np.ndarray:
                return adjoint(product(shared)) + penalty.shared * shared

            common = conjugate_gradient(schur, common - adjoint(values), tol=1e-9).value
            values = values + product(common)
        back = segment_sum(values, fit.offsets)
        slopes = (right - fit.backward(values, back, each)) / penalty.alpha
        curvature = float(segment_sum(self.curvature, fit.offsets).sum()) or 1.0
        return np.hstack([slopes, common]), (sums - back) / penalty.level, total / curvature
