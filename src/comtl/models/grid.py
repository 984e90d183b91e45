"""A grid of settings on a few folds as one computation, small fits in batches."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..arrays import DENSE_BYTES
from ..arrays.blocks import single_blas
from ..datafits.gram_datafit import GramDatafit
from ..engine.problem import Problem, grams_of
from ..engine.progress import Checkpoint, FitProgress, logger
from ..linear import OutputColumns
from ..phrases import warn_caller
from ..rows.observations import Observations
from ..rows.reading import encode_tasks
from .task_model import TaskModel

if TYPE_CHECKING:
    from ..batches.batch_run import HeldOutGrams

CONFIRMED_SETTINGS, SCREENING_TOL_FACTOR, SCREENING_INNER_TOL = 3, 30.0, 0.01
"""Best settings that must have a fit of their own, how much rougher a screening fit may be, and
how loose its inner solves; see benchmarks/bench_grid.md."""
BATCHED = 20_000
"""Numbers in the Grams of a fold up to which batches are faster; see benchmarks/bench_batch.md."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Training rows in the form that every fit shares, and the observations held out."""

    problem: Problem
    columns: OutputColumns
    train: Observations
    test: Observations
    unit: float

    @classmethod
    def of(
        cls, models: Sequence[TaskModel], train: Observations, test: Observations, unit: float
    ) -> Fold:
        """Make the rows ready for the widest of the models; losses are measured in ``unit``."""
        columns = OutputColumns.of(train)
        size = train.n_features, len(columns.task)
        widest = max(models, key=lambda model: model._algorithm.recipe(*size).ranks[0])
        problem = widest._algorithm.problem(train, columns, fits=len(models))
        return cls(problem, columns, train, test, unit)

    @property
    def batched(self) -> bool:
        """Whether to use batches for these rows: where a fit is small, or they lie on a device."""
        fit = self.problem.datafit
        if not self.test.plain or not isinstance(fit, GramDatafit) or fit.same_design:
            return False
        # On a device batches pay as long as several fits have room in one.
        limit = BATCHED if isinstance(fit.gram, np.ndarray) else DENSE_BYTES // 64
        return math.prod(fit.gram.shape) <= limit

    @property
    def held_out(self) -> HeldOutGrams:
        """All that batches need of the rows, in double precision."""
        from ..batches.batch_run import HeldOutGrams

        units, test, train = self.problem.units, self.test, self.problem.datafit
        assert isinstance(train, GramDatafit)
        held_out = grams_of(test, units)
        codes = encode_tasks(test.tasks, self.train.tasks)
        scale = (units.target_scale / self.unit) ** 2
        return HeldOutGrams(train.double, held_out.double, codes, scale)

    def losses(self, models: Iterable[TaskModel], *, screen: bool) -> list[float]:
        """Held-out losses of models, each fitted on its own, or roughly from the one before."""
        found: list[float] = []
        earlier = None
        for model in map(copy.copy, models):  # threads of joblib share the models
            algorithm = model._algorithm
            seed = int(check_random_state(model.random_state).randint(2**31 - 1))
            schedule = algorithm.schedule()
            if screen:
                inner = replace(schedule.inner, tol=max(schedule.inner.tol, SCREENING_INNER_TOL))
                schedule = replace(schedule, tol=SCREENING_TOL_FACTOR * schedule.tol, inner=inner)
            with single_blas():
                *_, step = algorithm.steps(self.problem, schedule, seed, earlier)
            if screen:
                earlier = step.state.factors
            algorithm.keep(step, [], self.problem, self.train, self.columns, seed)
            found.append(self.test.average(partial(model._held_out_loss, unit=self.unit)))
        return found


def unique_recipes(models: Sequence[TaskModel], size: tuple[int, int]) -> list[int]:
    """First place of the setting that each comes to; ``size`` counts features and columns."""
    keys = [(model._algorithm.recipe(*size).ranks, *model._algorithm.place()) for model in models]
    seen = {key: place for place, key in reversed(list(enumerate(keys)))}
    return [seen[key] for key in keys]


@dataclass(frozen=True, eq=False)
class Grid:
    """Settings to fit on the same folds; ``size`` counts features and columns."""

    models: Sequence[TaskModel]
    size: tuple[int, int]
    folds: Callable[[], Iterator[Fold]]
    n_jobs: int | None
    kept: Checkpoint
    watch: FitProgress

    def losses(self, *, warm: bool) -> tuple[np.ndarray, np.ndarray]:
        """Held-out loss of every setting (folds × settings), and the weight of each fold.

        With ``warm``, rough fits along paths of rising penalties choose which are fitted on their
        own, until the winner is one of these. Interrupted, the finished folds decide.
        """
        first = unique_recipes(self.models, self.size)
        places = sorted(set(first), key=lambda place: self.models[place]._algorithm.place()[1])
        held_out = self._held_out(places)
        if held_out is not None:
            losses = self._run_batches(places, held_out)
            return losses[:, first], np.array([fold.test.n_weighted for fold in held_out])
        paths: dict[tuple[Any, ...], list[int]] = {}
        for place in places:
            path = self._ranks(place), *self.models[place]._algorithm.place()[0]
            paths.setdefault(path, []).append(place)
        # The widest first, so that no long path is left to one process at the end.
        groups = [paths[path] for path in sorted(paths, reverse=True)]
        losses, weights, complete = self._run(groups, screen=warm)
        if not len(losses):
            raise KeyboardInterrupt
        settled = set() if warm else set(places)
        mean = np.average(losses, axis=0, weights=weights)
        wanted = {min(path, key=mean.__getitem__) for path in groups}
        while complete and (fresh := sorted(wanted - settled)):
            again, _, complete = self._run([[place] for place in fresh], screen=False)
            if not complete:
                # Rough losses of all folds tell more than close ones of a few.
                break
            losses[:, fresh] = again[:, fresh]
            settled |= wanted
            mean = np.average(losses, axis=0, weights=weights)
            wanted = set(sorted(places, key=mean.__getitem__)[:CONFIRMED_SETTINGS])
        if not complete:
            _warn_of_interruption()
        return losses[:, first], weights

    def _ranks(self, place: int) -> tuple[int, int]:
        return self.models[place]._algorithm.recipe(*self.size).ranks

    def _run(self, groups: list[list[int]], *, screen: bool) -> tuple[np.ndarray, np.ndarray, bool]:
        """Losses of settings in groups (else infinity), weights of folds, whether all are done."""
        weights: list[float] = []
        known: dict[tuple[int, int], list[float]] = {}
        names: list[tuple[int, int]] = []
        wanted: list[tuple[int, int]] = []

        def name(fold: int, group: int) -> str:
            return f"{'screened' if screen else 'fitted'} {fold}: {groups[group]}"

        def jobs() -> Iterator[Any]:
            for number, fold in enumerate(self.folds()):
                weights.append(fold.test.weight)
                for group, places in enumerate(groups):
                    if (found := self.kept.get(name(number, group))) is not None:
                        known[number, group] = found
                        continue
                    names.append((number, group))
                    models = [self.models[place] for place in places]
                    yield delayed(Fold.losses)(fold, models, screen=screen)
            # Reached only once all folds were handed out.
            wanted.extend(product(range(len(weights)), range(len(groups))))

        try:
            results = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs())
            for place, values in enumerate(self.watch.iterate(results, "fit on a fold")):
                known[names[place]] = values
                self.kept.save_later(name(*names[place]), values)
                if all((names[place][0], group) in known for group in range(len(groups))):
                    self.kept.flush()
                logger.info("%d fits on folds done", len(known))
        except KeyboardInterrupt:
            self.kept.flush()
            if not self.watch.is_root:
                raise
        # A callback may end it early too.
        complete = bool(wanted) and len(known) == len(wanted)
        done = [all((fold, g) in known for g in range(len(groups))) for fold in range(len(weights))]
        losses = np.full((len(weights), len(self.models)), np.inf)
        for (fold, group), values in known.items():
            losses[fold, groups[group]] = values
        return losses[done], np.array(weights)[done], complete

    def _held_out(self, places: list[int]) -> list[HeldOutGrams] | None:
        """Folds as batches take them; None where batches are not used."""
        if self.models[0]._classification:
            return None
        from ..batches.batch_start import batchable

        if not all(batchable(self.models[it]._algorithm.recipe(*self.size)) for it in places):
            return None
        found = []
        for fold in self.folds():
            if not fold.batched:
                return None
            found.append(fold.held_out)
        return found

    def _run_batches(self, places: list[int], folds: list[HeldOutGrams]) -> np.ndarray:
        """Losses of settings at some places, else infinity; those of a rank, or all, in a batch."""
        together = not isinstance(folds[0].train.gram, np.ndarray)
        groups: dict[Any, list[int]] = {}
        for place in places:
            groups.setdefault(() if together else self._ranks(place), []).append(place)
        losses = np.full((len(folds), len(self.models)), np.inf)
        left = []
        # The widest first, so that no long batch is left to one process at the end.
        for _, group in sorted(groups.items(), reverse=True):
            if (found := self.kept.get(f"batch {group}")) is not None:
                losses[:, group] = found
            else:
                left.append(group)
        jobs = (delayed(_batch)([self.models[p] for p in it], folds, together) for it in left)
        try:
            results = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
            for number, values in enumerate(self.watch.iterate(results, "batch of fits")):
                losses[:, left[number]] = values
                self.kept.save(f"batch {left[number]}", values)
                logger.info("%d fits on folds done", values.size)
        except KeyboardInterrupt:
            if not self.watch.is_root or not np.isfinite(losses).any():
                raise
        if not np.isfinite(losses[0, places]).all():
            _warn_of_interruption()
        return losses


def _warn_of_interruption() -> None:
    warn_caller(
        "Interrupted: what is known of the settings so far decides. The best is now fitted to "
        "all rows; interrupt again to stop that too.",
        ConvergenceWarning,
    )


def _batch(models: list[TaskModel], folds: list[HeldOutGrams], together: bool) -> np.ndarray:
    """Held-out losses of models, fitted in one batch (folds × models)."""
    from ..batches.batch_run import batched_losses

    recipes = [
        [model._algorithm.recipe(fold.train.n_features, fold.train.n_tasks) for model in models]
        for fold in folds
    ]
    first = models[0]._algorithm
    seed = int(check_random_state(models[0].random_state).randint(2**31 - 1))
    with single_blas():
        return batched_losses(
            folds, recipes, first.schedule(), together=together, init=first.init, seed=seed
        )
