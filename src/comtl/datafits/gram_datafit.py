"""Per-task Grams: sufficient statistics of squared loss, for tasks with many rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays.algebra import is_one, matrix_dot, with_ones
from ..arrays.backends import Array, namespace
from ..arrays.segments import local_offsets, segment_gram, segment_sum
from ..factors import Factors
from ..losses import Squared
from ..rows.design import Covariance, Design
from .datafit import Datafit, LocalQuadratic, TaskQuadratic, by_factors


class GramDatafit(Datafit):
    """Weighted second moments of ``x̃ = (x, 1)`` and ``y`` for each task."""

    name = "gram"

    def __init__(self, gram: Array, moment: Array, energy: Array) -> None:
        xp = namespace(gram)
        # Σ ω x̃ x̃ᵀ, (T, P + 1, P + 1) or (1, P + 1, P + 1) where all tasks share their rows,
        # Σ ω x̃ y, (T, P + 1), and Σ ω y², (T,).
        self.gram, self.moment, self.energy = gram, moment, energy
        self.loss = Squared()
        self.n_tasks, self.n_features = moment.shape[0], moment.shape[1] - 1
        self.same_design = gram.shape[0] == 1 and self.n_tasks > 1
        copies = self.n_tasks if gram.shape[0] == 1 else 1
        self.total_energy = float(xp.sum(energy))
        self.n_weighted = copies * float(xp.sum(gram[:, -1, -1]))

    @classmethod
    def of_rows(cls, design: Design, y: Array, weights: Array, offsets: np.ndarray) -> GramDatafit:
        """Sum up rows that are sorted by task, one observation per row."""
        xp = namespace(y)
        tasks, columns = len(offsets) - 1, design.shape[1] + 1
        gram = xp.zeros((tasks, columns, columns), dtype=design.dtype)
        moment = xp.zeros((tasks, columns), dtype=design.dtype)
        for obs, rows in design.dense_blocks():
            # A task may straddle blocks, so each adds to what is there.
            first, last, local = local_offsets(offsets, obs.start, obs.stop)
            block, share = with_ones(rows), weights[obs]
            gram[first:last, :, :] += segment_gram(block, share, local)
            weighted = block * (share * y[obs])[:, None]
            moment[first:last, :] += segment_sum(weighted, local)
        return cls(gram, moment, segment_sum(weights * y**2, offsets))

    @classmethod
    def of_table(cls, design: Design, Y: Array, weights: Array) -> GramDatafit:
        """Sum up rows shared by all tasks, one column of ``Y`` each, nothing missing."""
        xp = namespace(Y)
        columns = design.shape[1] + 1
        gram = xp.zeros((columns, columns), dtype=design.dtype)
        moment = xp.zeros((columns, Y.shape[1]), dtype=design.dtype)
        for obs, rows in design.dense_blocks():
            block = with_ones(rows)
            weighted = block * weights[obs, None]
            gram = gram + weighted.T @ block
            moment = moment + weighted.T @ Y[obs, :]
        energy = xp.sum(weights[:, None] * Y**2, axis=0)
        return cls(gram[None, :, :], moment.T, energy)

    @property
    def double(self) -> GramDatafit:
        xp = namespace(self.gram)
        parts = (self.gram, self.moment, self.energy)
        return GramDatafit(*(xp.astype(part, xp.float64, copy=False) for part in parts))

    @cached_property
    def covariance(self) -> Covariance:
        xp = namespace(self.gram)
        pooled = xp.sum(self.gram, axis=0)
        return Covariance.of_moments(pooled[:-1, :-1] / pooled[-1, -1])

    def product(self, weights: Array) -> Array:
        """Each task's Gram times its own vector, ``(T, P + 1)``."""
        if self.gram.shape[0] == 1:
            return weights @ self.gram[0, :, :]
        return (self.gram @ weights[..., None])[..., 0]

    def quadratic_at(self, point: Factors) -> GramLocalQuadratic:
        return GramLocalQuadratic.at(self, point.task_weights)

    def with_tasks_pooled(self, labels: np.ndarray, count: int) -> GramDatafit:
        xp = namespace(self.gram)
        member = xp.asarray(np.eye(count)[:, labels], dtype=self.gram.dtype)
        size = self.gram.shape[1]
        flat = xp.reshape(self.gram, (-1, size * size))
        shares = member if self.gram.shape[0] > 1 else xp.sum(member, axis=1)[:, None]
        gram = xp.reshape(shares @ flat, (count, size, size))
        return GramDatafit(gram, member @ self.moment, member @ self.energy)

    def losses(self, weights: Array, intercepts: Array) -> Array:
        xp = namespace(self.gram)
        models = xp.concat([weights, intercepts[:, None]], axis=1).T
        squares = xp.sum((self.gram @ models) * models, axis=1)
        return self.energy[:, None] + squares - 2.0 * self.moment @ models

    def along_segment(self, start: Factors, stop: Factors) -> Callable[[float], float]:
        return lambda share: self.quadratic_at(start.interpolate(stop, share)).value


class GramLocalQuadratic(LocalQuadratic):
    """Derivatives of the squared loss at weights (T, P + 1); a leading axis may hold many fits."""

    def __init__(self, datafit: Any, slope: Array, value: Any) -> None:
        self.datafit, self.slope, self._value = datafit, slope, value

    @classmethod
    def at(cls, datafit: Any, weights: Array) -> GramLocalQuadratic:
        product = datafit.product(weights)
        value = datafit.total_energy + matrix_dot(weights, product - 2.0 * datafit.moment)
        return cls(datafit, 2.0 * (product - datafit.moment), value)

    @property
    def value(self) -> Any:
        return self._value

    @property
    def curvature_sums(self) -> Array:
        sums = 2.0 * self.datafit.gram[..., -1, -1]
        return namespace(sums).broadcast_to(sums, self.slope.shape[:-1])

    def gradient(self, loadings: Array) -> tuple[Array, Array]:
        return self.slope[..., :-1].mT @ loadings, self.slope[..., -1]

    def normal(self, step: Array, loadings: Array, intercepts: Array) -> tuple[Array, Array]:
        xp = namespace(step)
        weights = xp.concat([loadings @ step.mT, intercepts[..., None]], axis=-1)
        product = 2.0 * self.datafit.product(weights)
        return product[..., :-1].mT @ loadings, product[..., -1]

    def task_gradient(self, features: Array) -> Array:
        return self.slope[:, :-1] @ features

    def task_quadratic(self, features: Array) -> TaskQuadratic:
        left = None if is_one(features) else features
        gram, slope = by_factors(self.datafit.gram, self.slope, left)
        size = (*self.slope.shape[:-1], *gram.shape[-2:])
        hessian = namespace(features).broadcast_to(2.0 * gram, size)
        return TaskQuadratic(hessian, slope, self.value)
