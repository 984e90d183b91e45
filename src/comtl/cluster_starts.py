"""Starts for hard clusters: k-means of low-rank fits of several strengths, the best run kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .alternation import Recipe, Schedule, Step, alternate, descend, start_state
from .arrays import Array, namespace
from .clusters import cluster_rows
from .datafits.base import Datafit
from .factors import Factors, padded, thin_svd
from .memberships import indicators, labels_of
from .penalties import LearnedRelation, Penalty, choose_penalty
from .state import State
from .steps import Inner, core_step

GUIDES = (0.5, 5.0, 50.0)
DRAWS = 4
EXCHANGES = 5
"""Task penalties of the guiding fits, draws of k-means from each, rounds of exchanges."""


def best_of_starts(
    datafit: Datafit, recipe: Recipe, schedule: Schedule, *, like: Array, seed: int
) -> list[Step]:
    """Return the run that ends lowest, sweep by sweep."""
    best: list[Step] = []

    def better(factors: Factors) -> bool:
        nonlocal best
        start = start_state(datafit, recipe, schedule, like=like, factors=factors, anneal=True)
        run = list(alternate(datafit, start, schedule))
        gain = not best or run[-1].objective < best[-1].objective
        best = run if gain else best
        return gain

    for factors in clustered_starts(datafit, recipe, schedule, like=like, seed=seed):
        better(factors)
    for _ in range(EXCHANGES):
        tried = [better(factors) for factors in exchanges(datafit, best[-1].state)]
        if not any(tried):
            break
    return best


def exchanges(datafit: Datafit, state: State) -> Iterator[Factors]:
    """Yield factors with two like clusters made one and another split, for each of the others.

    Moves of single rows cannot leave a point where one cluster does for two and two for one.
    """
    point, penalties = state.factors, state.penalties
    expansion = datafit.expand(point)
    slopes = {"F": expansion.gradient(point.G)[0], "G": expansion.task_gradient(point.F)}
    cores = {"F": np.asarray(point.S), "G": np.asarray(point.S).T}
    for name in ("F", "G"):
        factor, core = getattr(point, name), cores[name]
        if not penalties[name].hard or len(core) < 3:
            continue
        labels = labels_of(factor)
        kept, freed = _nearest(core, np.bincount(labels, minlength=len(core)))
        merged = np.where(labels == freed, kept, labels)
        for cluster in np.unique(merged):
            rows = np.flatnonzero(merged == cluster)
            if len(rows) < 2:
                continue
            pull = np.asarray(slopes[name])[rows]
            left, _, _ = np.linalg.svd(pull - pull.mean(axis=0), full_matrices=False)
            split = merged.copy()
            split[rows[left[:, 0] > 0.0]] = freed
            there = point.with_(**{name: indicators(split, factor)})
            yield _with_core(datafit, state, there, penalties["S"])


def _nearest(core: np.ndarray, sizes: np.ndarray) -> tuple[int, int]:
    """Pair of clusters that costs least as one: sum of squares that the merger adds."""
    gaps = ((core[:, None, :] - core[None, :, :]) ** 2).sum(axis=2)
    pairs = sizes[:, None] * sizes[None, :] / np.maximum(sizes[:, None] + sizes[None, :], 1)
    cost = np.where(np.eye(len(core), dtype=bool), np.inf, gaps * pairs)
    one, other = np.unravel_index(cost.argmin(), cost.shape)
    return int(one), int(other)


def clustered_starts(
    datafit: Datafit, recipe: Recipe, schedule: Schedule, *, like: Array, seed: int
) -> Iterator[Factors]:
    """Yield factors whose hard sides are clusters of the rows of a low-rank fit."""
    rng = np.random.default_rng(seed)
    penalties = {name: choose_penalty(entry) for name, entry in recipe.penalties.items()}
    hard = {name for name, penalty in penalties.items() if penalty.hard}
    # Blocks have the rank of the shorter side; a side that is not hard needs all its columns.
    rank = min(recipe.ranks) if {"F", "G"} <= hard else max(recipe.ranks)
    rank = min(rank, datafit.n_features, datafit.n_tasks)
    rough = replace(schedule, max_iter=30, tol=1e-3)
    for strength in GUIDES:
        pair = {"F": LearnedRelation(0.1), "G": LearnedRelation(strength)}
        guide = replace(recipe, penalties=pair, ranks=(rank, rank))
        start = start_state(datafit, guide, rough, like=like, seed=int(rng.integers(2**31)))
        *_, step = alternate(datafit, start, rough)
        point = step.state.factors
        U, sigma, V = thin_svd(point.F, point.G)
        for _ in range(DRAWS):
            sides = {}
            for name, basis, width in zip(("F", "G"), (U, V), recipe.ranks, strict=True):
                if name in hard:
                    points = np.asarray(basis * sigma[None, :])
                    labels = cluster_rows(points, width, int(rng.integers(2**31 - 1)))
                    sides[name] = indicators(labels, padded(basis, width))
                else:
                    sides[name] = padded(basis * sigma[None, :] ** 0.5, width)
            yield _with_core(datafit, step.state, point.with_(**sides), penalties["S"])


def _with_core(datafit: Datafit, state: State, point: Factors, penalty: Penalty) -> Factors:
    """Give the factors the core that fits the rows best."""
    xp = namespace(point.F)
    core = xp.zeros((point.F.shape[1], point.G.shape[1]), dtype=point.F.dtype)
    state = state.with_(factors=point.with_(S=core), penalties={"S": penalty})
    quadratic = datafit.expand(state.factors).task_quadratic(point.F)
    there, _ = core_step(quadratic, state, Inner())
    return descend(datafit, state, state.at(there)).factors
