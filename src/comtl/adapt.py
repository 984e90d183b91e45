r"""New tasks on frozen factors.

Without a residual this is the paper's transfer step: the task step of the fit for the new rows
alone. A row ``g`` added to ``G`` raises the smoothed penalty :math:`λ_2 φ(G)^2` by
:math:`λ_2 φ\, g (G^\top G + εI)^{-1/2} g^\top` to first order, so in the coordinates ``h`` with
``g = L h`` that whiten this form the penalty is plain ridge.

With a residual, :math:`w_t = w_0 + F S g_t + r_t`. For given sizes of the three parts (factors,
residual, intercept) this is ridge regression with one kernel for each task, whose leave-one-out
scores have a closed form. The sizes with the lowest leave-one-out loss over all new rows win;
without factors and shared part they are models of the new rows alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from .arrays import Array, asarray_like, namespace, on_device, take, to_numpy, with_ones
from .arrays.segments import similar_sizes
from .datafits.rows_datafit import RowsDatafit
from .engine.alternation import line_search
from .engine.memberships import task_moves
from .engine.problem import rows_datafit
from .engine.recipe import InnerTolerance
from .engine.task_steps import deviation_step, task_step
from .factors import Factors, State
from .linear import ColumnWeights, RowSparse, Scaling
from .losses import Loss
from .penalties import Ridge
from .rows.observations import Observations

FACTOR_SIZES = (0.0, 1.0, 10.0, 100.0)
RESIDUAL_SIZES = (0.0, *np.logspace(-4, 2, 7).tolist())
WIDE_INTERCEPT = 1e3
SELECTION_ROWS = 300
"""Candidates of the sizes, relative to the fit's own; rows a task that the choice looks at."""

SPAN_ROUNDING = 1e-13
"""Part of the largest weight up to which a weight is in a span."""

_BATCH_ENTRIES = 2**22

Within = Callable[[RowsDatafit, State, Array | None], tuple[Array, Array]]
"""Task factor and intercepts of new tasks without a residual."""

New = tuple[Array, Array, sparse.csr_array | RowSparse | None]
"""Task factor, intercepts and residual of new columns, in the user's units."""


@dataclass(frozen=True)
class Sizes:
    """Prior variances of the parts of a new task's weights, and whether it keeps the base."""

    factor: float
    residual: float
    intercept: float
    base: bool = True  # w0, or the point within the span where the penalty of G is not smooth


@dataclass(frozen=True, eq=False)
class Adaptation:
    """A fitted model as new tasks build on it; ``within`` fits them without a residual."""

    state: State
    units: Scaling
    loss: Loss
    within: Within

    @cached_property
    def whitening(self) -> Array | None:
        """Coordinates in which the penalty of a new row of ``G`` is plain ridge, if there are."""
        return self.state.penalties["G"].whitening(self.state.factors.G)

    @cached_property
    def candidates(self) -> list[Sizes]:
        """Sizes to choose from, models of the new rows alone among them."""
        state, smooth = self.state, self.whitening is not None
        model = 0.5 / state.intercept_penalty if state.has_random_intercepts else 0.0
        intercepts = sorted({model, WIDE_INTERCEPT} if state.intercept else {0.0})
        factors = FACTOR_SIZES if smooth else (0.0,)
        grid = [Sizes(*sizes) for sizes in product(factors, RESIDUAL_SIZES, intercepts)]
        alone = [replace(s, base=False) for s in grid if s.residual and not s.factor]
        return [s for s in grid if s.factor or s.residual or not smooth] + alone

    def best(self, losses: np.ndarray) -> Sizes:
        return self.candidates[int(losses.argmin())]

    def losses(self, obs: Observations) -> np.ndarray:
        """Leave-one-out loss of the observations for each of the candidates."""
        fit, smooth = rows_datafit(obs, self.units, self.loss), self.whitening is not None
        xp = namespace(self.state.factors.G)
        start = _start(fit, self)
        losses = np.zeros(len(self.candidates))
        for batch in _batches(fit, start.lift, SELECTION_ROWS):
            weights, y = batch.of_rows(fit.weights) * batch.pad, batch.of_rows(fit.y)
            one = xp.ones_like(batch.pad)
            keeps = one if smooth else _base_keeps(fit, batch, start, self.state)
            for number, sizes in enumerate(self.candidates):
                kept = keeps if sizes.base else one
                _, score = _kernel_fit(fit, batch, sizes, start.scores[sizes.base], kept)
                losses[number] += float(xp.sum(weights * fit.loss.value(y, score)))
        return losses

    def columns(self, sizes: Sizes | None, obs: Observations) -> New:
        """Columns of new tasks with a residual of given sizes, or within the span."""
        fit = rows_datafit(obs, self.units, self.loss)
        units, point = self.units, self.state.factors
        centre_offset, beyond = units.shift @ point.shared, None
        if sizes is None:
            G, intercepts = self.within(fit, self.state, self.whitening)
        else:
            G, intercepts, residual = beyond_span(fit, self, sizes)
            centre_offset = centre_offset + residual @ units.shift
            residual = residual * (units.target_scale * units.inverse_scale)
            if on_device(residual):
                beyond = RowSparse(np.arange(residual.shape[0]), residual)
            else:
                beyond = sparse.csr_array(residual)
                beyond.eliminate_zeros()
        centre_offset = centre_offset + G @ (units.shift @ point.feature_loadings)
        return G, units.intercepts(intercepts, centre_offset), beyond


def adapt_columns(obs: Any, adaptation: Adaptation, *, residual: bool) -> New:
    """Columns of weights of new tasks."""
    if obs.partitioned:
        return obs.adapt_columns(adaptation, residual=residual)
    return adaptation.columns(adaptation.best(adaptation.losses(obs)) if residual else None, obs)


def columns_beside(weights: ColumnWeights, coef: Array, intercepts: Array) -> New:
    """Columns of given weights beside others: on their directions, and beyond as a residual."""
    directions = to_numpy(weights.directions)
    gap = to_numpy(coef - weights.shared)
    factor = np.zeros((len(gap), 0))
    if directions.shape[1]:
        factor = np.linalg.lstsq(directions, gap.T)[0].T
    beyond = gap - factor @ directions.T
    like, dtype = weights.shared, weights.shared.dtype
    if (np.abs(beyond) <= SPAN_ROUNDING * np.abs(gap).max(initial=0.0)).all():
        residual = None
    elif on_device(like):
        residual = RowSparse(np.arange(len(gap)), asarray_like(beyond, like, dtype))
    else:
        residual = sparse.csr_array(beyond.astype(dtype))
    return asarray_like(factor, like, dtype), intercepts, residual


def within_span(fit: RowsDatafit, state: State, whitening: Array | None) -> tuple[Array, Array]:
    """Task step on frozen directions, repeated where the loss is not quadratic."""
    point = state.factors
    if whitening is None:
        directions, back, penalty = point.feature_loadings, None, state.penalties["G"]
    else:
        directions, back, penalty = point.feature_loadings @ whitening, whitening, Ridge(1.0)
    xp = namespace(directions)
    G = xp.zeros((fit.n_tasks, directions.shape[1]), dtype=directions.dtype)
    G = penalty.prox(G, 1e-12)
    own = xp.zeros(fit.n_tasks, dtype=G.dtype)
    if state.has_random_intercepts and fit.start_scores is not None:
        own = fit.start_scores[1] - point.offset
    start = Factors(directions, None, G, point.shared, point.offset, own)
    frozen = replace(state, factors=start, penalties={"G": penalty}, fixed=frozenset())
    before = np.inf
    for _ in range(100):
        expansion = fit.quadratic_at(frozen.factors)
        value = expansion.value + frozen.regularizer
        if before - value <= 1e-10 * abs(value):
            break
        before = value
        quadratic = expansion.task_quadratic(directions)
        if penalty.discrete:
            moved, _ = task_moves(fit, quadratic, frozen)
        else:
            moved, _ = task_step(quadratic, frozen, InnerTolerance(1e-8, 1000))
        frozen = line_search(fit, frozen, frozen.at(moved))
        if not penalty.smooth:  # Else the task step moved the intercepts too.
            at = fit.quadratic_at(frozen.factors)
            moved = deviation_step(at.gradient(G[:, :0])[1], at.curvature_sums, frozen)
            frozen = line_search(fit, frozen, frozen.at(moved))
    G = frozen.factors.G if back is None else frozen.factors.G @ back.T
    return G, frozen.factors.intercepts


@dataclass(frozen=True, eq=False)
class Batch:
    """Tasks of similar length, padded: latent features and features."""

    tasks: np.ndarray
    index: np.ndarray
    inside: Array
    latent: Array
    features: Array

    @cached_property
    def kernels(self) -> tuple[Array, Array, Array]:
        """Products of the rows of each task: of latent features, of features, of ones."""
        latent, linear = (f @ f.mT for f in (self.latent, self.features))
        return latent, linear, self.pad[:, :, None] * self.pad[:, None, :]

    @cached_property
    def pad(self) -> Array:
        """One for a row of a task, zero for padding."""
        return namespace(self.features).astype(self.inside, self.features.dtype)

    def of_rows(self, values: Array) -> Array:
        flat = take(values, self.index.ravel())
        return namespace(values).reshape(flat, self.index.shape)


@dataclass(frozen=True, eq=False)
class _Start:
    """What the residual is fitted on top of."""

    G: Array
    intercepts: Array
    whitening: Array
    lift: Array  # maps features to latent features
    scores: dict[bool, Array]  # of all rows, with and without the base


def _start(fit: RowsDatafit, adaptation: Adaptation) -> _Start:
    state, whitening = adaptation.state, adaptation.whitening
    point = state.factors
    xp = namespace(point.G)
    G = xp.zeros((fit.n_tasks, point.G.shape[1]), dtype=point.G.dtype)
    intercepts = xp.full(fit.n_tasks, point.offset, dtype=G.dtype)
    if whitening is None:
        G, intercepts = adaptation.within(fit, state, None)
        whitening = xp.eye(G.shape[1], dtype=G.dtype)
    columns = xp.concat([point.feature_loadings, point.shared[:, None]], axis=1)
    bare = xp.full(fit.y.shape[0], point.offset, dtype=G.dtype)
    scores = {True: fit.scores(columns, with_ones(G), intercepts), False: bare}
    return _Start(G, intercepts, whitening, point.feature_loadings @ whitening, scores)


def beyond_span(fit: RowsDatafit, adaptation: Adaptation, best: Sizes) -> tuple[Array, ...]:
    """Fit every new task with given sizes."""
    point, start = adaptation.state.factors, _start(fit, adaptation)
    G, intercepts, xp = start.G, start.intercepts, namespace(point.G)
    beyond = xp.zeros((fit.n_tasks, fit.n_features), dtype=G.dtype)
    if not best.base:
        G, intercepts = xp.zeros_like(G), xp.full_like(intercepts, point.offset)
        beyond -= point.shared
    order, moves = [], []
    for batch in _batches(fit, start.lift, None):
        dual, _ = _kernel_fit(fit, batch, best, start.scores[best.base])
        lifted = dual[:, :, None]
        step = best.factor * 0.5 * xp.sum(batch.latent * lifted, axis=1) @ start.whitening.T
        residual = best.residual * 0.5 * xp.sum(batch.features * lifted, axis=1)
        order.append(batch.tasks)
        moves.append((step, residual, best.intercept * xp.sum(dual, axis=1)))
    # Batches hold every task once.
    back = np.argsort(np.concatenate(order))
    step, residual, rise = (take(xp.concat(m, axis=0), back) for m in zip(*moves, strict=True))
    return G + step, intercepts + rise, beyond + residual


def _batches(fit: RowsDatafit, lift: Array, limit: int | None) -> Iterator[Batch]:
    """Yield the new tasks in padded batches, at most ``limit`` rows (evenly spread) of each."""
    sizes = np.diff(fit.offsets)
    kept = sizes if limit is None else np.minimum(sizes, limit)
    for group in similar_sizes(kept):
        longest = int(kept[group].max())
        step = max(1, _BATCH_ENTRIES // (longest * fit.n_features))
        for first in range(0, len(group), step):
            tasks = group[first : first + step]
            position = np.arange(longest)
            inside = position < kept[tasks][:, None]
            spread = position * sizes[tasks][:, None] // kept[tasks][:, None]
            index = fit.offsets[:-1][tasks][:, None] + np.where(inside, spread, 0)
            rows = index if fit.rows is None else fit.rows[index]
            flat, back = np.unique(rows, return_inverse=True)
            xp = namespace(lift)
            dense = take(fit.design.picked(flat).dense_rows(0, len(flat)), back.ravel())
            pad = xp.asarray(inside)
            X = xp.reshape(dense, (*rows.shape, fit.n_features))
            X = X * xp.astype(pad, X.dtype)[:, :, None]
            yield Batch(tasks, index, pad, X @ lift, X)


def _kernel_fit(
    fit: RowsDatafit,
    batch: Batch,
    sizes: Sizes,
    common: Array,
    keeps: Array | float = 1.0,
) -> tuple[Array, Array]:
    """Dual weights and leave-one-out scores by reweighted ridge, in the smaller dimension."""
    xp, pad = namespace(batch.features), batch.inside
    y, base = batch.of_rows(fit.y), batch.of_rows(common)
    weights = batch.of_rows(fit.weights) * batch.pad
    smoother = _DualSmoother if pad.shape[1] <= batch.features.shape[2] else _PrimalSmoother
    ridge = smoother(batch, sizes)
    score, last = base, xp.zeros_like(base)
    longest = fit.loss.longest_step
    for _ in range(1 if fit.loss.quadratic else 12):
        slope = fit.loss.derivative(y, score)
        curvature = fit.loss.working_curvature(y, score)
        target = score - base - slope / curvature
        target = xp.where(pad, target, xp.zeros_like(target))
        dual, kept = ridge.solve(xp.sqrt(curvature * weights), target)
        before, score = score, base + ridge.score(dual)
        if longest < float("inf"):
            move = xp.max(xp.abs(score - before), axis=1, keepdims=True)
            share = longest / xp.clip(move, min=longest)
            score, dual = before + share * (score - before), last + share * (dual - last)
            last = dual
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
        latent, linear, ones = batch.kernels
        self.kernel = 0.5 * sizes.factor * latent + 0.5 * sizes.residual * linear
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
        factor, residual = (0.5 * sizes.factor) ** 0.5, (0.5 * sizes.residual) ** 0.5
        ones = sizes.intercept**0.5 * batch.pad[:, :, None]
        parts = [factor * batch.latent, residual * batch.features, ones]
        self.features = namespace(ones).concat(parts, axis=2)

    def solve(self, root: Array, target: Array) -> tuple[Array, Array]:
        xp = namespace(root)
        features = root[:, :, None] * self.features
        transposed = features.mT
        eye = xp.eye(features.shape[2], dtype=features.dtype)
        smoothed = features @ xp.linalg.inv(eye + transposed @ features)
        fitted = (smoothed @ (transposed @ (root * target)[:, :, None]))[:, :, 0]
        return root * (root * target - fitted), 1.0 - xp.sum(smoothed * features, axis=2)

    def score(self, dual: Array) -> Array:
        back = self.features.mT @ dual[:, :, None]
        return (self.features @ back)[:, :, 0]


def _base_keeps(fit: RowsDatafit, batch: Batch, start: _Start, state: State) -> Array:
    """Share of its residual that each row keeps under the base: its leverages, as for the lasso."""
    G, xp = start.G, namespace(start.G)
    y, score = batch.of_rows(fit.y), batch.of_rows(start.scores[True])
    root = xp.sqrt(batch.of_rows(fit.weights) * fit.loss.curvature(y, score)) * batch.pad
    in_use = xp.astype(take(G, batch.tasks) != 0.0, G.dtype)[:, None, :]
    features = root[:, :, None] * xp.concat(
        [batch.latent * in_use, batch.pad[:, :, None] * float(state.has_random_intercepts)], axis=2
    )
    gram = features.mT @ features
    least = 1e-6 * xp.linalg.trace(gram)[:, None] + 1e-12
    ridge = least * xp.ones((1, features.shape[2]), dtype=least.dtype)
    if state.has_random_intercepts:
        ridge[:, -1] += 2.0 * state.intercept_penalty
    eye = xp.eye(features.shape[2], dtype=gram.dtype)
    solved = xp.linalg.solve(gram + ridge[:, :, None] * eye, features.mT)
    return 1.0 - xp.sum(features * solved.mT, axis=2)
