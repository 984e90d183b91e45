"""What the stacked estimators share: members on folds, their weights, one linear model of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..arrays import Array, asarray_like, device_name, namespace, on_device
from ..engine.problem import Scaling, row_weights
from ..engine.progress import Checkpoint, FitProgress, logger, progress_shown
from ..linear import LinearTasks, OutputColumns
from ..models.display import names_of_features
from ..models.task_model import TaskModel
from ..rows.design import Design
from ..rows.fit_input import FitInput
from ..rows.folds import Split
from ..rows.observations import Observations
from .blending import exceeds_noise
from .default_members import default_members
from .hinges import Hinges
from .member_estimators import public_member
from .members import Member, Shape
from .stack import FittedStack, FoldRun, NonlinearPart, Stack, fit_stack, unless_interrupted
from .stack_rows import StackRows


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

    members_: dict[str, Any]
    weights_: dict[str, float]
    _nonlinear: NonlinearPart | None

    # Declared for type checkers; the final classes are dataclasses of their parameters.
    basis: str | None
    cv: Any
    n_jobs: int | None
    checkpoint: str | None
    verbose: int

    def _members(self, shape: Shape) -> Sequence[Member]:
        """Members to choose from."""
        members = default_members(shape, classification=self._classification)
        if shape.on_device and not all(one.suits(shape) for one in members):
            raise TypeError(
                f"X has {shape.n_features} features and there are {shape.n_columns} tasks: some "
                "members for tables so wide work on arrays of NumPy alone. Convert them first, or "
                "use BiFactor models."
            )
        return members

    def _check_data(self, data: Observations) -> None:
        """Refuse observations that the parameters do not suit."""

    def _fit(self, rows: FitInput, watch: FitProgress) -> None:
        rows = rows.here(self)
        data = rows.read(self)
        self._check_data(data)
        splits = rows.splits(copy.copy(self), self.cv)
        n_jobs = None if on_device(data.X) else self.n_jobs  # or each would copy the rows
        run = FoldRun(n_jobs, Checkpoint.of(self.checkpoint, self, data), watch)
        with progress_shown(self.verbose):
            stack = self._choose_basis(rows, data, splits, run)
            logger.info("weights: %s", stack.weights)
            data = stack.rows.prepared(data)
            fitted = stack.fit_members(data)
        self._keep(stack, fitted, data)
        run.kept.finish()

    def _choose_basis(
        self, rows: FitInput, data: Observations, splits: Sequence[Split], run: FoldRun
    ) -> Stack:
        """Stack on the columns as they are, or with hinges where these are better."""

        def stack_on(hinges: Hinges) -> Stack:
            shape = Shape.of(data, further=len(hinges.columns))
            own = StackRows.of(rows, self, data, hinges)
            return fit_stack(own, shape, self._members(shape), splits, self._loss(), run)

        straight, *bent = self._bases(data)
        best = stack_on(straight)
        for hinges in bent if best.complete else []:
            new = unless_interrupted(partial(stack_on, hinges), run.watch, "hinges")
            if new is None or not new.complete:
                break
            if exceeds_noise(best.losses - new.losses, new.held.weights):
                best = new
        return best

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

    def _read_codes(self, X: Any, task: Any) -> tuple[Any, np.ndarray | None]:
        X, codes = super()._read_codes(X, task)
        return self._hinges.expanded(X), codes

    def _keep(
        self,
        stack: Stack,
        fitted: FittedStack,
        data: Observations,
        thresholds: np.ndarray | float = 0.0,
    ) -> None:
        """Keep the members, and one linear model of those that are linear, in the user's units."""
        columns, units = OutputColumns.of(data), stack.rows.units
        found = {name: one for level in fitted.members for name, one in level.items()}
        self.weights_, self._hinges = stack.weights, stack.rows.hinges
        self.members_ = {name: public_member(found[name]) for name in stack.weights}
        self.basis_ = "hinges" if len(self._hinges.columns) else "linear"
        self._describe(data, columns)
        xp = namespace(data.weights)
        design = Design.standardized(data.X, xp.ones(data.X.shape[0], dtype=data.X.dtype))
        self._units = Scaling(design.shift, design.inverse_scale, 0.0, 1.0)
        self._seed = 0
        shape = len(columns.task), data.n_features
        dtype = data.X.dtype if on_device(data.X) else np.float64
        coef = xp.zeros(shape, dtype=dtype)
        shift = np.zeros(shape[0]) + stack.blends[-1].shift - thresholds
        intercepts = asarray_like(shift, coef, dtype)
        linear = {name: found[name].linear for name in stack.weights}
        for name, one in linear.items():
            if one is not None:
                coef += stack.weights[name] * one.coef
                intercepts += stack.weights[name] * one.intercepts
        whole = LinearTasks.of_weights(*units.inverse_transform(coef, intercepts, columns.task))
        self._widths = whole.directions.shape[1], whole.directions.shape[1]
        self._set_linear(whole)
        self._nonlinear = None
        if None in linear.values():
            self._nonlinear = NonlinearPart(fitted, units.scale)

    def _scores(self, X: Any, codes: np.ndarray | None) -> Array:
        scores = super()._scores(X, codes)
        if self._nonlinear is None:
            return scores
        return scores + self._nonlinear.scores(X, codes, self.tasks_, self._columns)

    def _restore(self, state: dict[str, Any]) -> None:
        # Earlier versions had linear members alone.
        super()._restore({"_nonlinear": None, **state})

    def _feature_names(self) -> list[str]:
        hinges = self._hinges
        width = self._linear.directions.shape[0] - len(hinges.columns)
        given = vars(self).get("feature_names_in_")
        names = names_of_features(given, width, self.task_column)
        return names + hinges.names(names)

    def _clusters(self) -> tuple[int | None, int | None]:
        return None, None
