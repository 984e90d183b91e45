"""What the stacked estimators share: members on folds, their weights, one linear model of them."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from ..arrays import asarray_like, device_name, is_device_sparse, namespace, on_device, to_numpy
from ..engine.checkpoints import Checkpoint
from ..engine.problem import Scaling, row_weights
from ..engine.progress import FitProgress, logger, progress_shown
from ..hierarchical.coregionalised import CoregionalisedRidge
from ..hierarchical.hierarchical_model import groups_of
from ..linear import LinearTasks, OutputColumns
from ..models.display import names_of_features
from ..models.task_model import TaskModel
from ..phrases import warn_caller
from ..rows.design import Design
from ..rows.fit_input import FitInput, Split
from ..rows.observations import Observations
from ..rows.reading import encode_tasks
from .blending import exceeds_noise
from .candidates import Candidate, HeldOutScores, Stack, parts_of_all
from .default_members import reference_member
from .hinges import Hinges
from .shared_fits import WholeSums, fit_members, population_for
from .target_scaling import TargetScaling


class MultitaskModel(TaskModel):
    """Abstract stack of models of all tasks.

    Attributes
    ----------
    basis_ : str
        "linear" or "hinges".
    members_ : dict
        Members that have a weight, fitted to all rows, by name. After a regression on a
        two-dimensional y they are models of its columns in units of their spread.
    weights_ : dict
        Their weights, by name.
    """

    _on_devices = True
    _levels_tell = True

    members_: dict[str, TaskModel]
    weights_: dict[str, float]

    # Declared for type checkers; the final classes are dataclasses of their parameters.
    basis: str | None
    cv: Any
    n_jobs: int | None
    checkpoint: str | None
    verbose: int
    thresholds_: np.ndarray

    @abstractmethod
    def _library(
        self, size: tuple[int, int], *, together: int, sparse: bool
    ) -> dict[str, TaskModel]:
        """Members by name; ``size`` counts features and columns of weights.

        ``together`` is the number of columns that share a prior.
        """

    @abstractmethod
    def _member_scores(self, member: TaskModel, test: Observations) -> np.ndarray:
        """Scores of a fitted member for the cells held out."""

    @abstractmethod
    def _member_targets(self, member: TaskModel, test: Observations) -> tuple[np.ndarray, ...]:
        """Targets, weights and tasks (numbers in ``test``) of the same cells."""

    @abstractmethod
    def _stack(self, held: HeldOutScores, base: int | None) -> tuple[np.ndarray, float]:
        """Weight of each member, drawn to one of them, and what is added to every score."""

    @abstractmethod
    def _fit_error_model(
        self, held: HeldOutScores, scores: np.ndarray, data: Observations, units: TargetScaling
    ) -> None:
        """Keep what the stack's scores of cells not seen tell of cells to come."""

    def _check_data(self, data: Observations) -> None:
        """Refuse cells that the parameters do not suit."""

    def _fit_thresholds(
        self, held: HeldOutScores, scores: np.ndarray, n_tasks: int
    ) -> np.ndarray | float:
        """Choose, and keep, the scores above which rows of the tasks are positive."""
        return 0.0

    def _fit(self, rows: FitInput, watch: FitProgress) -> None:
        rows = rows.here(self)
        data = rows.read(self)
        self._check_data(data)
        kept = Checkpoint.of(self.checkpoint, self, data)
        splits = rows.splits(copy.copy(self), self.cv)
        with progress_shown(self.verbose):
            best = self._best(rows, data, splits, kept, watch)
            logger.info("weights: %s", best.weights)
            table = best.table
            chosen = [best.library[name] for name in best.weights]
            fitted = fit_members(chosen, table.data, table.columns, table.population)
        self.members_ = dict(zip(best.weights, fitted, strict=True))
        self.weights_ = best.weights
        self._hinges = table.hinges
        self.basis_ = "hinges" if len(table.hinges.columns) else "linear"
        cuts = self._fit_thresholds(best.held, best.scores, data.n_tasks)
        self._combine(table, best.shift - cuts)
        self._fit_error_model(best.held, best.scores, table.data, table.units)
        kept.finish()

    def _best(
        self,
        rows: FitInput,
        data: Observations,
        splits: list[Split],
        kept: Checkpoint,
        watch: FitProgress,
    ) -> Stack:
        """Stack on the columns as they are, or with hinges where these are better."""
        straight, *bends = self._bases(data)
        best = self._evaluate(rows, self._table(data, straight), splits, kept, watch)
        for hinges in bends if best.complete else []:
            try:
                bent = self._evaluate(rows, self._table(data, hinges), splits, kept, watch)
            except KeyboardInterrupt:
                if not watch.is_root:
                    raise
                warn_caller(
                    "Interrupted among the folds of the hinges, which are left out. The members "
                    "are "
                    "now fitted to all rows; interrupt again to give up.",
                    ConvergenceWarning,
                )
                return best
            if exceeds_noise(best.losses - bent.losses, bent.held.weights):
                best = bent
        return best

    def _table(self, data: Observations, hinges: Hinges) -> Candidate:
        """Cells made ready for members on given features."""
        units, columns = TargetScaling.of(data), OutputColumns.of(data)
        measured = replace(units.transform(data), X=hinges.expanded(data.X))
        population = population_for(self, measured, columns)
        return Candidate(hinges, units, measured, columns, population)

    def _bases(self, data: Observations) -> list[Hinges]:
        """Features to choose from: the columns as they are, and with hinges if asked for."""
        if self.basis is None:
            return [Hinges.none()]
        if on_device(data.X):
            raise TypeError(
                'basis="hinges" looks for hinges on the host, but X lies in '
                f"{device_name(data.X)}; "
                "leave basis=None, or pass arrays of NumPy."
            )
        hinges = Hinges.of(data.X, row_weights(data))
        return [Hinges.none(), hinges] if len(hinges.columns) else [Hinges.none()]

    def _evaluate(
        self,
        rows: FitInput,
        table: Candidate,
        splits: list[Split],
        kept: Checkpoint,
        watch: FitProgress,
    ) -> Stack:
        """Stack of members on given features."""
        data, columns = table.data, table.columns
        size = data.n_features, len(columns.task)
        library = self._library(
            size,
            together=max(map(len, groups_of(columns))),
            sparse=sparse.issparse(data.X) or is_device_sparse(data.X),
        )
        if on_device(data.X) and any(isinstance(m, CoregionalisedRidge) for m in library.values()):
            raise TypeError(
                f"X has {size[0]} features and there are {size[1]} tasks: some members for tables "
                f"so wide do not work on arrays of {device_name(data.X)}. Convert them to NumPy "
                "first, or use BiFactor models."
            )
        held, complete = self._held_out(rows, table, library, splits, kept, watch)
        shares, shift = self._stack(held, reference_member(library))
        weights = {
            name: share for name, share in zip(library, shares.tolist(), strict=True) if share > 0.0
        }
        scores = held.scores @ shares + shift
        losses = self._loss().value(held.target, scores)
        return Stack(table, library, held, weights, shift, scores, losses, complete)

    def _read_codes(self, X: Any, task: Any) -> tuple[Any, np.ndarray | None]:
        X, codes = super()._read_codes(X, task)
        return self._hinges.expanded(X), codes

    def _held_out(
        self,
        rows: FitInput,
        table: Candidate,
        library: dict[str, TaskModel],
        splits: list[Split],
        kept: Checkpoint,
        watch: FitProgress,
    ) -> tuple[HeldOutScores, bool]:
        """Scores of all members on every fold's test cells, and whether no fold was left out."""
        data, models = table.data, list(library.values())
        # A checkpoint of other folds or hinges is none of this fit.
        names = [joblib.hash((table.hinges.columns, table.hinges.knots, one)) for one in splits]
        known = {name: kept.get(name) for name in names if kept.get(name) is not None}
        missing = [number for number, name in enumerate(names) if name not in known]
        whole = WholeSums.of(table.population, models) if missing else None
        # Jobs get what they need of the table, not its rows a second time.
        given = models, table.hinges, table.units, data.classes, whole
        jobs = (delayed(self._fold)(rows, splits[n], *given) for n in missing)
        try:
            n_jobs = None if on_device(data.X) else self.n_jobs  # or each would copy the rows
            with rows.side_by_side(n_jobs) as count:
                done = Parallel(count, return_as="generator")(jobs)
                found = zip(missing, done, strict=True)
                last = missing[-1:]
                for number, part in watch.iterate(found, "fold", more=lambda one: [one[0]] != last):
                    known[names[number]] = part
                    kept.save(names[number], part)
                    logger.info("%d of %d folds done", len(known), len(splits))
        except KeyboardInterrupt:
            if not known or not watch.is_root or len(table.hinges.columns):
                raise
            warn_caller(
                f"Interrupted after {len(known)} of {len(splits)} folds, which decide the weights. "
                "The members are now fitted to all rows; interrupt again to give up.",
                ConvergenceWarning,
            )
        parts = [known[name] for name in names if name in known]
        held = HeldOutScores(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        return held, len(parts) == len(splits)

    def _fold(
        self,
        rows: FitInput,
        split: Split,
        models: list[TaskModel],
        hinges: Hinges,
        units: TargetScaling,
        classes: np.ndarray | None,
        whole: WholeSums | None,
    ) -> tuple[np.ndarray, ...]:
        """Scores, targets, weights and tasks of the cells that one fold holds out."""
        train, test = (
            rows.take(part).read(copy.copy(self), classes=classes, partial=True) for part in split
        )
        train, test = (
            replace(units.transform(part), X=hinges.expanded(part.X)) for part in (train, test)
        )
        columns = OutputColumns.of(train)
        population = population_for(self, train, columns)
        if whole is not None and parts_of_all(split, rows.counted):
            population = whole.without(test, population)
        fitted = fit_members(models, train, columns, population)
        # One number a member and cell: the stack is put together on the host.
        scores = np.stack([to_numpy(self._member_scores(model, test)) for model in fitted], axis=1)
        target, weights, task = map(to_numpy, self._member_targets(fitted[0], test))
        return scores, target, weights, encode_tasks(test.tasks, units.tasks)[task]

    def _combine(self, table: Candidate, shift: np.ndarray | float) -> None:
        """One linear model of all members, in the user's units; ``shift`` is added to scores."""
        data, columns = table.data, table.columns
        self._describe(data, columns)
        xp = namespace(data.weights)
        design = Design.standardized(data.X, xp.ones(data.X.shape[0], dtype=data.X.dtype))
        self._units = Scaling(design.shift, design.inverse_scale, 0.0, 1.0)
        self._seed = 0
        shape = len(columns.task), data.n_features
        dtype = data.X.dtype if on_device(data.X) else np.float64
        coef = xp.zeros(shape, dtype=dtype)
        intercepts = asarray_like(np.zeros(shape[0]) + shift, coef, dtype)
        for member, share in zip(self.members_.values(), self.weights_.values(), strict=True):
            linear = member._linear
            coef += share * linear.coef
            intercepts += share * linear.intercepts
        linear = LinearTasks.of_weights(
            *table.units.inverse_transform(coef, intercepts, columns.task)
        )
        self._widths = linear.directions.shape[1], linear.directions.shape[1]
        self._set_linear(linear)

    def _feature_names(self) -> list[str]:
        hinges = self._hinges
        width = self._linear.directions.shape[0] - len(hinges.columns)
        given = vars(self).get("feature_names_in_")
        names = names_of_features(given, width, self.task_column)
        return names + hinges.names(names)

    def _clusters(self) -> tuple[int | None, int | None]:
        return None, None
