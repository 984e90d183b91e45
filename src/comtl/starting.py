"""The state that a fit begins with: pooled parts, starting factors, smoothed penalties."""

from __future__ import annotations

import numpy as np

from .alternation import Recipe, Schedule, descend, intercept_quadratic, pooled
from .arrays import Array, namespace
from .datafits.base import Datafit
from .factors import Factors
from .gauge import gauge_step
from .learned_relations import choose_penalty
from .starts import empty_factors, start_factors
from .state import State
from .steps import Inner, shared_step


def start_state(
    datafit: Datafit,
    recipe: Recipe,
    schedule: Schedule,
    *,
    like: Array,
    init: str = "svd",
    seed: int = 0,
    factors: Factors | None = None,
) -> State:
    """Return the starting state: from given factors, or by ``init`` after the pooled parts."""
    bare = bare_state(datafit, recipe, like=like, init=init, seed=seed, factors=factors)

    def state_at(point: Factors, smoothing: float) -> State:
        penalties = bare.penalties.items()
        started = {k: p.started(getattr(point, k), smoothing) for k, p in penalties}
        return bare.with_(factors=point, penalties=started)

    # Balanced at little smoothing first, so that ε is set from scales that will last.
    return state_at(gauge_step(state_at(bare.factors, 1e-6)).factors, schedule.start_smoothing)


def bare_state(
    datafit: Datafit,
    recipe: Recipe,
    *,
    like: Array,
    init: str = "svd",
    seed: int = 0,
    factors: Factors | None = None,
) -> State:
    """Return factors, shared part and intercepts to start from, penalties as the recipe has them.

    How strong the penalties of the factors are has no part in it.
    """
    xp = namespace(like)
    held = {name: xp.asarray(it, dtype=like.dtype) for name, it in (recipe.held or {}).items()}
    penalties = {name: choose_penalty(entry) for name, entry in recipe.penalties.items()}
    point = factors
    if point is None:
        point = empty_factors(datafit, *recipe.ranks, "S" in recipe.penalties, like)
    bare = State(
        point,
        penalties,
        frozenset(penalties),
        recipe.shared,
        recipe.intercept,
        float("inf") if recipe.pooling is None else recipe.pooling,
        recipe.pooling is None,
    )
    bare = _pooled_parts(datafit, bare) if factors is None else _reused(datafit, bare)
    point = bare.factors
    if factors is None and held.keys() < penalties.keys():
        expansion = datafit.expand(point)
        rng = np.random.default_rng(seed)
        point = start_factors(datafit, expansion, point, penalties, init, rng)
    return bare.with_(factors=point.with_(**held), fixed=frozenset(held))


def _reused(datafit: Datafit, state: State) -> State:
    """Factors of an earlier fit, without what this recipe does not fit."""
    point = state.factors
    xp = namespace(point.F)
    if state.shared is None:
        point = point.with_(shared=xp.zeros_like(point.shared))
    if not state.intercept:
        point = point.with_(offset=0.0)
    state = state.at(point)
    state = pooled(datafit, intercept_quadratic(datafit, point), state)
    if state.pooled:
        return state
    mean = float(xp.mean(point.deviations)) if state.intercept else 0.0
    none = xp.zeros_like(point.deviations)
    return state.at(point.with_(offset=point.offset + mean, deviations=none))


def _pooled_parts(datafit: Datafit, state: State) -> State:
    """Fit the shared part and the intercepts alone.

    With a shared part this is a random-intercept model. Without one the slopes are still missing
    from the residuals, which then say nothing about the spread of the intercepts.
    """
    for _ in range(1 if state.shared is None else 2):
        if state.shared is None and not state.intercept:
            return state
        expansion = datafit.expand(state.factors)
        point, _ = shared_step(datafit, expansion, state, Inner(1e-3, 200))
        state = descend(datafit, state, state.at(point))
        if state.shared is not None:
            state = pooled(datafit, intercept_quadratic(datafit, state.factors), state)
    return state
