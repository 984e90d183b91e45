"""The alternation of many fits at once, and losses of folds and settings by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import DENSE_BYTES, Array, namespace, to_numpy
from ..datafits.gram_datafit import GramDatafit
from ..engine.recipe import Recipe, Schedule, StepLength
from ..engine.task_steps import intercept_pooling, intercept_step
from ..factors import Factors
from .batch_start import balance_step, extrapolate, start_fits
from .batch_state import BatchGrams, Fits, Plan
from .batch_steps import core_step, feature_step, task_step
from .pytrees import tree_concat, tree_take, tree_take_pairs

MIN_ACTIVE_SHARE = 0.75
"""Share of fits still going below which the finished ones are taken out of a batch."""


@dataclass(frozen=True)
class BatchIteration:
    """Where the fits stand after a sweep; those that have converged stay."""

    fits: Fits
    objective: Array
    converged: Array
    sweeps: Array
    share: Array  # length of the next extrapolation
    last: Factors  # before the last sweep


def begin(grams: BatchGrams, fits: Fits) -> BatchIteration:
    """Return the start, where no sweep was made."""
    objective = grams.quadratic_at(fits.factors).value + fits.regularizer
    none = namespace(objective).zeros_like(objective)
    return BatchIteration(
        fits, objective, none > 0.0, none, none + StepLength().share, fits.factors
    )


def advance(
    grams: BatchGrams, step: BatchIteration, plan: Plan, schedule: Schedule, sweep: int
) -> BatchIteration:
    """Return the fits after another sweep, the first being number one."""
    # Two sweeps show a direction to go on in.
    before = _extrapolated(grams, step) if sweep > 2 and schedule.extrapolate else step
    fits, loss = _sweep(grams, before.fits, plan, schedule)
    objective = loss + fits.regularizer
    # With many features the smoothing's constant would dwarf all that is left to gain.
    scale = namespace(objective).abs(objective - fits.floor)
    done = fits.is_annealed & (step.objective - objective <= schedule.tol * scale)
    last = step.fits.factors
    new = BatchIteration(fits, objective, done, step.sweeps + 1.0, before.share, last)
    return tree_take_pairs(step.converged, step, new)


def _extrapolated(grams: BatchGrams, step: BatchIteration) -> BatchIteration:
    xp = namespace(step.share)
    ahead = extrapolate(step.last, step.fits, step.share)
    objective = grams.quadratic_at(ahead.factors).value + ahead.regularizer
    tried = step.fits.is_annealed
    better = tried & (objective < step.objective)
    step_length = StepLength()
    share = xp.minimum(step_length.longer * step.share, 0.0 * step.share + step_length.most)
    share = xp.where(better, share, xp.where(tried, step_length.shorter * step.share, step.share))
    return replace(step, fits=tree_take_pairs(better, ahead, step.fits), share=share)


def _sweep(grams: BatchGrams, fits: Fits, plan: Plan, schedule: Schedule) -> tuple[Fits, Array]:
    fits = feature_step(grams, fits, plan, schedule.inner)
    quadratic = grams.quadratic_at(fits.factors).task_quadratic(fits.factors.F)

    def moved(new: Fits) -> None:
        nonlocal quadratic, fits
        before, now = fits.factors, new.factors
        change = (now.intercepts - before.intercepts)[..., None]
        step = namespace(change).concat([now.loadings - before.loadings, change], axis=-1)
        quadratic, fits = quadratic.translated(step), new

    moved(task_step(quadratic, fits, plan, schedule.inner))
    if "S" in fits.penalties:
        moved(core_step(quadratic, fits, plan))
    if fits.intercept:
        moved(fits.at(intercept_step(quadratic.slopes, quadratic.curvatures, fits)))
    # No step has asked for the relation of a factor that it moved, so both are learned here.
    # From here on the weights stay, and with them the loss.
    fits = balance_step(fits.relearned).annealed(schedule.shrink, schedule.smoothing)
    if fits.estimates_pooling:
        estimate = intercept_pooling(quadratic, grams, fits)
        lowest = namespace(estimate).minimum(fits.intercept_penalty, estimate)
        fits = fits.with_(intercept_penalty=lowest)
    return fits, quadratic.value


def fit_batch(
    datafits: Sequence[GramDatafit],
    recipes: Sequence[Recipe],
    places: np.ndarray,
    schedule: Schedule,
    **start: Any,
) -> BatchIteration:
    """Fit recipes (second row of ``places``, ranks rising) to data (first row) to the end."""
    ranks = np.array([recipes[number].ranks[0] for number in places[1]])
    plan = Plan(ranks, datafits[0].n_features, datafits[0].n_tasks)
    grams = BatchGrams.of(datafits, places[0])
    step = begin(grams, start_fits(datafits, recipes, places, schedule, **start))
    xp = namespace(grams.gram)
    numbers = np.arange(len(ranks))
    done: list[BatchIteration] = []
    order: list[np.ndarray] = []
    for sweep in range(1, schedule.max_iter + 1):
        step = advance(grams, step, plan, schedule, sweep)
        left = len(numbers) - int(xp.sum(xp.astype(step.converged, xp.int64)))
        if not left:
            break
        if left <= MIN_ACTIVE_SHARE * len(numbers):
            over = to_numpy(step.converged)
            gone, stay = np.flatnonzero(over), np.flatnonzero(~over)
            done.append(tree_take(step, xp.asarray(gone)))
            order.append(numbers[gone])
            numbers, going = numbers[stay], xp.asarray(stay)
            grams, step, plan = tree_take(grams, going), tree_take(step, going), plan.take(stay)
    back = np.argsort(np.concatenate([*order, numbers]))
    return tree_take(tree_concat([*done, step]), xp.asarray(back))


@dataclass(frozen=True, eq=False)
class HeldOutGrams:
    """Rows of a fold as Grams in units of the training rows: to fit to, and to predict."""

    train: GramDatafit
    test: GramDatafit
    codes: np.ndarray  # number among the training tasks; -1: predicted by the mean of all
    scale: float = 1.0  # squared error of the losses over that of the engine

    def losses(self, point: Factors) -> Array:
        """Mean squared error of each of many fits, (B,)."""
        xp = namespace(point.F)
        weights = point.task_weights
        weights = xp.concat([weights, xp.mean(weights, axis=1, keepdims=True)], axis=1)
        codes = np.where(self.codes < 0, weights.shape[1] - 1, self.codes)
        own = xp.permute_dims(xp.take(weights, xp.asarray(codes), axis=1), (1, 0, 2))
        product = own @ self.test.gram - 2.0 * self.test.moment[:, None, :]
        total = self.test.total_energy + xp.sum(own * product, axis=(0, 2))
        return (self.scale / self.test.n_weighted) * total


def batched_losses(
    folds: Sequence[HeldOutGrams],
    recipes: Sequence[Sequence[Recipe]],
    schedule: Schedule,
    *,
    together: bool,
    **start: Any,
) -> np.ndarray:
    """Held-out mean squared error (n_folds, n_settings), each as a fit of its own has it."""
    losses_by_fold = np.empty((len(folds), len(recipes[0])))
    for numbers, places in _batches(folds, recipes, together):
        data = [folds[number] for number in numbers]
        chosen = [recipe for number in numbers for recipe in recipes[number]]
        local = np.searchsorted(numbers, places[0])
        which = np.stack([local, local * len(recipes[0]) + places[1]])
        fits = [fold.train for fold in data]
        step = fit_batch(fits, chosen, which, schedule, **start)
        xp = namespace(step.objective)
        # Losses of all fits on every fold: few folds, and one product for each.
        losses = xp.stack([fold.losses(step.fits.factors) for fold in data])
        losses_by_fold[places[0], places[1]] = to_numpy(losses)[local, np.arange(len(local))]
    return losses_by_fold


def _batches(
    folds: Sequence[HeldOutGrams], recipes: Sequence[Sequence[Recipe]], together: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds and (fold, setting) pairs of each batch: of one shape and kind, ranks rising."""
    kinds: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for fold, row in enumerate(recipes):
        for number, recipe in enumerate(row):
            kind = (
                folds[fold].train.moment.shape,
                tuple(recipe.penalties),
                recipe.shared is None,
                recipe.intercept,
                recipe.intercept_penalty is None,
                () if together else recipe.ranks,
            )
            kinds.setdefault(kind, []).append((fold, number))
    losses_by_fold = []
    for (shape, *_), pairs in kinds.items():
        pairs.sort(key=lambda pair: (recipes[pair[0]][pair[1]].ranks, pair))
        widest = recipes[pairs[-1][0]][pairs[-1][1]].ranks[0]
        # Of the arrays of a fit the Grams are the largest, or the system of its core.
        size = 8 * (shape[0] * shape[1] ** 2 + widest**4)
        count = max(1, DENSE_BYTES // size)
        for first in range(0, len(pairs), count):
            places = np.array(pairs[first : first + count]).T
            losses_by_fold.append((np.unique(places[0]), places))
    return losses_by_fold
