"""The alternation of many fits at once; each follows the sweeps that it would make on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..alternation import Recipe, Schedule
from ..arrays import Array, namespace, to_numpy
from ..datafits.gram import GramDatafit
from ..extrapolation import Reach
from ..factors import Factors
from .cells import Cells
from .features import feature_step
from .fits import Fits
from .moves import beyond, gauge_step
from .plan import Plan
from .start import start_fits
from .steps import core_step, intercept_step, pool, task_step
from .trees import joined, picked, taken

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


def begin(cells: Cells, fits: Fits) -> Steps:
    """Return the start, where no sweep was made."""
    _, value = cells.expand(fits.factors)
    none = namespace(value).zeros_like(value)
    objective = value + fits.regularizer
    return Steps(fits, objective, none > 0.0, none, none + Reach().share, fits.factors)


def advance(cells: Cells, step: Steps, plan: Plan, schedule: Schedule, sweep: int) -> Steps:
    """Return the fits after another sweep, the first being number one."""
    # Two sweeps show a direction to go on in.
    before = _lengthened(cells, step) if sweep > 2 and schedule.lengthen else step
    slope, _ = cells.expand(before.fits.factors)
    fits, loss = _sweep(cells, slope, before.fits, plan, schedule)
    objective = loss + fits.regularizer
    # With many features the smoothing's constant would dwarf all that is left to gain.
    scale = namespace(objective).abs(objective - fits.least)
    done = fits.settled & (step.objective - objective <= schedule.tol * scale)
    last = step.fits.factors
    new = Steps(fits, objective, done, step.sweeps + 1.0, before.share, last)
    return picked(step.converged, step, new)


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

    def moved(new: Fits) -> None:
        nonlocal quadratic, fits
        quadratic, fits = quadratic.moved(fits.factors, new.factors), new

    moved(task_step(quadratic, fits, plan, schedule.inner))
    if "S" in fits.penalties:
        moved(core_step(quadratic, fits, plan))
    if fits.intercept:
        moved(intercept_step(quadratic, cells, fits))
    # No step has asked for the relation of a factor that it moved, so both are learned here.
    # From here on the weights stay, and with them the loss.
    fits = gauge_step(fits.refreshed)
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
    ranks = np.array([recipes[number].ranks[0] for number in places[1]])
    plan = Plan(ranks, datafits[0].n_features, datafits[0].n_tasks)
    cells = Cells.of(datafits, places[0])
    step = begin(cells, start_fits(datafits, recipes, places, schedule, init=init, seed=seed))
    xp = namespace(cells.gram)
    numbers = np.arange(len(ranks))
    done: list[Steps] = []
    order: list[np.ndarray] = []
    for sweep in range(1, schedule.max_iter + 1):
        step = advance(cells, step, plan, schedule, sweep)
        left = len(numbers) - int(xp.sum(xp.astype(step.converged, xp.int64)))
        if not left:
            break
        if left <= CROWDED * len(numbers):
            over = to_numpy(step.converged)
            gone, stay = np.flatnonzero(over), np.flatnonzero(~over)
            done.append(taken(step, xp.asarray(gone)))
            order.append(numbers[gone])
            numbers, going = numbers[stay], xp.asarray(stay)
            cells, step, plan = taken(cells, going), taken(step, going), plan.taken(stay)
    back = np.argsort(np.concatenate([*order, numbers]))
    return taken(joined([*done, step]), xp.asarray(back))
