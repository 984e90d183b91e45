"""Matrix-free rows: any loss, dense or sparse, one pass over the rows for each product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from ..arrays import (
    Array,
    namespace,
    on_device,
    row_dots,
    segment_gram,
    segment_sum,
    take,
    with_ones,
)
from ..arrays.blocks import Block, RowBlocks
from ..arrays.packed import RowSelector
from ..arrays.segments import local_offsets
from ..factors import Factors
from ..losses import Loss
from ..rows.design import Covariance, Design
from .block_diagonal import TaskBlocks, Work, blocks_are_cheaper, mixed_sums, task_weights, unmixed
from .datafit import Datafit, FeaturePenalty, LocalQuadratic, RowSolve, TaskQuadratic
from .dual_ridge import dual_ridge, inner_products, scaled_rows

LatentWork = Callable[[slice, Array, np.ndarray, Array], tuple[Array, ...]]
"""What is made of the latent values of a chunk's observations, one entry for each of its tasks."""


@dataclass(eq=False)
class RowsDatafit(Datafit):
    """Observations (row, task, target, weight) sorted by task over the rows of a design."""

    name = "rows"

    design: Design
    y: Array
    weights: Array
    offsets: np.ndarray
    loss: Loss
    rows: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.n_features, self.n_tasks = self.design.shape[1], len(self.offsets) - 1
        self.n_weighted = float(namespace(self.y).sum(self.weights))
        codes = np.repeat(np.arange(self.n_tasks, dtype=np.int32), np.diff(self.offsets))
        self.codes = namespace(self.y).asarray(codes) if on_device(self.y) else codes
        self._last: tuple[Array, Array] | None = None

    @cached_property
    def blocks(self) -> RowBlocks:
        """The matrix of the observations: the rows, or the map from rows to observations."""
        if self.rows is None:
            return self.design.blocks
        if on_device(self.y):
            return RowBlocks(RowSelector(self.rows, self.design.shape[0], self.y))
        ones, ends = np.ones(len(self.rows), self.design.dtype), np.arange(len(self.rows) + 1)
        shape = (len(self.rows), self.design.shape[0])
        return RowBlocks(sparse.csr_array((ones, self.rows, ends), shape=shape))

    @property
    def start_scores(self) -> tuple[float, Array] | None:
        weights = segment_sum(self.weights, self.offsets)
        sums = segment_sum(self.weights * self.y, self.offsets)
        xp = namespace(sums)
        everyone = self.loss.start_scores(xp.sum(sums) / xp.sum(weights))
        tasks = self.loss.start_scores(sums / weights)
        return None if everyone is None or tasks is None else (float(everyone), tasks)

    def _lift(self, features: Array) -> tuple[Array, Array]:
        """``V`` and ``c`` such that the latent values of observations are ``blocks V - 1 cᵀ``."""
        if self.rows is None:
            return self.design.loaded(features)
        latent = self.design @ features
        return latent, namespace(features).zeros(features.shape[1], dtype=features.dtype)

    def _drop(self, back: Array, total: Array) -> Array:
        """Undo :meth:`_lift` on the way back to the features."""
        if self.rows is None:
            return self.design.unloaded(back, total)
        return self.design.transposed_matmul(back)

    @cached_property
    def covariance(self) -> Covariance:
        weights = self.weights
        if self.rows is not None:
            weights = self.blocks.backward(weights[:, None])[:, 0]
        return self.design.covariance(weights)

    @cached_property
    def products(self) -> np.ndarray:
        """Inner products of all observations' rows, on the host."""
        return inner_products(*scaled_rows(self.design, self.rows)).astype(np.float64, copy=False)

    def latent(self, features: Array) -> Array:
        """Return ``x_iᵀ Q`` for every observation."""
        found = self.design @ features
        return found if self.rows is None else take(found, self.rows)

    @cached_property
    def curvature(self) -> Array:
        """Second derivative of each observation's loss where it is the same at every point."""
        return self.weights * self.loss.curvature(self.y, self.y)

    @cached_property
    def curvature_sums(self) -> Array:
        return segment_sum(self.curvature, self.offsets)

    def _mixed(self, loadings: Array, obs: slice) -> Array:
        """Loadings of each observation's task; keep on a device, where gathering is slow."""
        if not on_device(self.y):
            return namespace(loadings).take(loadings, self.codes[obs], axis=0)
        if self._last is None or self._last[0] is not loadings:
            self._last = loadings, namespace(loadings).take(loadings, self.codes, axis=0)
        return self._last[1][obs, :]

    def run(
        self,
        features: Array,
        loadings: Array,
        intercepts: Array,
        values: Work,
        back: Array | None = None,
    ) -> tuple[Array, Array, Array | None]:
        """Values of the scores ``x_iᵀ Q m_t + b_t``, their sums by task, and ``Σ v_i x_i n_tᵀ``."""
        xp = namespace(features)
        lifted, constant = self._lift(features)
        base = intercepts - loadings @ constant
        result = xp.empty(self.y.shape, dtype=self.y.dtype)

        def keep(obs: slice, score: Array) -> Array:
            level = xp.take(base, self.codes[obs], axis=0)
            value = result[obs] = values(obs, score + level)
            return value

        total = self._products(lifted, loadings, keep, back)
        sums = segment_sum(result, self.offsets)
        return result, sums, None if back is None else self._drop(total, back.T @ sums)

    def backward(self, values: Array, sums: Array, loadings: Array) -> Array:
        """Return ``Σ_i v_i x_i m_tᵀ``, given the sums of the values by task."""
        back = self._products(None, loadings, lambda obs, score: values[obs], loadings)
        return self._drop(back, loadings.T @ sums)

    @cached_property
    def _task_blocks(self) -> TaskBlocks:
        return TaskBlocks(self.blocks, self.codes, self.n_tasks)

    def _products(
        self, lifted: Array | None, loadings: Array, values: Work, back: Array | None
    ) -> Array | None:
        """Rows times what ``values`` makes of their scores; of their numbers if not ``lifted``."""
        width = loadings.shape[1]
        plain = unmixed(loadings) and (back is None or back is loadings or unmixed(back))
        if blocks_are_cheaper(self.blocks, self.n_tasks, width, plain=plain):
            # Rows rather meet the weights of their own task than all columns.
            weights = None if lifted is None else task_weights(lifted, loadings)
            total = self._task_blocks.run(weights, values, back=back is not None)
            return None if back is None else mixed_sums(total, back)

        def work(block: Block) -> Array | None:
            mixed = self._mixed(loadings, block.obs)
            score = None if lifted is None else row_dots(block.forward(lifted), mixed)
            value = values(block.obs, score)
            if back is None:
                return None
            left = mixed if back is loadings else self._mixed(back, block.obs)
            return block.backward(value[:, None] * left)

        return self.blocks.total(work, width)

    def by_task(
        self, features: Array, work: LatentWork, sizes: list[tuple[int, ...]]
    ) -> list[Array]:
        """Sum by task what ``work`` makes of latent values ``x_iᵀ Q``: arrays ``(T, *size)``."""
        xp = namespace(features)
        lifted, constant = self._lift(features)

        def part(number: int) -> tuple[int, int, tuple[Array, ...]]:
            start, stop = self.blocks.ranges[number]
            first, last, offsets = local_offsets(self.offsets, start, stop)
            parts = [block.forward(lifted) for block in self.blocks.chunk(number)]
            latent = xp.concat(parts, axis=0) if len(parts) > 1 else parts[0]
            obs = slice(start, stop)
            codes = self.codes[obs]
            return first, last, work(obs, codes, offsets, latent - constant[None, :])

        totals = [xp.zeros((self.n_tasks, *size), dtype=features.dtype) for size in sizes]
        for first, last, pieces in self.blocks.each(part, lifted.shape[1]):
            # A task may straddle chunks, so each adds to what is there.
            for total, piece in zip(totals, pieces, strict=True):
                total[first:last, ...] += piece
        return totals

    def scores(self, features: Array, loadings: Array, intercepts: Array) -> Array:
        """Return ``x_iᵀ Q m_t + b_t`` for every observation."""
        return self.run(features, loadings, intercepts, lambda obs, score: score)[0]

    def quadratic_at(self, point: Factors) -> RowsLocalQuadratic:
        return RowsLocalQuadratic(self, point)

    def with_tasks_pooled(self, labels: np.ndarray, count: int) -> RowsDatafit:
        own = labels[np.repeat(np.arange(self.n_tasks), np.diff(self.offsets))]
        order = np.argsort(own, kind="stable")
        offsets = np.searchsorted(own[order], np.arange(count + 1))
        rows = self.rows
        if not np.array_equal(labels, np.sort(labels)):  # Else nothing moves.
            rows = order if rows is None else rows[order]
        obs = take(self.y, order), take(self.weights, order), offsets
        return RowsDatafit(self.design, *obs, self.loss, rows)

    def losses(self, weights: Array, intercepts: Array) -> Array:
        xp = namespace(weights)

        def work(obs: slice, codes: Array, offsets: np.ndarray, latent: Array) -> tuple[Array]:
            target, share = self.y[obs, None], self.weights[obs, None]
            value = share * self.loss.value(target, latent + intercepts[None, :])
            return (segment_sum(value, offsets),)

        return self.by_task(xp.asarray(weights.T), work, [(weights.shape[0],)])[0]

    def along_segment(self, start: Factors, stop: Factors) -> Callable[[float], float]:
        xp = namespace(self.y)
        first, last = (self.scores(*linear_terms(p), p.intercepts) for p in (start, stop))

        def value(share: float) -> float:
            score = first + share * (last - first)
            return float(xp.sum(self.weights * self.loss.value(self.y, score)))

        return value


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
        features, loadings = linear_terms(self.point)
        if back is not None and _equal(back, loadings):
            back = loadings  # One gather for both ways.
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
        self.value_with(loadings)
        ready, self._ready = self._ready, None  # handed out once: callers add to it
        sums = segment_sum(self.slope, self.datafit.offsets)
        if ready is not None and _equal(ready[0], loadings):
            return ready[1], sums
        return self.datafit.backward(self.slope, sums, loadings), sums

    def normal(self, step: Array, loadings: Array, intercepts: Array) -> tuple[Array, Array]:
        curvature = self.curvature
        _, sums, product = self.datafit.run(
            step, loadings, intercepts, lambda obs, score: curvature[obs] * score, loadings
        )
        return product, sums

    def dual_ridge(
        self, loadings: Array, penalty: FeaturePenalty, passes: float
    ) -> RowSolve | None:
        return dual_ridge(self.datafit, self.curvature, loadings, penalty, passes)

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


def _equal(one: Array, other: Array) -> bool:
    return one.shape == other.shape and bool(namespace(one).all(one == other))


def linear_terms(point: Factors) -> tuple[Array, Array]:
    """``Q`` and ``M`` such that the weights of a task are ``Q m_t``, without parts not in use."""
    xp = namespace(point.F)
    features, loadings = point.F, point.loadings
    if not bool(xp.any(features != 0.0)):  # The start: nothing to multiply the rows by.
        features, loadings = features[:, :0], loadings[:, :0]
    if not bool(xp.any(point.shared != 0.0)):
        return features, loadings
    return xp.concat([features, point.shared[:, None]], axis=1), with_ones(loadings)
