"""The state that a fit begins with: pooled parts, spectral or random factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array, dot, namespace, orthonormal, to_numpy
from ..datafits.datafit import Datafit, LocalQuadratic
from ..factors import Factors, State, padded
from ..penalties import Penalty
from ..penalties.learned_relation import choose_penalty
from .acceleration import balance_step, rectangular, split_exponents
from .alternation import descent_share, intercept_quadratic, line_search, update_pooling
from .feature_step import shared_step
from .recipe import InnerTolerance, Recipe, Schedule
from .task_steps import intercept_step


def start_state(datafit: Datafit, recipe: Recipe, schedule: Schedule, **start: Any) -> State:
    """Return the starting state; ``start`` goes to :func:`bare_state`."""
    state = bare_state(datafit, recipe, **start)
    # Balanced at little smoothing first, so that ε is set from scales that will last.
    return balance_step(state.initialised(1e-6)).initialised(schedule.start_smoothing)


def bare_state(
    datafit: Datafit,
    recipe: Recipe,
    *,
    like: Array,
    init: str = "svd",
    seed: int = 0,
    factors: Factors | None = None,
) -> State:
    """State from given factors, or by ``init`` after the pooled parts; penalties as they are."""
    xp = namespace(like)
    held = {name: xp.asarray(it, dtype=like.dtype) for name, it in (recipe.fixed or {}).items()}
    penalties = {name: choose_penalty(entry) for name, entry in recipe.penalties.items()}
    bare = State(
        factors or empty_factors(datafit, recipe, like),
        penalties,
        frozenset(penalties),
        recipe.shared,
        recipe.intercept,
        float("inf") if recipe.intercept_penalty is None else recipe.intercept_penalty,
        recipe.intercept_penalty is None,
    )
    bare = _pooled_parts(datafit, bare) if factors is None else _reused(datafit, bare)
    point = bare.factors
    if factors is None and held.keys() < penalties.keys():
        expansion = datafit.quadratic_at(point)
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
    state = update_pooling(datafit, state.at(point))
    if state.has_random_intercepts:
        return state
    mean = float(xp.mean(point.random_intercepts)) if state.intercept else 0.0
    none = xp.zeros_like(point.random_intercepts)
    return state.at(point.with_(offset=point.offset + mean, random_intercepts=none))


def _pooled_parts(datafit: Datafit, state: State) -> State:
    """Fit shared part and intercepts alone: a random-intercept model."""
    if state.shared is None and not state.intercept:
        return state
    state = _start_intercepts(datafit, state)
    if state.shared is None:
        quadratic = intercept_quadratic(datafit, state.factors)
        point = intercept_step(quadratic.slopes, quadratic.curvatures, state)
        return line_search(datafit, state, state.at(point))
    for _ in range(2):
        expansion = datafit.quadratic_at(state.factors)
        point, _ = shared_step(datafit, expansion, state, InnerTolerance(1e-3, 200))
        state = line_search(datafit, state, state.at(point))
        state = update_pooling(datafit, state)
    return state


def _start_intercepts(datafit: Datafit, state: State) -> State:
    """Intercepts at the means of the target, where zero is no place to start."""
    start = datafit.start_scores if state.intercept else None
    if start is None:
        return state
    everyone, tasks = start
    state = state.at(state.factors.with_(offset=everyone))
    state = update_pooling(datafit, state)
    if not state.has_random_intercepts:
        return state
    return state.at(state.factors.with_(random_intercepts=tasks - everyone))


POWERS, EXTRA = 4, 8
"""Passes and spare columns of the spectral start; see benchmarks/bench_engine.md."""


def empty_factors(datafit: Datafit, recipe: Recipe, like: Array) -> Factors:
    """All unknowns at zero."""
    P, T, (K1, K2) = datafit.n_features, datafit.n_tasks, recipe.ranks

    def zeros(*shape: int) -> Array:
        return namespace(like).zeros(shape, dtype=like.dtype)

    core = zeros(K1, K2) if "S" in recipe.penalties else None
    return Factors(zeros(P, K1), core, zeros(T, K2), zeros(P), 0.0, zeros(T))


def spectral_triple(
    expansion: LocalQuadratic, n_features: int, rank: int, rng: np.random.Generator, like: Array
) -> tuple[Array, Array, Array]:
    """Leading singular triple of the tasks' gradients ``X_tᵀ r_t / (h_t + mean h)``."""
    xp = namespace(like)
    sums = expansion.curvature_sums
    share = 1.0 / (sums + xp.mean(sums))
    tasks = sums.shape[0]
    width = min(rank + EXTRA, n_features, tasks)
    right = xp.asarray(rng.standard_normal((tasks, width)), dtype=like.dtype)
    left = right
    for _ in range(POWERS):
        left, _ = orthonormal(-expansion.gradient(share[:, None] * right)[0])
        right, _ = orthonormal(-share[:, None] * expansion.task_gradient(left))
    left, rest = orthonormal(-expansion.gradient(share[:, None] * right)[0])
    U, sigma, Vt = xp.linalg.svd(rest)
    return (left @ U)[:, :rank], sigma[:rank], (right @ Vt.T)[:, :rank]


def random_triple(
    n_features: int, n_tasks: int, rank: int, rng: np.random.Generator, like: Array
) -> tuple[Array, Array, Array]:
    """Random orthonormal bases with equal singular values."""
    xp = namespace(like)
    U, _ = xp.linalg.qr(xp.asarray(rng.standard_normal((n_features, rank)), dtype=like.dtype))
    V, _ = xp.linalg.qr(xp.asarray(rng.standard_normal((n_tasks, rank)), dtype=like.dtype))
    return U, xp.ones(rank, dtype=like.dtype), V


def start_factors(
    datafit: Datafit,
    expansion: LocalQuadratic,
    factors: Factors,
    penalties: dict[str, Penalty],
    init: str,
    rng: np.random.Generator,
) -> Factors:
    """Fill the factors of a point whose shared part and intercepts are set already."""
    xp = namespace(factors.F)
    K1, K2 = factors.F.shape[1], factors.G.shape[1]
    sides = (datafit.n_features, datafit.n_tasks)
    rank = min(max(K1, K2), *sides)
    if init == "random":
        U, sigma, V = random_triple(*sides, rank, rng, factors.F)
    else:
        U, sigma, V = spectral_triple(expansion, sides[0], rank, rng, factors.F)
    inner = min(K1, K2, rank)
    scale = _fitting_scale(expansion, U[:, :inner], sigma[:inner], V, init)
    if datafit.loss.longest_step < float("inf"):
        still = factors.with_(F=U[:, :inner], S=None, G=xp.zeros_like(V[:, :inner]))
        ahead = still.with_(G=scale * V[:, :inner] * sigma[None, :inner])
        scale *= descent_share(datafit.along_segment(still, ahead)) or 1e-3
    sigma = xp.clip(scale * sigma, min=float(xp.finfo(sigma.dtype).smallest_normal) ** 0.25)
    exponents = split_exponents(penalties) or dict.fromkeys(penalties, 1.0 / len(penalties))
    left = _feasible(padded(U * sigma[None, :] ** exponents["F"], K1), penalties["F"], rng)
    right = _feasible(padded(V * sigma[None, :] ** exponents["G"], K2), penalties["G"], rng)
    core = None
    if factors.S is not None:
        core = rectangular(sigma[:inner] ** exponents["S"], K1, K2)
    moved = not penalties["F"].signed, not penalties["G"].signed
    if any(moved):
        # The other factors make up for what the constraint changed.
        through_left, through_right = xp.linalg.pinv(left) @ U, xp.linalg.pinv(right) @ V
        if core is not None:
            core = penalties["S"].prox(through_left * sigma[None, :] @ through_right.T, 1e-12)
        elif not moved[1]:
            right = V * sigma[None, :] @ through_left.T
        elif not moved[0]:
            left = U * sigma[None, :] @ through_right.T
    return factors.with_(F=left, S=core, G=right)


def _fitting_scale(expansion: LocalQuadratic, U: Array, sigma: Array, V: Array, init: str) -> float:
    """Scale of ``UσVᵀ`` that lowers the quadratic model most, or matches its size by chance."""
    xp = namespace(U)
    loadings = V[:, : sigma.shape[0]] * sigma[None, :]
    slope, _ = expansion.gradient(loadings)
    image, _ = expansion.normal(U, loadings, xp.zeros(loadings.shape[0], dtype=U.dtype))
    curvature = dot(U, image)
    if not curvature > 0.0:
        return 1.0
    if init == "random":
        return (2.0 * expansion.value / curvature) ** 0.5
    return max(-dot(slope, U) / curvature, 1e-3)


def _feasible(factor: Array, penalty: Penalty, rng: np.random.Generator) -> Array:
    """Soft cluster memberships of the rows where signs are not free, else the factor itself."""
    if penalty.signed:
        return factor
    from ..clusters import cluster_rows

    points = to_numpy(factor)
    labels = cluster_rows(points, points.shape[1], int(rng.integers(2**31 - 1)))
    member = np.full(points.shape, 0.2, dtype=points.dtype)
    member[np.arange(len(labels)), labels] += 1.0
    return penalty.prox(namespace(factor).asarray(member), 1e-12)
