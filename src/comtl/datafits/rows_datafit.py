"""Matrix-free rows: any loss, dense or sparse, one pass over the rows for each product."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import Array, namespace, on_device, row_dots, segment_sum, take
from ..arrays.packed import RowSelector
from ..arrays.segments import local_offsets
from ..factors import Factors
from ..losses import Loss
from ..rows.blocks import RowBlocks, plus
from ..rows.design import Covariance, Design
from .block_diagonal import TaskBlocks, blocks_are_cheaper, mixed_sums, task_weights, unmixed
from .datafit import Datafit

if TYPE_CHECKING:
    from .rows_expansion import RowsLocalQuadratic

Values = Callable[[slice, Array], Array]
"""What is made of the scores of some observations."""

LatentWork = Callable[[slice, Array, np.ndarray, Array], tuple[Array, ...]]
"""What is made of the latent values of a chunk's observations, one entry for each of its tasks."""


class RowsDatafit(Datafit):
    """Observations (row, task, target, weight) sorted by task over the rows of a design."""

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
        self.n_weighted = float(namespace(y).sum(weights))
        codes = np.repeat(np.arange(self.n_tasks, dtype=np.int32), np.diff(offsets))
        self._last: tuple[Array, Array] | None = None
        self._codes = namespace(y).asarray(codes) if on_device(y) else codes

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
        from .dual_ridge import inner_products, scaled_rows

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
            return namespace(loadings).take(loadings, self._codes[obs], axis=0)
        if self._last is None or self._last[0] is not loadings:
            self._last = loadings, namespace(loadings).take(loadings, self._codes, axis=0)
        return self._last[1]

    def run(
        self,
        features: Array,
        loadings: Array,
        intercepts: Array,
        values: Values,
        back: Array | None = None,
    ) -> tuple[Array, Array, Array | None]:
        """Values of the scores ``x_iᵀ Q m_t + b_t``, their sums by task, and ``Σ v_i x_i n_tᵀ``."""
        xp = namespace(features)
        lifted, constant = self._lift(features)
        base = intercepts - loadings @ constant
        result = xp.empty(self.y.shape, dtype=self.y.dtype)

        def keep(obs: slice, score: Array) -> Array:
            level = xp.take(base, self._codes[obs], axis=0)
            value = result[obs] = values(obs, score + level)
            return value

        if self._by_task_blocks(loadings, back):
            weights = task_weights(lifted, loadings)
            total = self._task_blocks.run(weights, keep, back=back is not None)
            total = None if back is None else mixed_sums(total, back)
        else:
            total = self._by_all_columns(lifted, loadings, keep, back)
        sums = segment_sum(result, self.offsets)
        return result, sums, None if back is None else self._drop(total, back.T @ sums)

    def backward(self, values: Array, sums: Array, loadings: Array) -> Array:
        """Return ``Σ_i v_i x_i m_tᵀ``, given the sums of the values by task."""
        if self._by_task_blocks(loadings, loadings):
            back = mixed_sums(self._task_blocks.sums(values), loadings)
        else:
            back = self._by_all_columns(None, loadings, lambda obs, score: values[obs], loadings)
        return self._drop(back, loadings.T @ sums)

    @cached_property
    def _task_blocks(self) -> TaskBlocks:
        return TaskBlocks(self.blocks, self._codes, self.n_tasks)

    def _by_task_blocks(self, loadings: Array, back: Array | None) -> bool:
        """Whether rows rather meet the weights of their own task than all columns."""
        if on_device(self.y):
            return False
        plain = unmixed(loadings) and (back is None or back is loadings or unmixed(back))
        return blocks_are_cheaper(self.blocks, self.n_tasks, loadings.shape[1], plain=plain)

    def _by_all_columns(
        self, lifted: Array | None, loadings: Array, values: Values, back: Array | None
    ) -> Array:
        """Rows times what ``values`` makes of their scores, by way of all columns."""

        def part(number: int) -> Array | None:
            total = None
            for block in self.blocks.chunk(number):
                obs = slice(block.start, block.stop)
                mixed = self._mixed(loadings, obs)
                score = None if lifted is None else row_dots(block.forward(lifted), mixed)
                value = values(obs, score)
                if back is not None:
                    left = mixed if back is loadings else self._mixed(back, obs)
                    total = plus(total, block.backward(value[:, None] * left))
            return total

        total = None
        for product in self.blocks.each(part, loadings.shape[1]):
            total = plus(total, product)
        return total

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
            codes = self._codes[obs]
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
        from .rows_expansion import RowsLocalQuadratic

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
        from .rows_expansion import linear_terms

        xp = namespace(self.y)
        first, last = (self.scores(*linear_terms(p), p.intercepts) for p in (start, stop))

        def value(share: float) -> float:
            score = first + share * (last - first)
            return float(xp.sum(self.weights * self.loss.value(self.y, score)))

        return value
