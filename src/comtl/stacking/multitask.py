"""The models to reach for first: stacks of many members, combined into one linear model."""

import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import expit

from ..arrays import Array, asarray_like, namespace, on_device, weighted_mean
from ..engine.problem import row_weights
from ..engine.progress import Checkpoint, FitProgress, logger
from ..hierarchical.intervals_mixin import IntervalMixin
from ..linear import ColumnWeights, OutputColumns, Scaling
from ..losses import Logistic, Loss, Squared
from ..models import fields as of
from ..models.display import names_of_features
from ..models.outputs import ClassifierOutputs
from ..models.task_model import TaskModel
from ..parameters import Doc, documented, former_name, one_of
from ..phrases import some
from ..rows.design import Design
from ..rows.fit_input import FitInput
from ..rows.observations import Observations
from ..saving import ModelFileError
from ..saving.registry import belongs
from .blending import row_counts
from .default_members import default_members
from .fitted_stack import FittedStack
from .hinges import Hinges
from .intervals import ErrorModel
from .members import FittedEstimator, Member, Shape
from .stack import FoldRun, Stack, fit_stack
from .stack_rows import StackRows, TargetScaling
from .thresholds import METRICS, best_thresholds


@dataclass(eq=False, repr=False)
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

    _: KW_ONLY
    basis: Annotated[
        str | None,
        one_of(None, "hinges"),
        Doc(
            '"hinges" also tries columns of ten values or more with hinges at four quantiles, and '
            "keeps them where they are better on rows that the members did not see, by more than "
            "chance explains. ``coef_`` and ``feature_clusters_`` then hold the columns of X first "
            "and the hinges after them; ``coef_frame()`` names them."
        ),
    ] = None
    cv: of.Folds = 5
    n_jobs: of.Jobs = None
    checkpoint: of.Checkpoint = None

    _levels_tell = True

    def _loss(self) -> Loss:
        return Logistic() if self._classification else Squared()

    def _members(self, shape: Shape) -> Sequence[Member]:
        """Members to choose from."""
        return default_members(shape, classification=self._classification)

    def _check_data(self, data: Observations) -> None:
        """Refuse observations that the parameters do not suit."""

    def _fit(self, rows: FitInput, watch: FitProgress) -> None:
        """Fit members on folds, weigh them by held-out loss, and refit those with a weight."""
        rows = rows.here(self)
        data = rows.read(self)
        self._check_data(data)
        splits = rows.splits(copy.copy(self), self.cv)
        n_jobs = None if on_device(data.X) else self.n_jobs  # or each would copy the rows
        run = FoldRun(n_jobs, Checkpoint.of(self.checkpoint, self, data), watch)
        units = TargetScaling.of(data)

        stack: Stack | None = None
        for hinges in self._bases(data):
            folds = StackRows(rows, self, hinges, units, data.classes, splits)
            members = self._members(Shape.of(data, further=len(hinges.columns)))
            fresh = fit_stack(folds, members, self._loss(), run)
            if stack is None or (fresh is not None and fresh.beats(stack)):
                stack = fresh
            if stack is None or not stack.complete:
                break
        assert stack is not None
        logger.info("weights: %s", stack.weights)
        self._keep(stack, stack.rows.prepared(data))
        run.kept.finish()

    def _bases(self, data: Observations) -> list[Hinges]:
        """Features to choose from: the columns as they are, and with hinges if asked for."""
        hinges = [] if self.basis is None else [Hinges.of(data.X, row_weights(data))]
        return [Hinges.none(), *(one for one in hinges if len(one.columns))]

    def _read_codes(self, X: Any, task: Any) -> tuple[Any, np.ndarray | None]:
        X, codes = super()._read_codes(X, task)
        return self._hinges.expanded(X), codes

    def _keep(self, stack: Stack, data: Observations, thresholds: np.ndarray | float = 0.0) -> None:
        """Fit members to all rows; make one linear model, in the user's units, of linear ones."""
        fitted, columns = FittedStack.of(stack, data), OutputColumns.of(data)
        weights = stack.weights
        models = {
            name: one for level in fitted.members for name, one in level.items() if name in weights
        }
        self.weights_, self._hinges = weights, stack.rows.hinges
        self.members_ = {
            name: one.model if isinstance(one, FittedEstimator) else one
            for name, one in models.items()
        }
        self.basis_ = "hinges" if len(self._hinges.columns) else "linear"
        xp = namespace(data.weights)
        dtype = data.X.dtype if on_device(data.X) else np.float64
        coef = xp.zeros((len(columns.task), data.n_features), dtype=dtype)
        shift = np.zeros(len(columns.task)) + stack.blends[-1].shift - thresholds
        intercepts = asarray_like(shift, coef, dtype)
        linear = {name: one.linear for name, one in models.items()}
        for name, one in linear.items():
            if one is not None:
                coef += weights[name] * one.coef
                intercepts += weights[name] * one.intercepts
        whole = stack.rows.units.inverse_transform(coef, intercepts, columns.task)
        ones = xp.ones(data.X.shape[0], dtype=data.X.dtype)
        design = Design.standardized(data.X, ones, scale="auto")
        scaling = Scaling(design.shift, design.inverse_scale, 0.0, 1.0)
        self._keep_weights(data, columns, ColumnWeights.of_coef(*whole), scaling)
        self._nonlinear = fitted if None in linear.values() else None

    def _scores(self, X: Any, codes: np.ndarray | None) -> Array:
        scores = super()._scores(X, codes)
        if self._nonlinear is None:
            return scores
        return scores + self._nonlinear.nonlinear_scores(X, codes, self._linear)

    def _observation_scores(self, data: Observations, codes: np.ndarray) -> Array:
        scores = super()._observation_scores(data, codes)
        if self._nonlinear is None:
            return scores
        return scores + self._nonlinear.nonlinear_scores(data.X, codes, self._linear, data.rows)

    def to_onnx(self) -> Any:
        if self._nonlinear is not None:
            others = [name for name, one in self.members_.items() if not isinstance(one, TaskModel)]
            raise TypeError(
                f"to_onnx writes linear models, but the members {some(others)} in weights_ are not "
                "linear; use save() and load() instead."
            )
        return super().to_onnx()

    def _restore(self, state: dict[str, Any]) -> None:
        # Earlier versions had linear members alone.
        super()._restore({"_nonlinear": None, **state})

    def _feature_names(self) -> list[str]:
        width = self._linear.weights.directions.shape[0] - len(self._hinges.columns)
        names = names_of_features(vars(self).get("feature_names_in_"), width, self.task_column)
        return names + self._hinges.names(names)


@documented
class MultitaskRegressor(IntervalMixin, MultitaskModel):
    r"""The best linear model of all tasks, with defaults that need no tuning.

    A fixed library of members is fitted: hierarchical models of every structure, BiFactor models,
    one model for all tasks and one for each. They are combined by weights that are not negative
    and suit rows best that the members did not see. The result is one linear model for each task.
    Columns of a two-dimensional ``y`` may be of any units.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import MultitaskRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(300, 3)), np.repeat(np.arange(20), 15)
    >>> y = X[:, 0] + rng.normal(size=20)[task] + rng.normal(size=300)
    >>> model = MultitaskRegressor().fit(X, y, task=task)
    >>> lower, upper = model.predict_interval(X, level=0.9, task=task)
    >>> bool(0.85 < np.mean((lower < y) & (y < upper)) < 0.97)
    True
    """

    def _keep(self, stack: Stack, data: Observations, *more: Any) -> None:
        super()._keep(stack, data, *more)
        held, units = stack.held, stack.rows.units
        # What tasks say of their rows, against what would be said of a task never seen.
        known, new = data.codes, np.full_like(data.codes, -1)
        gap = self._observation_scores(data, known) - self._observation_scores(data, new)
        gap = gap / asarray_like(units.scale[known], gap, gap.dtype)
        between = weighted_mean(gap**2, data.weights)
        errors, weights = held.y - stack.score, row_counts(held.weights)
        found = ErrorModel.of(errors, weights, held.task, data.n_tasks, between)
        self._residuals = found.in_units(np.append(units.scale, units.scale.mean()))

    def _deviations(self, X: Any, codes: np.ndarray | None) -> np.ndarray:
        return _by_row(self._residuals.deviations, X, codes)

    def _bounds(
        self, X: Any, codes: np.ndarray | None, level: float
    ) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._residuals.bounds(level)
        return _by_row(low, X, codes), _by_row(high, X, codes)


def _by_row(each: np.ndarray, X: Any, codes: np.ndarray | None) -> np.ndarray:
    """What each task has, and last a new one, for every row, beside the rows."""
    shown = each[codes] if codes is not None else np.tile(each[:-1], (X.shape[0], 1))
    return asarray_like(shown, X, X.dtype) if on_device(X) else shown


@documented
@dataclass(eq=False, repr=False)
class MultitaskClassifier(ClassifierOutputs, MultitaskModel):
    r"""The best linear classifier of all tasks, with defaults that need no tuning.

    See :class:`MultitaskRegressor`; the members are combined by the likelihood of classes that
    they did not see.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_tasks,)
        Log odds of each task above which its rows are in the second class; zero: even odds.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import MultitaskClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(300, 3)), np.repeat(np.arange(20), 15)
    >>> y = X[:, 0] + rng.normal(size=20)[task] + rng.normal(size=300) > 0
    >>> MultitaskClassifier().fit(X, y, task=task).score(X, y, task=task) > 0.7
    True
    """

    cuts_ = former_name("cuts_", "thresholds_")

    _: KW_ONLY
    threshold: Annotated[
        str | None,
        one_of(None, *METRICS),
        Doc(
            "Metric, as a mean over tasks, for which the threshold between two classes is chosen: "
            "where it is best by the odds of rows that the members did not see. It may follow the "
            "tasks' mean scores. Thresholds become part of the intercepts, so that ``predict`` and "
            "``decision_function`` have them; ``predict_proba`` leaves them out. None: even odds."
        ),
    ] = None

    def _keep(self, stack: Stack, data: Observations, thresholds: np.ndarray | float = 0.0) -> None:
        self.thresholds_ = np.zeros(data.n_tasks)
        if self.threshold is not None:
            held, scores = stack.held, stack.score
            rows = scores, expit(scores), held.weights, held.task
            self.thresholds_ = thresholds = best_thresholds(self.threshold, *rows, data.n_tasks)
        super()._keep(stack, data, thresholds)

    def _thresholds_of(self, codes: np.ndarray | None) -> np.ndarray:
        if codes is None:
            return self.thresholds_
        # A task never seen has the mean intercept, and with it the mean threshold.
        return np.append(self.thresholds_, self.thresholds_.mean())[codes]

    def _restore(self, state: dict[str, Any]) -> None:
        # What files of earlier versions call them.
        state = {"thresholds_" if name == "cuts_" else name: part for name, part in state.items()}
        super()._restore(state)
        found: Any = state.get("thresholds_")
        fits = belongs(found, np.ndarray) and found.dtype.kind == "f"
        if not fits or found.shape != self.tasks_.shape:
            raise ModelFileError("the thresholds of the model do not fit its tasks.")

    def _check_data(self, data: Observations) -> None:
        if self.threshold is not None and data.classes is not None and len(data.classes) > 2:
            raise ValueError(
                f"threshold={self.threshold!r} is a threshold between two classes, but y has "
                f"{len(data.classes)}; leave threshold=None."
            )
