"""A grid of settings on a few folds as one computation: rows, fits and starts are shared."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from .base import FactorModel, fit_steps
from .data import TaskData
from .problem import Columns, Problem

CONFIRMED = 3
"""How many of the best settings of warm paths are fitted anew; see benchmarks/bench_grid.md."""

Path = list[int]
"""Places of settings in the order of their fits, each starting from the one before."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Training rows in the form that every fit shares, and the cells held out."""

    problem: Problem
    columns: Columns
    train: TaskData
    test: TaskData
    unit: float

    @classmethod
    def of(
        cls, models: Sequence[FactorModel], train: TaskData, test: TaskData, unit: float
    ) -> Fold:
        """Make the rows ready for the widest of the models; losses are measured in ``unit``."""
        columns = Columns.of(train)
        size = train.n_features, len(columns.task)
        widest = max(models, key=lambda model: model._recipe(*size).ranks[0])
        return cls(widest._problem(train, columns), columns, train, test, unit)

    @property
    def weight(self) -> float:
        """Weight of the cells held out."""
        return float(self.test.weights.sum())

    def losses(self, models: Iterable[FactorModel]) -> list[float]:
        """Held-out losses of a path of models, each fitted from where the one before ended."""
        found: list[float] = []
        earlier = None
        for model in map(copy.copy, models):  # threads of joblib share the models
            recipe = model._recipe(self.train.n_features, len(self.columns.task))
            seed = int(check_random_state(model.random_state).randint(2**31 - 1))
            steps = fit_steps(
                self.problem, recipe, model._schedule(), model.init, seed, earlier, anneal=True
            )
            *_, step = steps
            earlier = step.state.factors
            model._keep(step, [], self.problem, self.train, self.columns, seed)
            found.append(model._held_out_loss(self.test, self.unit))
        return found


def distinct(models: Sequence[FactorModel], size: tuple[int, int]) -> list[int]:
    """First place of the setting that each comes to; ``size`` counts features and columns."""
    keys = [(model._recipe(*size).ranks, model.alpha_task) for model in models]
    seen = {key: place for place, key in reversed(list(enumerate(keys)))}
    return [seen[key] for key in keys]


def grid_losses(
    models: Sequence[FactorModel],
    size: tuple[int, int],
    folds: Callable[[], Iterator[Fold]],
    *,
    warm: bool,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Held-out loss of every setting (folds × settings), and the weight of each fold.

    Settings that come to the same recipe are fitted once. Along a warm path of rising penalties
    each fit starts from the one before; where such fits come out best they are made anew from
    the usual start, so that the winner's score is what it would be alone.
    """
    first = distinct(models, size)
    places = sorted(set(first))
    paths: list[Path] = [[place] for place in places]
    if warm:
        by_rank: dict[tuple[int, int], Path] = {}
        for place in sorted(places, key=lambda place: models[place].alpha_task):
            by_rank.setdefault(models[place]._recipe(*size).ranks, []).append(place)
        paths = list(by_rank.values())
    losses, weights = _run(models, paths, folds, n_jobs)
    settled = {path[0] for path in paths}
    while True:
        mean = np.average(losses[:, places], axis=0, weights=weights)
        best = [places[number] for number in mean.argsort(kind="stable")[:CONFIRMED]]
        wanted = [[place] for place in best if place not in settled]
        if not wanted:
            return losses[:, first], weights
        again, _ = _run(models, wanted, folds, n_jobs)
        for (place,) in wanted:
            losses[:, place] = again[:, place]
            settled.add(place)


def _run(
    models: Sequence[FactorModel],
    paths: list[Path],
    folds: Callable[[], Iterator[Fold]],
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Losses of the settings on some paths; of the others, infinity."""
    weights = []

    def jobs() -> Iterator[Any]:
        for fold in folds():
            weights.append(fold.weight)
            for path in paths:
                yield delayed(Fold.losses)(fold, [models[place] for place in path])

    found = Parallel(n_jobs=n_jobs)(jobs())
    losses = np.full((len(weights), len(models)), np.inf)
    for number, values in enumerate(found):
        losses[number // len(paths), paths[number % len(paths)]] = values
    return losses, np.array(weights)
