"""The loss of rows as a quadratic about a point, made pass by pass as it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Array, namespace, on_device, row_dots, segment_gram, segment_sum, with_ones
from ..factors import Factors
from .datafit import FeaturePenalty, LocalQuadratic, RowSolve, TaskQuadratic, TaskSolve
from .dual_ridge import MAX_CONDITION, RowRidge, TaskKernels, TaskRidge, dual_is_cheaper

if TYPE_CHECKING:
    from .rows_datafit import RowsDatafit


class RowsLocalQuadratic(LocalQuadratic):
    """Derivatives of the loss at a point, one an observation; scores are made when needed."""

    def __init__(self, datafit: RowsDatafit, point: Factors) -> None:
        self.datafit, self.point = datafit, point
        xp = namespace(datafit.y)
        self._losses: dict[int, float] = {}
        self._slope: Array | None = None
        self._ready: tuple[Array, Array] | None = None
        fixed = datafit.loss.quadratic
        self._curvature = datafit.curvature if fixed else xp.empty_like(datafit.y)

    def _settle(self, obs: slice, score: Array) -> Array:
        """Take down the derivatives of some observations and return the first."""
        fit, xp = self.datafit, namespace(score)
        y, weights, loss = fit.y[obs], fit.weights[obs], fit.loss
        self._losses[obs.start] = float(xp.sum(weights * loss.value(y, score)))
        if not loss.quadratic:
            self._curvature[obs] = weights * loss.curvature(y, score)
        return weights * loss.derivative(y, score)

    def _pass(self, back: Array | None = None) -> Array | None:
        """Take down all observations; return the gradient for ``back`` on the way."""
        xp = namespace(self.point.F)
        features, loadings = linear_terms(self.point)
        if back is not None and back.shape == loadings.shape and bool(xp.all(back == loadings)):
            back = loadings  # One gather serves both ways.
        self._slope, _, product = self.datafit.run(
            features, loadings, self.point.intercepts, self._settle, back
        )
        return product

    @property
    def slope(self) -> Array:
        """First derivative of each observation's loss by its score."""
        if self._slope is None:
            self._pass()
        return self._slope

    @property
    def curvature(self) -> Array:
        """Second derivative of each observation's loss by its score."""
        if self._slope is None and not self.datafit.loss.quadratic:
            self._pass()
        return self._curvature

    @property
    def value(self) -> float:
        if self._slope is None:
            self._pass()
        return sum(self._losses[start] for start in sorted(self._losses))

    @property
    def curvature_sums(self) -> Array:
        if self.datafit.loss.quadratic:
            return self.datafit.curvature_sums
        return segment_sum(self.curvature, self.datafit.offsets)

    def value_with(self, loadings: Array) -> float:
        if self._slope is None and loadings.shape[1]:
            self._ready = loadings, self._pass(loadings)
        return self.value

    def gradient(self, loadings: Array) -> tuple[Array, Array]:
        fit, product = self.datafit, None
        if self._slope is None and loadings.shape[1]:
            product = self._pass(loadings)
        elif self._ready is not None:
            (known, ready), self._ready = self._ready, None  # handed out once: callers add to it
            xp = namespace(loadings)
            if known.shape == loadings.shape and bool(xp.all(known == loadings)):
                product = ready
        sums = segment_sum(self.slope, fit.offsets)
        if product is None:
            product = fit.backward(self.slope, sums, loadings)
        return product, sums

    def normal(self, step: Array, loadings: Array, intercepts: Array) -> tuple[Array, Array]:
        curvature = self.curvature
        _, sums, product = self.datafit.run(
            step, loadings, intercepts, lambda obs, score: curvature[obs] * score, loadings
        )
        return product, sums

    def task_ridge(self, alpha: float, level: float, shared: float | None) -> TaskSolve | None:
        fit = self.datafit
        if on_device(fit.y):
            return None
        obs = fit.rows, self.curvature, fit.offsets
        kernels = TaskKernels.of(fit.design, *obs, (1.0 / alpha, 1.0 / level))
        return None if kernels is None else TaskRidge(fit, kernels, alpha, level, shared)

    def row_ridge(self, loadings: Array, penalty: FeaturePenalty, passes: float) -> RowSolve | None:
        fit, width = self.datafit, loadings.shape[1]
        if on_device(fit.y) or penalty.low_rank.shape[1] > len(fit.y):
            return None
        # Weights count as repetitions, for this choice too: it shows in the last digits.
        obs = max(float(np.count_nonzero(fit.weights)), fit.n_weighted)
        if not dual_is_cheaper(fit.design.X, obs, width, passes):
            return None
        ridge = RowRidge(fit, self.curvature, loadings, penalty)
        return ridge if ridge.largest <= MAX_CONDITION else None

    def task_gradient(self, features: Array) -> Array:
        slope = self.slope

        def work(obs: slice, codes: Array, offsets: np.ndarray, latent: Array) -> tuple[Array]:
            return (segment_sum(latent * slope[obs, None], offsets),)

        return self.datafit.by_task(features, work, [(features.shape[1],)])[0]

    def task_quadratic(self, features: Array) -> TaskQuadratic:
        xp = namespace(features)
        width = features.shape[1] + 1
        # Before the scores are known they come from the same latent values, if F is theirs.
        fused = self._slope is None and features is self.point.F and bool(xp.any(features != 0.0))
        everything, loadings = linear_terms(self.point) if fused else (features, None)
        slope = xp.empty_like(self.datafit.y) if fused else self.slope
        curvature = self._curvature

        def work(obs: slice, codes: Array, offsets: Array, latent: Array) -> tuple[Array, Array]:
            if loadings is not None:
                score = row_dots(latent, xp.take(loadings, codes, axis=0))
                score = score + xp.take(self.point.intercepts, codes, axis=0)
                slope[obs] = self._settle(obs, score)
            rows = with_ones(latent[:, : width - 1])
            hessian = segment_gram(rows, curvature[obs], offsets)
            return hessian, segment_sum(rows * slope[obs, None], offsets)

        sizes: list[tuple[int, ...]] = [(width, width), (width,)]
        hessian, gradient = self.datafit.by_task(everything, work, sizes)
        self._slope = slope
        return TaskQuadratic(hessian, gradient, self.value)


def linear_terms(point: Factors) -> tuple[Array, Array]:
    """``Q`` and ``M`` such that the weights of a task are ``Q m_t``, without parts not in use."""
    xp = namespace(point.F)
    features, loadings = point.F, point.loadings
    if not bool(xp.any(features != 0.0)):  # The start: nothing to multiply the rows by.
        features, loadings = features[:, :0], loadings[:, :0]
    if not bool(xp.any(point.shared != 0.0)):
        return features, loadings
    return xp.concat([features, point.shared[:, None]], axis=1), with_ones(loadings)
