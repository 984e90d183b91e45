"""Start of many fits, balance and extrapolation."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..arrays import Array, namespace
from ..arrays.algebra import along
from ..datafits.gram_datafit import GramDatafit
from ..engine.acceleration import aligned, rotation, split_exponents
from ..engine.recipe import Recipe, Schedule
from ..engine.starts import bare_state
from ..factors import Factors, State, padded
from ..penalties import Ridge
from ..penalties.learned_relation import LearnedRelation, choose_penalty
from .batch_penalties import Relations
from .batch_state import Fits
from .pytrees import tree_map, tree_take, tree_take_pairs


def balance_step(fits: Fits) -> Fits:
    """Return each fit with the same ``W`` and the lowest penalty of three candidates."""
    best, least = fits, fits.factor_penalty
    for candidate in (balanced(fits), balanced(split(fits))):
        value = candidate.factor_penalty
        best = tree_take_pairs(value < least, candidate, best)
        least = namespace(value).minimum(value, least)
    return best


def balanced(fits: Fits) -> Fits:
    """Scale the factors by numbers of product one so that no penalty can be traded down."""
    xp = namespace(fits.inside)
    rates = {n: p.scale_derivative(getattr(fits.factors, n)) for n, p in fits.penalties.items()}
    fine = xp.all(xp.stack(list(rates.values())) > 0.0, axis=0)
    one = xp.ones_like(fits.intercept_penalty)
    logs = {name: xp.log(xp.where(fine, rate, one)) for name, rate in rates.items()}
    inverse = {name: 1.0 / penalty.homogeneity for name, penalty in fits.penalties.items()}
    level = sum(inverse[name] * logs[name] for name in logs) / sum(inverse.values())
    changes, penalties = {}, {}
    for name, penalty in fits.penalties.items():
        scale = xp.exp(inverse[name] * (level - logs[name]))
        changes[name] = along(scale, 3) * getattr(fits.factors, name)
        penalties[name] = penalty.scaled(scale)
    return fits.at(fits.factors.with_(**changes)).penalized(**penalties)


def split(fits: Fits) -> Fits:
    """Split ``W``'s singular values between the factors by the roots of their penalties."""
    xp = namespace(fits.inside)
    point, penalties = fits.factors, fits.penalties
    exponents = split_exponents(penalties)
    assert exponents is not None
    left, shrunk = _basis(point.F, penalties["F"].squares, penalties["F"].turn)
    right, other = _basis(point.G, penalties["G"].squares, penalties["G"].turn)
    inner = shrunk.mT if point.S is None else shrunk.mT @ point.S
    U, sigma, Vt = xp.linalg.svd(inner @ other, full_matrices=False)
    sigma = sigma * fits.inside
    sizes = {name: sigma**share for name, share in exponents.items()}
    changes = {
        "F": (left @ U) * sizes["F"][:, None, :],
        "G": (right @ Vt.mT) * sizes["G"][:, None, :],
    }
    eye = xp.eye(sigma.shape[1], dtype=sigma.dtype)
    if point.S is not None:
        changes["S"] = sizes["S"][:, :, None] * eye
    turn = xp.broadcast_to(eye, U.shape)
    learned = {name: penalties[name].of(sizes[name] ** 2, turn) for name in ("F", "G")}
    return fits.at(point.with_(**changes)).penalized(**learned)


def _basis(factor: Array, squares: Array, turn: Array) -> tuple[Array, Array]:
    """Orthonormal basis of each factor's columns, and ``R`` with ``basis Rᵀ`` the factor."""
    xp = namespace(factor)
    eps = float(xp.finfo(factor.dtype).eps)
    inside_rank = squares > eps * xp.max(squares, axis=1, keepdims=True)
    sizes = xp.sqrt(xp.where(inside_rank, squares, xp.ones_like(squares)))
    none = xp.zeros_like(squares)
    basis = factor @ (turn * xp.where(inside_rank, 1.0 / sizes, none)[:, None, :])
    return basis, turn * xp.where(inside_rank, sizes, none)[:, None, :]


def extrapolate(last: Factors, fits: Fits, share: Array) -> Fits:
    """Fits beyond the present ones by shares (B,), on the lines from the last factors."""
    ahead = fits.factors.interpolate(aligned(last, fits.factors, partial(_turn, fits)), -share)
    inside = fits.inside[:, None, :]
    core = None if ahead.S is None else ahead.S * inside * fits.inside[:, :, None]
    return fits.at(ahead.with_(F=ahead.F * inside, S=core, G=ahead.G * inside)).relearned


def _turn(fits: Fits, product: Array) -> Array:
    """Rotations that bring last factors nearest to present ones, padding left alone."""
    xp = namespace(product)
    eye = xp.eye(product.shape[-1], dtype=product.dtype)
    size = xp.max(xp.abs(product), axis=(1, 2), keepdims=True)
    return rotation(product + size * eye * (1.0 - fits.inside)[:, None, :])


def batchable(recipe: Recipe) -> bool:
    """Whether fits of a recipe to Grams can share a batch: the paper's penalties, all learned."""
    kinds = {name: type(choose_penalty(it)) for name, it in recipe.penalties.items()}
    core = kinds.pop("S", Ridge)
    square = not recipe.fixed and recipe.ranks[0] == recipe.ranks[1]
    return square and core is Ridge and set(kinds.values()) == {LearnedRelation}


def start_fits(
    datafits: Sequence[GramDatafit],
    recipes: Sequence[Recipe],
    places: np.ndarray,
    schedule: Schedule,
    **start: Any,
) -> Fits:
    """Return starting fits of recipes (second row of ``places``) to data (first row)."""
    chosen = [recipes[number] for number in places[1]]
    first, like = chosen[0], datafits[0].gram
    xp, width = namespace(like), max(recipe.ranks[0] for recipe in chosen)
    states: dict[tuple[object, ...], State] = {}
    keys = []
    for fold, recipe in zip(places[0], chosen, strict=True):
        key = fold, recipe.ranks, recipe.shared, recipe.intercept, recipe.intercept_penalty
        keys.append(key)
        if key not in states:
            states[key] = bare_state(datafits[fold], recipe, like=like, **start)

    def numbers(values: Any) -> Array:
        return xp.asarray(np.array(values, dtype=np.float64), dtype=like.dtype)

    def strengths(name: str) -> Array:
        return numbers([choose_penalty(recipe.penalties[name]).strength for recipe in chosen])

    points = [_padded(state.factors, width, like) for state in states.values()]
    stacked = tree_map(lambda *parts: xp.stack(list(parts)), *points)
    order = {key: number for number, key in enumerate(states)}
    penalties = {
        name: (Ridge if name == "S" else Relations)(strengths(name)) for name in first.penalties
    }
    fits = Fits(
        tree_take(stacked, xp.asarray(np.array([order[key] for key in keys]))),
        penalties,
        shared=None if first.shared is None else numbers([it.shared or 0.0 for it in chosen]),
        intercept=first.intercept,
        intercept_penalty=numbers([states[key].intercept_penalty for key in keys]),
        estimates_pooling=first.intercept_penalty is None,
        inside=numbers([np.arange(width) < recipe.ranks[0] for recipe in chosen]),
    )

    # Balanced at little smoothing first, so that ε is set from scales that will last.
    return balance_step(fits.initialised(1e-6)).initialised(schedule.start_smoothing)


def _padded(point: Factors, width: int, like: Array) -> Factors:
    """Factors with columns of zeros up to a width, the offset an array."""
    xp = namespace(like)
    core = None if point.S is None else padded(padded(point.S, width).mT, width).mT
    offset = xp.full((1,), point.offset, dtype=like.dtype)
    return point.with_(F=padded(point.F, width), S=core, G=padded(point.G, width), offset=offset)
