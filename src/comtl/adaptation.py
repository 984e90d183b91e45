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

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from .alternation import descend
from .arrays import similar_sizes, with_ones
from .data import TaskData
from .datafits.rows import RowsDatafit
from .factors import Factors
from .losses import Loss
from .memberships import task_moves
from .penalties import Ridge
from .problem import Units
from .state import State
from .steps import Inner, deviation_step, task_step

FACTOR_SIZES = (0.0, 1.0, 10.0, 100.0)
RESIDUAL_SIZES = (0.0, *np.logspace(-4, 2, 7).tolist())
WIDE_INTERCEPT = 1e3
SELECTION_ROWS = 300
"""Candidates of the sizes, relative to the fit's own; rows a task that the choice looks at."""

_BATCH_CELLS = 2**22


Within = Callable[[RowsDatafit, State, np.ndarray | None], tuple[np.ndarray, np.ndarray]]
"""Task factor and intercepts of new tasks without a residual."""


New = tuple[np.ndarray, np.ndarray, sparse.csr_array | None]
"""Task factor, intercepts and residual of new columns, in the user's units."""


@dataclass(frozen=True, eq=False)
class Adaptation:
    """A fitted model as new tasks build on it.

    Parameters
    ----------
    state : State
        Factors and penalties of the fit.
    units : Units
        Those of the fit.
    loss : Loss
        Loss of a cell.
    within : callable
        Fits new tasks without a residual.
    """

    state: State
    units: Units
    loss: Loss
    within: Within

    @property
    def whitener(self) -> np.ndarray | None:
        """Coordinates in which the penalty of a new row of ``G`` is plain ridge."""
        return self.state.penalties["G"].whitener(self.state.factors.G)

    def rows(self, cells: TaskData) -> RowsDatafit:
        """New cells in the units of the fit."""
        y = self.units.target(cells.y).astype(cells.dtype)
        design = self.units.design(cells.X)
        return RowsDatafit(design, y, cells.weights, cells.offsets, self.loss, cells.rows)

    def losses(self, cells: TaskData) -> np.ndarray:
        """Leave-one-out loss of the cells for each of the sizes to choose from."""
        return _selection_losses(self.rows(cells), self.state, self.whitener, self.within)

    def best(self, losses: np.ndarray) -> Sizes:
        """The sizes with the lowest loss."""
        return _candidates(self.state, self.whitener is not None)[int(losses.argmin())]

    def columns(self, cells: TaskData, sizes: Sizes | None) -> New:
        """Columns of new tasks with a residual of given sizes, or within the span."""
        return _columns(self, self.rows(cells), sizes)


@singledispatch
def adapt_columns(cells: Any, adaptation: Adaptation, *, residual: bool) -> New:
    """Columns of weights of new tasks."""
    sizes = adaptation.best(adaptation.losses(cells)) if residual else None
    return adaptation.columns(cells, sizes)


def _columns(adaptation: Adaptation, fit: RowsDatafit, sizes: Sizes | None) -> New:
    state, units, within = adaptation.state, adaptation.units, adaptation.within
    point, whitener = state.factors, adaptation.whitener
    meeting = units.shift @ point.shared
    beyond = None
    if sizes is not None:
        G, intercepts, own = _beyond_span(fit, state, whitener, within, sizes)
        meeting = meeting + own @ units.shift
        beyond = sparse.csr_array(own * (units.target_scale * units.inverse_scale))
        beyond.eliminate_zeros()
    else:
        G, intercepts = within(fit, state, whitener)
    meeting = meeting + G @ (units.shift @ point.directions)
    return G, units.intercepts(intercepts, meeting), beyond


def within_span(
    fit: RowsDatafit, state: State, whitener: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Task step on frozen directions, repeated where the loss is not quadratic."""
    point = state.factors
    if whitener is None:
        directions, back, penalty = point.directions, None, state.penalties["G"]
    else:
        directions, back, penalty = point.directions @ whitener, whitener, Ridge(1.0)
    G = np.zeros((fit.n_tasks, directions.shape[1]), dtype=directions.dtype)
    G = penalty.prox(G, 1e-12)
    start = Factors(directions, None, G, point.shared, point.offset, np.zeros(fit.n_tasks, G.dtype))
    frozen = replace(state, factors=start, penalties={"G": penalty}, fixed=frozenset())
    before = np.inf
    for _ in range(100):
        expansion = fit.expand(frozen.factors)
        value = expansion.value + frozen.regularizer
        if before - value <= 1e-10 * abs(value):
            break
        before = value
        quadratic = expansion.task_quadratic(directions)
        if penalty.hard:
            moved, _ = task_moves(fit, quadratic, frozen)
        else:
            moved, _ = task_step(quadratic, frozen, Inner(1e-8, 1000))
        frozen = descend(fit, frozen, frozen.at(moved))
        if not penalty.smooth:  # Else the task step moved the intercepts too.
            at = fit.expand(frozen.factors)
            own = deviation_step(at.gradient(G[:, :0])[1], at.curvature_sums, frozen)
            frozen = descend(fit, frozen, frozen.at(own))
    G = frozen.factors.G if back is None else frozen.factors.G @ back.T
    return G, frozen.factors.intercepts


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
    inside: np.ndarray
    latent: np.ndarray
    own: np.ndarray

    @cached_property
    def kernels(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Products of the rows of each task: of latent features, of own features, of ones."""
        inside = self.inside[:, :, None]
        latent, own = (f @ f.transpose(0, 2, 1) for f in (self.latent, self.own))
        return latent, own, inside * self.inside[:, None, :]


def _candidates(state: State, smooth: bool) -> list[Sizes]:
    """Sizes to choose from, models of the new rows alone among them."""
    model = 0.5 / state.pooling if state.pooled else 0.0
    intercepts = sorted({model, WIDE_INTERCEPT} if state.intercept else {0.0})
    factors = FACTOR_SIZES if smooth else (0.0,)
    grid = [Sizes(*sizes) for sizes in product(factors, RESIDUAL_SIZES, intercepts)]
    alone = [replace(s, base=False) for s in grid if s.residual and not s.factor]
    return [s for s in grid if s.factor or s.residual or not smooth] + alone


def _start(
    fit: RowsDatafit, state: State, whitener: np.ndarray | None, within: Within
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[bool, np.ndarray]]:
    """Task factor and intercepts to start from, the lift of rows, and scores with and without."""
    point = state.factors
    G = np.zeros((fit.n_tasks, point.G.shape[1]), dtype=point.G.dtype)
    intercepts = np.full(fit.n_tasks, point.offset, dtype=G.dtype)
    if whitener is None:
        G, intercepts = within(fit, state, None)
        whitener = np.eye(G.shape[1], dtype=G.dtype)
    columns = np.concatenate([point.directions, point.shared[:, None]], axis=1)
    bare = np.full(len(fit.y), point.offset, dtype=G.dtype)
    bases = {True: fit.scores(columns, with_ones(G), intercepts), False: bare}
    return G, intercepts, whitener, bases


def _selection_losses(
    fit: RowsDatafit, state: State, whitener: np.ndarray | None, within: Within
) -> np.ndarray:
    """Leave-one-out loss for each of the sizes to choose from."""
    smooth = whitener is not None
    G, _, whitener, bases = _start(fit, state, whitener, within)
    lift = state.factors.directions @ whitener
    candidates = _candidates(state, smooth)
    losses = np.zeros(len(candidates))
    for batch in _batches(fit, lift, SELECTION_ROWS):
        one = np.ones_like(batch.inside, dtype=G.dtype)
        keeps = one if smooth else _base_keeps(fit, batch, G, bases[True], state)
        for number, sizes in enumerate(candidates):
            share = keeps if sizes.base else one
            losses[number] += _leave_one_out(fit, batch, sizes, bases[sizes.base], share)
    return losses


def _beyond_span(
    fit: RowsDatafit, state: State, whitener: np.ndarray | None, within: Within, best: Sizes
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit every new task with given sizes."""
    point = state.factors
    G, intercepts, whitener, bases = _start(fit, state, whitener, within)
    lift = point.directions @ whitener
    beyond = np.zeros((fit.n_tasks, fit.n_features), dtype=G.dtype)
    if not best.base:
        G, intercepts = np.zeros_like(G), np.full_like(intercepts, point.offset)
        beyond -= point.shared
    for batch in _batches(fit, lift, None):
        dual, _ = _kernel_fit(fit, batch, best, bases[best.base])
        lifted = dual[:, :, None]
        G[batch.tasks] += best.factor * 0.5 * (batch.latent * lifted).sum(axis=1) @ whitener.T
        beyond[batch.tasks] += best.residual * 0.5 * (batch.own * lifted).sum(axis=1)
        intercepts[batch.tasks] += best.intercept * dual.sum(axis=1)
    return G, intercepts, beyond


def _batches(fit: RowsDatafit, lift: np.ndarray, limit: int | None) -> Iterator[Batch]:
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
            dense = fit.design.take(flat)
            own = dense[back.reshape(rows.shape)] * inside[:, :, None]
            yield Batch(tasks, index, inside, own @ lift, own)


def _kernel_fit(
    fit: RowsDatafit,
    batch: Batch,
    sizes: Sizes,
    common: np.ndarray,
    keeps: np.ndarray | float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Dual weights of each row, and leave-one-out scores, by reweighted ridge regression.

    Solved over the rows of a task or over its features, whichever are fewer.
    """
    pad = batch.inside
    y, base = fit.y[batch.index], common[batch.index]
    weights = fit.weights[batch.index] * pad
    smoother = _DualSmoother if pad.shape[1] <= batch.own.shape[2] else _PrimalSmoother
    ridge = smoother(batch, sizes)
    score = base.copy()
    for _ in range(1 if fit.loss.quadratic else 12):
        slope = fit.loss.derivative(y, score)
        curvature = np.maximum(fit.loss.curvature(y, score), 1e-4)
        target = np.where(pad, score - base - slope / curvature, 0.0)
        dual, kept = ridge.solve(np.sqrt(curvature * weights), target)
        before, score = score, base + ridge.score(dual)
        if np.abs(score - before).max() <= 1e-6 * (1.0 + np.abs(score).max()):
            break
    # Left out, a row's working residual is the present one over the share that it keeps.
    left_out = base + target - (target - (score - base)) / np.maximum(kept * keeps, 1e-12)
    return dual, left_out


class _DualSmoother:
    """Ridge over the rows of each task: the kernel is a sum of parts that sizes only weight."""

    def __init__(self, batch: Batch, sizes: Sizes) -> None:
        latent, own, ones = batch.kernels
        self.kernel = 0.5 * sizes.factor * latent + 0.5 * sizes.residual * own
        self.kernel += sizes.intercept * ones

    def solve(self, root: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Dual weights, and the share of its own residual that each row keeps."""
        scaled = root[:, :, None] * self.kernel * root[:, None, :]
        inverse = np.linalg.inv(np.eye(root.shape[1]) + scaled)
        dual = root * (inverse @ (root * target)[:, :, None])[:, :, 0]
        return dual, np.diagonal(inverse, axis1=1, axis2=2)

    def score(self, dual: np.ndarray) -> np.ndarray:
        """Scores of the rows."""
        return (self.kernel @ dual[:, :, None])[:, :, 0]


class _PrimalSmoother:
    """Ridge over the features of each task, where they are fewer than its rows."""

    def __init__(self, batch: Batch, sizes: Sizes) -> None:
        parts = [
            np.sqrt(0.5 * sizes.factor) * batch.latent,
            np.sqrt(0.5 * sizes.residual) * batch.own,
            np.sqrt(sizes.intercept) * batch.inside[:, :, None],
        ]
        self.features = np.concatenate(parts, axis=2)

    def solve(self, root: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Dual weights, and the share of its own residual that each row keeps."""
        features = root[:, :, None] * self.features
        turned = features.transpose(0, 2, 1)
        inverse = np.linalg.inv(np.eye(features.shape[2]) + turned @ features)
        seen = features @ inverse
        fitted = (seen @ (turned @ (root * target)[:, :, None]))[:, :, 0]
        return root * (root * target - fitted), 1.0 - (seen * features).sum(axis=2)

    def score(self, dual: np.ndarray) -> np.ndarray:
        """Scores of the rows."""
        back = self.features.transpose(0, 2, 1) @ dual[:, :, None]
        return (self.features @ back)[:, :, 0]


def _base_keeps(
    fit: RowsDatafit, batch: Batch, G: np.ndarray, common: np.ndarray, state: State
) -> np.ndarray:
    """Share of its own residual that each row keeps under a base that was fitted to it too.

    As for the lasso: the leverages of least squares on the columns that a task uses.
    """
    y, score = fit.y[batch.index], common[batch.index]
    root = np.sqrt(fit.weights[batch.index] * fit.loss.curvature(y, score)) * batch.inside
    used = (G[batch.tasks] != 0.0)[:, None, :]
    features = root[:, :, None] * np.concatenate(
        [batch.latent * used, batch.inside[:, :, None] * float(state.pooled)], axis=2
    )
    gram = features.transpose(0, 2, 1) @ features
    least = 1e-6 * np.trace(gram, axis1=1, axis2=2)[:, None] + 1e-12
    ridge = np.repeat(least, features.shape[2], axis=1)
    if state.pooled:
        ridge[:, -1] += 2.0 * state.pooling
    solved = np.linalg.solve(
        gram + ridge[:, :, None] * np.eye(len(ridge[0])), features.transpose(0, 2, 1)
    )
    return 1.0 - (features * solved.transpose(0, 2, 1)).sum(axis=2)


def _leave_one_out(
    fit: RowsDatafit, batch: Batch, sizes: Sizes, common: np.ndarray, keeps: np.ndarray
) -> float:
    """Loss of the left-out scores, summed over the batch; ``keeps`` is what the base left."""
    _, score = _kernel_fit(fit, batch, sizes, common, keeps)
    weights = fit.weights[batch.index] * batch.inside
    return float(np.sum(weights * fit.loss.value(fit.y[batch.index], score)))
