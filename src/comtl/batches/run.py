"""The alternation of many fits at once; each follows the sweeps that it would make on its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..alternation import Recipe, Schedule
from ..arrays import DENSE_BYTES, Array, namespace, to_numpy
from ..datafits.gram import GramDatafit
from ..extrapolation import Reach
from ..factors import Factors
from .cells import Cells, weights_of
from .features import feature_step
from .fits import Fits
from .moves import beyond, gauge_step
from .plan import Plan
from .start import start_fits
from .steps import core_step, intercept_step, pool, task_step
from .trees import joined, mapped, picked, taken

CROWDED = 0.75
"""Share of fits still going below which the finished ones are taken out of a batch."""


@dataclass(frozen=True)
class Steps:
    """Where the fits stand after a sweep; those that have converged stay.

    Parameters
    ----------
    fits : Fits
        Factors and penalties.
    objective, converged, sweeps, share : arrays of shape (B,)
        Objective, whether the fit is over, its sweeps so far, and how far to go beyond the next.
    last : Factors
        Where the last sweep's fits stood before.
    """

    fits: Fits
    objective: Array
    converged: Array
    sweeps: Array
    share: Array
    last: Factors


def alternate(
    cells: Cells, fits: Fits, plan: Plan, schedule: Schedule
) -> Iterator[tuple[Cells, Steps, Plan]]:
    """Yield the fits after each sweep, and take what comes back as those to go on with.

    What is sent in are the three that were yielded, or fewer fits of them; None goes on with all.
    """
    xp = namespace(fits.inside)
    slope, value = cells.expand(fits.factors)
    none = xp.zeros_like(value)
    step = Steps(
        fits, value + fits.regularizer, none > 0.0, none, none + Reach().share, fits.factors
    )
    sent = yield cells, step, plan
    for sweep in range(1, schedule.max_iter + 1):
        cells, step, plan = sent or (cells, step, plan)
        before = step
        if sweep > 2 and schedule.lengthen:
            before = _lengthened(cells, before)
        if sweep > 1:
            slope, _ = cells.expand(before.fits.factors)
        step = picked(step.converged, step, _next(cells, slope, before, step, plan, schedule))
        sent = yield cells, step, plan


def _next(
    cells: Cells, slope: Array, before: Steps, last: Steps, plan: Plan, schedule: Schedule
) -> Steps:
    """Fits after a sweep; ``before`` is the last one, gone beyond."""
    xp = namespace(slope)
    fits, loss = _sweep(cells, slope, before.fits, plan, schedule)
    objective = loss + fits.regularizer
    # With many features the smoothing's constant would dwarf all that is left to gain.
    gain = before.objective - objective
    done = fits.settled & (gain <= schedule.tol * xp.abs(objective - fits.least))
    return Steps(fits, objective, done, before.sweeps + 1.0, before.share, last.fits.factors)


def _lengthened(cells: Cells, step: Steps) -> Steps:
    """Go beyond the last sweep where that lowers the objective."""
    xp = namespace(step.share)
    ahead = beyond(step.last, step.fits, step.share)
    _, value = cells.expand(ahead.factors)
    tried = step.fits.settled
    better = tried & (value + ahead.regularizer < step.objective)
    reach = Reach()
    share = xp.minimum(reach.longer * step.share, 0.0 * step.share + reach.most)
    share = xp.where(better, share, xp.where(tried, reach.shorter * step.share, step.share))
    return replace(step, fits=picked(better, ahead, step.fits), share=share)


def _sweep(
    cells: Cells, slope: Array, fits: Fits, plan: Plan, schedule: Schedule
) -> tuple[Fits, Array]:
    """Return the fits after one sweep, and their losses."""
    fits = feature_step(cells, slope, fits, plan, schedule.inner)
    quadratic = cells.quadratic(*cells.expand(fits.factors), fits.factors.F)

    def moved(new: Fits) -> Fits:
        nonlocal quadratic, fits
        quadratic, fits = quadratic.moved(fits.factors, new.factors), new
        return fits

    fits = moved(task_step(quadratic, fits, plan, schedule.inner)).refreshed("G")
    if "S" in fits.penalties:
        moved(core_step(quadratic, fits, plan))
    if fits.intercept:
        moved(intercept_step(quadratic, cells, fits))
    # From here on the weights stay, and with them the loss.
    fits = gauge_step(fits)
    lower = {k: p.annealed(schedule.shrink, schedule.smoothing) for k, p in fits.penalties.items()}
    return pool(quadratic, cells, fits.penalized(**lower)), quadratic.value


def fit_batch(
    datafits: Sequence[GramDatafit],
    recipes: Sequence[Recipe],
    places: np.ndarray,
    schedule: Schedule,
    *,
    init: str = "svd",
    seed: int = 0,
) -> Steps:
    """Fit recipes (second row of ``places``, ranks rising) to data (first row) until all are done.

    Fits that are done leave the batch once they crowd it.
    """
    start = start_fits(datafits, recipes, places, schedule, init=init, seed=seed)
    ranks = np.array([recipes[number].ranks[0] for number in places[1]])
    plan = Plan(ranks, datafits[0].n_features, datafits[0].n_tasks)
    cells = Cells.of(datafits, places[0])
    xp = namespace(cells.gram)
    running = alternate(cells, start, plan, schedule)
    numbers = np.arange(len(ranks))
    done: list[Steps] = []
    order: list[np.ndarray] = []
    sent = None
    while True:
        try:
            cells, step, plan = running.send(sent)
        except StopIteration:
            break
        sent = None
        left = len(numbers) - int(xp.sum(xp.astype(step.converged, xp.int64)))
        if not left:
            break
        if left <= CROWDED * len(numbers):
            over = to_numpy(step.converged)
            gone, stay = np.flatnonzero(over), np.flatnonzero(~over)
            done.append(taken(step, xp.asarray(gone)))
            order.append(numbers[gone])
            numbers, going = numbers[stay], xp.asarray(stay)
            sent = taken(cells, going), taken(step, going), plan.taken(stay)
    back = np.argsort(np.concatenate([*order, numbers]))
    return taken(joined([*done, step]), xp.asarray(back))
