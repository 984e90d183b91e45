"""Starting points of many fits: one for each fold and rank, whatever the penalties' strengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..alternation import Recipe, Schedule
from ..arrays import Array, namespace
from ..datafits.gram import GramDatafit
from ..factors import Factors
from ..learned_relations import LearnedRelation, choose_penalty
from ..penalties import Ridge
from ..starting import bare_state
from .features import widened
from .fits import Fits
from .moves import gauge_step
from .penalties import Relations, Ridges
from .trees import mapped, taken


def batchable(recipe: Recipe) -> bool:
    """Whether fits of a recipe to Grams can share a batch: the paper's penalties, all learned.

    Examples
    --------
    >>> from comtl.alternation import Recipe
    >>> from comtl.batches.start import batchable
    >>> from comtl.penalties import L1
    >>> [batchable(Recipe({"F": it, "G": 1.0}, (2, 2))) for it in (0.1, L1(0.1))]
    [True, False]
    """
    kinds = {name: type(choose_penalty(it)) for name, it in recipe.penalties.items()}
    core = kinds.pop("S", Ridge)
    square = not recipe.held and recipe.ranks[0] == recipe.ranks[1]
    return square and core is Ridge and set(kinds.values()) == {LearnedRelation}


def start_fits(
    datafits: Sequence[GramDatafit],
    recipes: Sequence[Recipe],
    places: np.ndarray,
    schedule: Schedule,
    *,
    init: str = "svd",
    seed: int = 0,
) -> Fits:
    """Return starting fits of recipes (second row of ``places``) to data (first row)."""
    width = max(recipes[number].ranks[0] for number in places[1])
    known: dict[tuple[object, ...], int] = {}
    points: list[Factors] = []
    pooling: list[float] = []
    which = []
    like = datafits[0].gram
    for fold, number in places.T:
        recipe = recipes[number]
        key = fold, recipe.ranks, recipe.shared, recipe.intercept, recipe.pooling
        if key not in known:
            known[key] = len(points)
            state = bare_state(datafits[fold], recipe, like=like, init=init, seed=seed)
            points.append(_padded(state.factors, width, like))
            pooling.append(state.pooling)
        which.append(known[key])
    xp = namespace(like)
    first = recipes[places[1][0]]

    def numbers(values: list[float]) -> Array:
        return xp.asarray(np.array(values, dtype=np.float64), dtype=like.dtype)

    def strengths(name: str) -> Array:
        entries = [choose_penalty(recipes[number].penalties[name]) for number in places[1]]
        return numbers([entry.strength for entry in entries])

    stacked = mapped(lambda *parts: xp.stack(list(parts)), *points)
    factors = taken(stacked, xp.asarray(np.array(which)))
    ranks = np.array([recipes[number].ranks[0] for number in places[1]])
    inside = xp.asarray((np.arange(width) < ranks[:, None]).astype(np.float64), dtype=like.dtype)
    shared = None
    if first.shared is not None:
        shared = numbers([recipes[number].shared or 0.0 for number in places[1]])
    own = {name: strengths(name) for name in first.penalties}
    fits = Fits(
        factors,
        {},
        inside,
        shared,
        numbers(pooling)[xp.asarray(np.array(which))],
        first.intercept,
        first.pooling is None,
    )

    def started(fits: Fits, smoothing: float) -> Fits:
        penalties = {
            name: Ridges(strength)
            if name == "S"
            else Relations.started(strength, getattr(fits.factors, name), smoothing)
            for name, strength in own.items()
        }
        return fits.with_(penalties=penalties)

    # Balanced at little smoothing first, so that ε is set from scales that will last.
    return started(gauge_step(started(fits, 1e-6)), schedule.start_smoothing)


def _padded(point: Factors, width: int, like: Array) -> Factors:
    """Factors with columns of zeros up to a width, the offset an array."""
    xp = namespace(like)
    core = None if point.S is None else widened(widened(point.S, width).mT, width).mT
    offset = xp.full((1,), point.offset, dtype=like.dtype)
    return replace(
        point, F=widened(point.F, width), S=core, G=widened(point.G, width), offset=offset
    )
