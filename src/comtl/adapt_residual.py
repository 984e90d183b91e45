"""New tasks with a residual beyond the span of the factors, sized by leave-one-out.

See :mod:`comtl.adapt` for the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from .arrays import Array, namespace, on_device, similar_sizes, take, with_ones
from .datafits.rows_datafit import RowsDatafit
from .factors import State

FACTOR_SIZES = (0.0, 1.0, 10.0, 100.0)
RESIDUAL_SIZES = (0.0, *np.logspace(-4, 2, 7).tolist())
WIDE_INTERCEPT = 1e3
SELECTION_ROWS = 300
"""Candidates of the sizes, relative to the fit's own; rows a task that the choice looks at."""

_BATCH_CELLS = 2**22

Within = Callable[[RowsDatafit, State, Array | None], tuple[Array, Array]]
"""Task factor and intercepts of new tasks without a residual."""


@dataclass(frozen=True)
class Sizes:
    """Prior variances of the parts of a new task's weights, and whether it keeps the old base.

    The base is the shared part, or the point within the span where the penalty of the task factor
    is not smooth. Neither base nor factor: a model of the new rows alone.
    """

    factor: float
    residual: float
    intercept: float
    base: bool = True


@dataclass(frozen=True, eq=False)
class Batch:
    """Tasks of similar length, padded: latent features, own features, targets, weights."""

    tasks: np.ndarray
    index: np.ndarray
    inside: Array
    latent: Array
    own: Array

    @cached_property
    def kernels(self) -> tuple[Array, Array, Array]:
        """Products of the rows of each task: of latent features, of own features, of ones."""
        latent, own = (f @ _turned(f) for f in (self.latent, self.own))
        return latent, own, self.pad[:, :, None] * self.pad[:, None, :]

    @cached_property
    def pad(self) -> Array:
        """One for a row of a task, zero for padding."""
        return namespace(self.own).astype(self.inside, self.own.dtype)

    def of_cells(self, values: Array) -> Array:
        if not on_device(values):
            return values[self.index]
        return namespace(values).reshape(take(values, self.index.ravel()), self.index.shape)


def _turned(matrices: Array) -> Array:
    return namespace(matrices).permute_dims(matrices, (0, 2, 1))


def candidates(state: State, smooth: bool) -> list[Sizes]:
    """Sizes to choose from, models of the new rows alone among them."""
    model = 0.5 / state.intercept_penalty if state.has_random_intercepts else 0.0
    intercepts = sorted({model, WIDE_INTERCEPT} if state.intercept else {0.0})
    factors = FACTOR_SIZES if smooth else (0.0,)
    grid = [Sizes(*sizes) for sizes in product(factors, RESIDUAL_SIZES, intercepts)]
    alone = [replace(s, base=False) for s in grid if s.residual and not s.factor]
    return [s for s in grid if s.factor or s.residual or not smooth] + alone


def _start(
    fit: RowsDatafit, state: State, whitening: Array | None, within: Within
) -> tuple[Array, Array, Array, dict[bool, Array]]:
    """Task factor and intercepts to start from, coordinates, and scores with and without base."""
    point = state.factors
    xp = namespace(point.G)
    G = xp.zeros((fit.n_tasks, point.G.shape[1]), dtype=point.G.dtype)
    intercepts = xp.full(fit.n_tasks, point.offset, dtype=G.dtype)
    if whitening is None:
        G, intercepts = within(fit, state, None)
        whitening = xp.eye(G.shape[1], dtype=G.dtype)
    columns = xp.concat([point.feature_loadings, point.shared[:, None]], axis=1)
    bare = xp.full(fit.y.shape[0], point.offset, dtype=G.dtype)
    bases = {True: fit.scores(columns, with_ones(G), intercepts), False: bare}
    return G, intercepts, whitening, bases


def selection_losses(
    fit: RowsDatafit, state: State, whitening: Array | None, within: Within
) -> np.ndarray:
    """Leave-one-out loss for each of the sizes to choose from."""
    smooth, xp = whitening is not None, namespace(state.factors.G)
    G, _, whitening, bases = _start(fit, state, whitening, within)
    lift = state.factors.feature_loadings @ whitening
    tried = candidates(state, smooth)
    losses = np.zeros(len(tried))
    for batch in _batches(fit, lift, SELECTION_ROWS):
        one = xp.ones_like(batch.pad)
        keeps = one if smooth else _base_keeps(fit, batch, G, bases[True], state)
        for number, sizes in enumerate(tried):
            share = keeps if sizes.base else one
            losses[number] += _leave_one_out(fit, batch, sizes, bases[sizes.base], share)
    return losses


def beyond_span(
    fit: RowsDatafit, state: State, whitening: Array | None, within: Within, best: Sizes
) -> tuple[Array, Array, Array]:
    """Fit every new task with given sizes."""
    point = state.factors
    xp = namespace(point.G)
    G, intercepts, whitening, bases = _start(fit, state, whitening, within)
    lift = point.feature_loadings @ whitening
    beyond = xp.zeros((fit.n_tasks, fit.n_features), dtype=G.dtype)
    if not best.base:
        G, intercepts = xp.zeros_like(G), xp.full_like(intercepts, point.offset)
        beyond -= point.shared
    order, moves = [], []
    for batch in _batches(fit, lift, None):
        dual, _ = _kernel_fit(fit, batch, best, bases[best.base])
        lifted = dual[:, :, None]
        step = best.factor * 0.5 * xp.sum(batch.latent * lifted, axis=1) @ whitening.T
        own = best.residual * 0.5 * xp.sum(batch.own * lifted, axis=1)
        order.append(batch.tasks)
        moves.append((step, own, best.intercept * xp.sum(dual, axis=1)))
    # Batches hold every task once.
    back = np.argsort(np.concatenate(order))
    step, own, rise = (take(xp.concat(list(m), axis=0), back) for m in zip(*moves, strict=True))
    return G + step, intercepts + rise, beyond + own


def _batches(fit: RowsDatafit, lift: Array, limit: int | None) -> Iterator[Batch]:
    """Yield the new tasks in padded batches, at most ``limit`` rows (evenly spread) of each."""
    sizes = np.diff(fit.offsets)
    kept = sizes if limit is None else np.minimum(sizes, limit)
    for group in similar_sizes(kept):
        longest = int(kept[group].max())
        step = max(1, _BATCH_CELLS // (longest * fit.n_features))
        for first in range(0, len(group), step):
            tasks = group[first : first + step]
            places = np.arange(longest)
            inside = places < kept[tasks][:, None]
            spread = places * sizes[tasks][:, None] // kept[tasks][:, None]
            index = fit.offsets[:-1][tasks][:, None] + np.where(inside, spread, 0)
            rows = index if fit.rows is None else fit.rows[index]
            flat, back = np.unique(rows, return_inverse=True)
            xp = namespace(lift)
            dense = take(fit.design.take(flat), back.ravel())
            pad = xp.asarray(inside)
            own = xp.reshape(dense, (*rows.shape, fit.n_features))
            own = own * xp.astype(pad, own.dtype)[:, :, None]
            yield Batch(tasks, index, pad, own @ lift, own)


def _kernel_fit(
    fit: RowsDatafit,
    batch: Batch,
    sizes: Sizes,
    common: Array,
    keeps: Array | float = 1.0,
) -> tuple[Array, Array]:
    """Dual weights and leave-one-out scores by reweighted ridge, in the smaller dimension."""
    xp, pad = namespace(batch.own), batch.inside
    y, base = batch.of_cells(fit.y), batch.of_cells(common)
    weights = batch.of_cells(fit.weights) * batch.pad
    smoother = _DualSmoother if pad.shape[1] <= batch.own.shape[2] else _PrimalSmoother
    ridge = smoother(batch, sizes)
    score = base
    for _ in range(1 if fit.loss.quadratic else 12):
        slope = fit.loss.derivative(y, score)
        curvature = xp.clip(fit.loss.curvature(y, score), min=1e-4)
        target = score - base - slope / curvature
        target = xp.where(pad, target, xp.zeros_like(target))
        dual, kept = ridge.solve(xp.sqrt(curvature * weights), target)
        before, score = score, base + ridge.score(dual)
        if fit.loss.quadratic:
            break
        largest = float(xp.max(xp.abs(score)))
        if float(xp.max(xp.abs(score - before))) <= 1e-6 * (1.0 + largest):
            break
    # Left out, a row's working residual is the present one over the share that it keeps.
    left_out = base + target - (target - (score - base)) / xp.clip(kept * keeps, min=1e-12)
    return dual, left_out


class _DualSmoother:
    """Ridge over the rows of each task: the kernel is a sum of parts that sizes only weight."""

    def __init__(self, batch: Batch, sizes: Sizes) -> None:
        latent, own, ones = batch.kernels
        self.kernel = 0.5 * sizes.factor * latent + 0.5 * sizes.residual * own
        self.kernel += sizes.intercept * ones

    def solve(self, root: Array, target: Array) -> tuple[Array, Array]:
        """Dual weights, and the share of its own residual that each row keeps."""
        xp = namespace(root)
        scaled = root[:, :, None] * self.kernel * root[:, None, :]
        inverse = xp.linalg.inv(xp.eye(root.shape[1], dtype=scaled.dtype) + scaled)
        dual = root * (inverse @ (root * target)[:, :, None])[:, :, 0]
        return dual, xp.linalg.diagonal(inverse)

    def score(self, dual: Array) -> Array:
        return (self.kernel @ dual[:, :, None])[:, :, 0]


class _PrimalSmoother:
    """Ridge over the features of each task, where they are fewer than its rows."""

    def __init__(self, batch: Batch, sizes: Sizes) -> None:
        parts = [
            (0.5 * sizes.factor) ** 0.5 * batch.latent,
            (0.5 * sizes.residual) ** 0.5 * batch.own,
            sizes.intercept**0.5 * batch.pad[:, :, None],
        ]
        self.features = namespace(batch.own).concat(parts, axis=2)

    def solve(self, root: Array, target: Array) -> tuple[Array, Array]:
        xp = namespace(root)
        features = root[:, :, None] * self.features
        turned = _turned(features)
        eye = xp.eye(features.shape[2], dtype=features.dtype)
        seen = features @ xp.linalg.inv(eye + turned @ features)
        fitted = (seen @ (turned @ (root * target)[:, :, None]))[:, :, 0]
        return root * (root * target - fitted), 1.0 - xp.sum(seen * features, axis=2)

    def score(self, dual: Array) -> Array:
        back = _turned(self.features) @ dual[:, :, None]
        return (self.features @ back)[:, :, 0]


def _base_keeps(fit: RowsDatafit, batch: Batch, G: Array, common: Array, state: State) -> Array:
    """Share of its residual that each row keeps under the base: its leverages, as for the lasso."""
    xp = namespace(G)
    y, score = batch.of_cells(fit.y), batch.of_cells(common)
    root = xp.sqrt(batch.of_cells(fit.weights) * fit.loss.curvature(y, score)) * batch.pad
    used = xp.astype(take(G, batch.tasks) != 0.0, G.dtype)[:, None, :]
    features = root[:, :, None] * xp.concat(
        [batch.latent * used, batch.pad[:, :, None] * float(state.has_random_intercepts)], axis=2
    )
    gram = _turned(features) @ features
    least = 1e-6 * xp.linalg.trace(gram)[:, None] + 1e-12
    ridge = least * xp.ones((1, features.shape[2]), dtype=least.dtype)
    if state.has_random_intercepts:
        ridge[:, -1] += 2.0 * state.intercept_penalty
    eye = xp.eye(features.shape[2], dtype=gram.dtype)
    solved = xp.linalg.solve(gram + ridge[:, :, None] * eye, _turned(features))
    return 1.0 - xp.sum(features * _turned(solved), axis=2)


def _leave_one_out(
    fit: RowsDatafit, batch: Batch, sizes: Sizes, common: Array, keeps: Array
) -> float:
    """Loss of the left-out scores, summed over the batch; ``keeps`` is what the base left."""
    _, score = _kernel_fit(fit, batch, sizes, common, keeps)
    weights = batch.of_cells(fit.weights) * batch.pad
    value = weights * fit.loss.value(batch.of_cells(fit.y), score)
    return float(namespace(value).sum(value))
