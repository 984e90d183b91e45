"""Matrix-free rows: any loss, dense or sparse, one pass over the rows for each product."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import Array, namespace, segment_gram, segment_sum, task_groups
from ..design import Covariance, Design
from ..factors import Factors
from ..losses import Loss
from .base import Datafit, Expansion, TaskQuadratic

_BLOCK_CELLS = 2**18
_GROUP_CELLS = 2**17


class RowsDatafit(Datafit):
    """Cells (row, task, target, weight) sorted by task over the rows of a design.

    Parameters
    ----------
    design : Design
        The rows.
    y, weights : arrays of shape (n_cells,)
        Target and weight of each cell.
    offsets : ndarray of shape (n_tasks + 1,)
        Cells ``offsets[t]:offsets[t + 1]`` belong to task ``t``.
    loss : Loss
        Loss of a cell.
    rows : ndarray of shape (n_cells,), optional
        Row of each cell; by default cell ``i`` is row ``i``.
    """

    name = "rows"

    def __init__(
        self,
        design: Design,
        y: Array,
        weights: Array,
        offsets: np.ndarray,
        loss: Loss,
        rows: np.ndarray | None = None,
    ) -> None:
        self.design, self.y, self.weights, self.offsets = design, y, weights, offsets
        self.loss, self.rows = loss, rows
        self.n_features = design.shape[1]
        self.n_tasks = len(offsets) - 1
        xp = namespace(y)
        self.n_weighted = float(xp.sum(weights))
        self.codes = xp.asarray(np.repeat(np.arange(self.n_tasks), np.diff(offsets)))

    @cached_property
    def _incidence(self) -> Any:
        """Sparse map from cells back to their rows."""
        cells = len(self.y)
        ones = np.ones(cells, self.design.dtype)
        pairs = (ones, (self.rows, np.arange(cells)))
        return sparse.csr_array(pairs, shape=(self.design.shape[0], cells))

    @cached_property
    def covariance(self) -> Covariance:
        weights = self.weights if self.rows is None else self._incidence @ self.weights
        return self.design.covariance(weights)

    def _cells(self, values: Array) -> Array:
        """Values of the rows, one for each cell."""
        return values if self.rows is None else values[self.rows]

    def scores(self, features: Array, mixing: Array, intercepts: Array) -> Array:
        """Return ``x_iᵀ Q m_t + b_t`` for every cell."""
        xp = namespace(features)
        if self.rows is None:
            parts = []
            for start, stop in self.design.blocks(_BLOCK_CELLS):
                latent = self.design.rows(start, stop) @ features
                mixed = xp.take(mixing, self.codes[start:stop], axis=0)
                parts.append(xp.sum(latent * mixed, axis=1))
            linear = xp.concat(parts)
        else:
            latent = self._cells(self.design @ features)
            linear = xp.sum(latent * xp.take(mixing, self.codes, axis=0), axis=1)
        return linear + xp.take(intercepts, self.codes, axis=0)

    def backward(self, values: Array, mixing: Array) -> Array:
        """Return ``Σ_i v_i x_i m_tᵀ``, the transpose of :meth:`scores` in ``Q``."""
        xp = namespace(mixing)
        if self.rows is None:
            total = xp.zeros((self.n_features, mixing.shape[1]), dtype=mixing.dtype)
            for start, stop in self.design.blocks(_BLOCK_CELLS):
                mixed = xp.take(mixing, self.codes[start:stop], axis=0)
                weighted = values[start:stop, None] * mixed
                total = total + self.design.rows(start, stop).transposed_matmul(weighted)
            return total
        mixed = xp.take(mixing, self.codes, axis=0)
        return self.design.transposed_matmul(self._incidence @ (values[:, None] * mixed))

    def normal(
        self, curvature: Array, step: Array, mixing: Array, intercepts: Array
    ) -> tuple[Array, Array]:
        """Return both transposes of ``curvature · scores``, in one pass over plain rows."""
        xp = namespace(step)
        if self.rows is not None:
            values = curvature * self.scores(step, mixing, intercepts)
            return self.backward(values, mixing), segment_sum(values, self.offsets)
        total = xp.zeros(step.shape, dtype=step.dtype)
        parts = []
        for start, stop in self.design.blocks(_BLOCK_CELLS):
            codes = self.codes[start:stop]
            block = self.design.rows(start, stop)
            mixed = xp.take(mixing, codes, axis=0)
            values = xp.sum((block @ step) * mixed, axis=1) + xp.take(intercepts, codes, axis=0)
            values = curvature[start:stop] * values
            total = total + block.transposed_matmul(values[:, None] * mixed)
            parts.append(values)
        return total, segment_sum(xp.concat(parts), self.offsets)

    def _point_scores(self, point: Factors) -> Array:
        xp = namespace(point.F)
        features = xp.concat([point.F, point.shared[:, None]], axis=1)
        return self.scores(features, with_ones(point.mixing), point.intercepts)

    def expand(self, point: Factors) -> RowsExpansion:
        return RowsExpansion(self, self._point_scores(point))

    def line(self, start: Factors, stop: Factors) -> Callable[[float], float]:
        xp = namespace(self.y)
        first, last = self._point_scores(start), self._point_scores(stop)

        def value(share: float) -> float:
            score = first + share * (last - first)
            return float(xp.sum(self.weights * self.loss.value(self.y, score)))

        return value


class RowsExpansion(Expansion):
    """Derivatives of the loss at given scores, one number for each cell."""

    def __init__(self, datafit: RowsDatafit, score: Array) -> None:
        xp = namespace(score)
        loss, y, weights = datafit.loss, datafit.y, datafit.weights
        self.datafit = datafit
        self.value = float(xp.sum(weights * loss.value(y, score)))
        self.slope = weights * loss.derivative(y, score)
        self.curvature = weights * loss.curvature(y, score)
        self.curvature_sums = segment_sum(self.curvature, datafit.offsets)

    def gradient(self, mixing: Array) -> tuple[Array, Array]:
        total = segment_sum(self.slope, self.datafit.offsets)
        return self.datafit.backward(self.slope, mixing), total

    def normal(self, step: Array, mixing: Array, intercepts: Array) -> tuple[Array, Array]:
        return self.datafit.normal(self.curvature, step, mixing, intercepts)

    def task_gradient(self, features: Array) -> Array:
        xp = namespace(features)
        parts = [
            segment_sum(latent * self.slope[start:stop, None], offsets)
            for latent, start, stop, offsets in self._latent_groups(features)
        ]
        return xp.concat(parts, axis=0)

    def task_quadratic(self, features: Array) -> TaskQuadratic:
        xp = namespace(features)
        hessians, gradients = [], []
        for latent, start, stop, offsets in self._latent_groups(features):
            design = with_ones(latent)
            hessians.append(segment_gram(design, self.curvature[start:stop], offsets))
            gradients.append(segment_sum(design * self.slope[start:stop, None], offsets))
        return TaskQuadratic(xp.concat(hessians, axis=0), xp.concat(gradients, axis=0))

    def _latent_groups(self, features: Array) -> Any:
        """Yield ``X F`` for consecutive groups of tasks, with its cells and their offsets."""
        fit = self.datafit
        whole = None if fit.rows is None else fit.design @ features
        for first, last in task_groups(fit.offsets, _GROUP_CELLS):
            offsets = fit.offsets[first : last + 1]
            start, stop = int(offsets[0]), int(offsets[-1])
            if whole is None or fit.rows is None:
                latent = fit.design.rows(start, stop) @ features
            else:
                latent = whole[fit.rows[start:stop]]
            yield latent, start, stop, offsets - start


def with_ones(values: Array) -> Array:
    """Append a column of ones.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.datafits.rows import with_ones
    >>> with_ones(np.array([[2.0], [3.0]]))
    array([[2., 1.],
           [3., 1.]])
    """
    xp = namespace(values)
    ones = xp.ones((values.shape[0], 1), dtype=values.dtype)
    return xp.concat([values, ones], axis=1)
