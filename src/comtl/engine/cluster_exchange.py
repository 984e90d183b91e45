"""Starts for hard clusters: clusters of low-rank fits, then exchanges, the best run kept."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..arrays import Array, namespace, to_numpy
from ..clusters import cluster_rows
from ..datafits.datafit import Datafit
from ..factors import Factors, State, padded, thin_svd
from ..penalties import Penalty
from ..penalties.constraints import indicators, labels_of
from ..penalties.learned_relation import LearnedRelation, choose_penalty
from .alternation import alternate, line_search
from .recipe import InnerTolerance, Iteration, Recipe, Schedule
from .starts import start_state
from .task_steps import core_step

START_STRENGTHS = (0.5, 5.0, 50.0)
EXCHANGES = 5
"""Task penalties of guiding fits, most rounds of exchanges; see benchmarks/bench_coclusters.md."""


def best_of_starts(
    datafit: Datafit, recipe: Recipe, schedule: Schedule, *, like: Array, seed: int
) -> list[Iteration]:
    """Return the run that ends lowest, sweep by sweep."""

    def run(factors: Factors) -> list[Iteration]:
        start = start_state(datafit, recipe, schedule, like=like, factors=factors)
        return list(alternate(datafit, start, schedule))

    def end(steps: list[Iteration]) -> float:
        return steps[-1].objective - steps[-1].state.floor

    starts = clustered_starts(datafit, recipe, schedule, like=like, seed=seed)
    best = min(map(run, starts), key=end)
    for _ in range(EXCHANGES):
        before = best
        for factors in exchanges(datafit, best[-1].state):
            best = min(best, run(factors), key=end)
        if best is before:
            break
    return best


def clustered_starts(
    datafit: Datafit, recipe: Recipe, schedule: Schedule, *, like: Array, seed: int
) -> Iterator[Factors]:
    """Yield factors whose hard sides are clusters of the rows of low-rank fits."""
    rng = np.random.default_rng(seed)
    penalties = {name: choose_penalty(entry) for name, entry in recipe.penalties.items()}
    # Blocks have the rank of the shorter side; a side that is not hard needs all its columns.
    blocks = penalties["F"].discrete and penalties["G"].discrete
    rank = min(recipe.ranks) if blocks else max(recipe.ranks)
    rank = min(rank, datafit.n_features, datafit.n_tasks)
    rough = replace(schedule, max_iter=30, tol=1e-3)
    for strength in START_STRENGTHS:
        pair = {"F": LearnedRelation(0.1), "G": LearnedRelation(strength)}
        guide = replace(recipe, penalties=pair, ranks=(rank, rank))
        start = start_state(datafit, guide, rough, like=like, seed=int(rng.integers(2**31 - 1)))
        *_, step = alternate(datafit, start, rough)
        point = step.state.factors
        U, sigma, V = thin_svd(point.F, point.G)
        sides = {}
        for name, basis, width in zip(("F", "G"), (U, V), recipe.ranks, strict=True):
            sides[name] = padded(basis * sigma[None, :] ** 0.5, width)
            if penalties[name].discrete:
                points = to_numpy(basis * sigma[None, :])
                labels = cluster_rows(points, width, int(rng.integers(2**31 - 1)))
                sides[name] = indicators(labels, sides[name])
        yield _with_core(datafit, step.state, point.with_(**sides), penalties["S"])


def exchanges(datafit: Datafit, state: State) -> Iterator[Factors]:
    """Yield factors with the two most similar clusters merged and another one split."""
    point, penalties = state.factors, state.penalties
    expansion = datafit.quadratic_at(point)
    slopes = {"F": expansion.gradient(point.G)[0], "G": expansion.task_gradient(point.F)}
    cores = {"F": to_numpy(point.S), "G": to_numpy(point.S).T}
    for name in ("F", "G"):
        factor, core = getattr(point, name), cores[name]
        if not penalties[name].discrete:
            continue
        labels = labels_of(factor)
        kept, freed = _nearest(core, np.bincount(labels, minlength=len(core)))
        merged = np.where(labels == freed, kept, labels)
        for cluster in np.unique(merged):
            rows = np.flatnonzero(merged == cluster)
            if len(rows) < 2:
                continue
            gradient = to_numpy(slopes[name])[rows]
            left, _, _ = np.linalg.svd(gradient - gradient.mean(axis=0), full_matrices=False)
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


def _with_core(datafit: Datafit, state: State, point: Factors, penalty: Penalty) -> Factors:
    """Give the factors the core that fits the rows best."""
    xp = namespace(point.F)
    core = xp.zeros((point.F.shape[1], point.G.shape[1]), dtype=point.F.dtype)
    state = state.with_(factors=point.with_(S=core), penalties={"S": penalty})
    quadratic = datafit.quadratic_at(state.factors).task_quadratic(point.F)
    there, _ = core_step(quadratic, state, InnerTolerance())
    return line_search(datafit, state, state.at(there)).factors
