r"""Inner products of all rows: the feature step has as many unknowns as there are rows.

With penalty ``R`` and rows ``Φ`` of curvature ``C``, as for one task in ``task_kernels``,

.. math:: (Φ^\top C Φ + R)^{-1} = R^{-1} - R^{-1} Φ^\top
    C^{1/2} (I + C^{1/2} Φ R^{-1} Φ^\top C^{1/2})^{-1} C^{1/2} Φ R^{-1}
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg, sparse

from ..arrays import segment_sum, taken
from ..design import Design
from .base import FeaturePenalty

if TYPE_CHECKING:
    from .rows import RowsDatafit

MOST_CELLS, SCATTERED = 3_000, 16.0
"""Cells up to which all their products are kept, and what an entry of sparse rows costs beside one
of dense ones; see benchmarks/bench_row_kernels.md."""


def scaled_rows(design: Design, rows: np.ndarray | None) -> tuple[Any, np.ndarray, float]:
    """Rows in their units, and what centring takes from an inner product: by row, and once."""
    X = design.X if rows is None else taken(design.X, rows)
    X = X * design.inverse_scale[None, :]
    X = X.tocsr() if sparse.issparse(X) else X
    return X, X @ design.shift, float(design.shift @ design.shift)


def inner_products(X: Any, level: np.ndarray, square: float) -> np.ndarray:
    """Inner products of centred rows.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.datafits.row_kernels import inner_products
    >>> X, mean = np.array([[1.0], [3.0]]), np.array([2.0])
    >>> inner_products(X, X @ mean, float(mean @ mean))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    products = X @ X.T
    products = products.toarray() if sparse.issparse(products) else products
    return products - level[:, None] - level + square


def worth_a_kernel(X: Any, cells: float, width: int, passes: float) -> bool:
    """Whether a factorisation of all cells' products costs less than so many passes over the rows.

    A pass takes the rows ``X`` times ``width`` columns, forth or back.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.datafits.row_kernels import worth_a_kernel
    >>> worth_a_kernel(np.zeros((50, 200)), 50, width=5, passes=30)
    True
    >>> worth_a_kernel(np.zeros((200, 50)), 200, width=5, passes=30)
    False
    """
    rows, features = X.shape
    if not cells <= min(MOST_CELLS, features):
        return False
    entries = SCATTERED * X.nnz / rows if sparse.issparse(X) else features
    return bool(cells**2 / 3.0 <= passes * 2.0 * entries * width)


class RowRidge:
    """All of the feature step's unknowns ``(Q, u, b)`` from their right sides.

    Parameters
    ----------
    datafit : RowsDatafit
        The rows.
    curvature : ndarray of shape (n_cells,)
        Second derivative of each cell's loss.
    mixing : ndarray of shape (n_tasks, k)
        How tasks mix the columns of ``Q``: those of ``F``, then any shared one.
    penalty : FeaturePenalty
        What is added to the Hessian.
    """

    def __init__(
        self,
        datafit: RowsDatafit,
        curvature: np.ndarray,
        mixing: np.ndarray,
        penalty: FeaturePenalty,
    ) -> None:
        self.datafit, self.mixing, self.penalty = datafit, mixing, penalty
        self.width = mixing.shape[1] - int(np.isfinite(penalty.shared))
        # (αI - NNᵀ)⁻¹ = (I + N (αI - NᵀN)⁻¹ Nᵀ) / α
        low = penalty.low
        self._inner = np.linalg.inv(penalty.alpha * np.eye(low.shape[1]) - low.T @ low)
        self._root = np.sqrt(np.maximum(curvature, 0.0))
        kernel = self._kernel()
        kernel *= self._root[:, None]
        kernel *= self._root
        self.largest = float(np.diagonal(kernel).max(initial=0.0))
        kernel.reshape(-1)[:: len(kernel) + 1] += 1.0
        self._matrix = kernel

    @cached_property
    def _factor(self) -> tuple[np.ndarray, bool]:
        return linalg.cho_factor(self._matrix.T, overwrite_a=True, check_finite=False)

    @cached_property
    def _flat(self) -> np.ndarray:
        """What one on the common intercept makes of the cells.

        It has no penalty: it is what makes the cells' values sum to their due.
        """
        return self._solved(self._root) if self.penalty.offset else np.zeros_like(self._root)

    def _solved(self, values: np.ndarray) -> np.ndarray:
        return linalg.cho_solve(self._factor, values, check_finite=False)

    def _kernel(self) -> np.ndarray:
        """What the penalty's inverse makes of the rows' products."""
        fit, penalty = self.datafit, self.penalty
        kernel = np.zeros_like(fit.products)
        if self.width:
            factor = np.repeat(self.mixing[:, : self.width], np.diff(fit.offsets), axis=0)
            related = (factor / penalty.alpha) @ factor.T
            if penalty.low.shape[1]:
                seen = fit.latent(penalty.low)
                related *= fit.products + (seen @ self._inner) @ seen.T
            else:
                related *= fit.products
            kernel += related
        if np.isfinite(penalty.shared):
            kernel += fit.products / penalty.shared
        if np.isfinite(penalty.level):
            task = np.repeat(np.arange(fit.n_tasks), np.diff(fit.offsets))
            kernel += (task[:, None] == task) / penalty.level
        return kernel

    def _over_penalty(self, matrix: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        penalty, low = self.penalty, self.penalty.low
        factor = matrix[:, : self.width]
        if low.shape[1]:
            factor = factor + low @ (self._inner @ (low.T @ factor))
        parts = factor / penalty.alpha, matrix[:, self.width :] / penalty.shared
        return np.concatenate(parts, axis=1), sums / penalty.level

    def __call__(
        self, matrix: np.ndarray, sums: np.ndarray, total: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Solve for ``(P, k)``, ``(T,)`` and one number."""
        fit, root = self.datafit, self._root
        slopes, deviations = self._over_penalty(matrix, sums)
        inner = self._solved(root * fit.scores(slopes, self.mixing, deviations))
        spread = float(root @ self._flat)
        offset = (float(total) - float(root @ inner)) / spread if spread else 0.0
        values = (root * (inner + offset * self._flat)).astype(matrix.dtype, copy=False)
        each = segment_sum(values, fit.offsets)
        back = fit.backward(values, each, self.mixing)
        return *self._over_penalty(matrix - back, sums - each), matrix.dtype.type(offset)
