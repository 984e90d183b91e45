"""The models to reach for first: stacks of many members, combined into one model."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from scipy.special import expit

from ..arrays import Array, asarray_like, namespace, on_device, to_numpy, weighted_mean
from ..engine.problem import row_weights
from ..engine.progress import Checkpoint, FitProgress, logger
from ..hierarchical.intervals_mixin import IntervalMixin
from ..linear import ColumnWeights, OutputColumns, Scaling
from ..losses import Logistic, Loss, Squared
from ..losses.links import Identity, Link, Log
from ..models import fields as of
from ..models.display import names_of_features
from ..models.factor_model import adapt
from ..models.outputs import ClassifierOutputs
from ..models.task_model import TaskModel
from ..parameters import FORMER_PARAMETERS, Doc, documented, former_name, one_of, takes_former
from ..rows.design import Design
from ..rows.fit_input import FitInput
from ..rows.observations import Observations
from ..rows.reading import read_rows
from ..saving import ModelFileError
from ..saving.registry import belongs
from .blending import mean_and_se, row_counts
from .default_members import default_members, default_trees, suits_components, suits_hinges
from .fitted_stack import FittedStack
from .hinges import Hinges
from .intervals import ErrorModel
from .members import FittedEstimator, Member, Shape
from .stack import FoldRun, Stack, fit_stack
from .stack_rows import StackRows, TargetScaling, principal_components
from .thresholds import METRICS, best_thresholds

MIN_SKEWNESS = 1.0
"""Of positive targets from which their logarithms are tried."""
LOG_GAIN_SE = 1.0
"""Standard errors by which logarithms must be better: with less, tables of a hundred rows lose."""
FEW_MEMBERS = ("isotropic", "isotropic, hinges")
"""Members by whose stacks targets are compared with their logarithms."""
FORMER_FORMS = {None: "linear"}
"""Forms by what they were as ``basis``."""


@dataclass(eq=False, repr=False)
class MultitaskModel(TaskModel):
    """Abstract stack of models of all tasks.

    Attributes
    ----------
    form_ : str
        What was kept: "linear", "hinges", "trees", or "hinges and trees".
    members_ : dict
        Members that have a weight, fitted to all rows, by name. After a regression on a
        two-dimensional y they are models of its columns in units of their spread.
    weights_ : dict
        Their weights, by name.
    """

    basis_ = former_name("basis_", "form_")

    _: KW_ONLY
    form: Annotated[
        str,
        one_of("auto", "linear", "hinges", "trees"),
        Doc(
            '"linear" has linear members alone. "hinges" also tries members with hinges of the '
            'columns of ten values or more, at four quantiles, and "trees" boosted trees above the '
            'linear members; "auto" tries both. They are kept where they are better on rows that '
            "the members did not see, by more than chance explains. ``coef_`` is the linear part; "
            "it and ``feature_clusters_`` hold the columns of X first and hinges after them, which "
            "``coef_frame()`` names."
        ),
    ] = "auto"
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
        weights = to_numpy(data.weights)
        if (share := float(row_counts(weights).sum() / weights.sum())) > 1.0:
            # Members take weights for numbers of rows, which shares of the rows are not.
            given: Any = rows.sample_weight
            given = np.asarray(given) if isinstance(given, list | tuple) else given
            rows = replace(rows, sample_weight=share * given)
            data = replace(data, weights=share * data.weights)
        shape = Shape.of(data)
        if self.form == "trees" and (shape.sparse or shape.on_device):
            raise TypeError(
                'form="trees" grows trees on dense rows of NumPy alone; take form="linear" or '
                'form="auto", or convert X.'
            )
        splits = rows.splits(copy.copy(self), self.cv)
        n_jobs = None if on_device(data.X) else self.n_jobs  # or each would copy the rows
        run = FoldRun(n_jobs, Checkpoint.of(self.checkpoint, self, data), watch)
        hinges = self._candidate_hinges(data)
        shape = Shape.of(data, len(hinges.columns))
        members = self._members(shape)
        trees = default_trees(shape) if self.form in ("auto", "trees") else []
        reader = rows, self
        if suits_components(shape):
            reader = self._components(rows, shape)

        def stacked(log: bool, members: Sequence[Member], trees: Any) -> Stack:
            units = replace(TargetScaling.of(data), log=log)
            folds = StackRows(*reader, hinges, units, data.classes, splits, reader[1] is not self)
            return fit_stack(folds, folds.prepared(data), members, trees, self._loss(), run)

        losses = partial(self._small_stack, stacked, members, trees[:1])
        stack = stacked(self._takes_logarithms(data, losses), members, trees)
        logger.info("weights: %s", stack.weights)
        self._keep(stack, stack.rows.prepared(data))
        run.kept.finish()

    def _components(self, rows: FitInput, shape: Shape) -> tuple[FitInput, Self]:
        """Rows by their principal components, and who reads them."""
        X, labels = read_rows(self, rows.X, rows.task)
        schema = copy.copy(self)
        schema.task_column = None
        components = principal_components(X, scale=not shape.sparse)
        return FitInput(components, rows.y, labels, rows.sample_weight), schema

    def _takes_logarithms(self, data: Observations, losses: Callable[[bool], Any]) -> bool:
        """Whether logarithms of the targets are fitted."""
        return False

    def _small_stack(
        self, stacked: Callable[..., Stack], members: Sequence[Member], trees: Any, log: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Squared errors of held-out rows by a small stack, and weights; also of logarithms."""
        few = [one for one in members if one.name in FEW_MEMBERS] or members[:1]
        stack = stacked(log, few, trees)
        y, score = stack.held.y, stack.score
        if log:
            y, score = np.exp(y), np.exp(score + log_correction(stack))
        unit = float(np.abs(y).max()) or 1.0
        return (y / unit - score / unit) ** 2, stack.held.weights

    def _candidate_hinges(self, data: Observations) -> Hinges:
        """Hinges to choose from."""
        tried = self.form == "hinges" or (self.form == "auto" and suits_hinges(Shape.of(data)))
        return Hinges.of(data.X, row_weights(data)) if tried else Hinges.none()

    def _read_codes(self, X: Any, task: Any) -> tuple[Any, np.ndarray | None]:
        X, codes = super()._read_codes(X, task)
        return self._hinges.expanded(X), codes

    def _keep(self, stack: Stack, data: Observations, thresholds: np.ndarray | float = 0.0) -> None:
        """Fit members to all rows; make one linear model, in the user's units, of linear ones."""
        fitted, columns = FittedStack.of(stack), OutputColumns.of(data)
        weights = stack.weights
        models = {
            name: one for level in fitted.members for name, one in level.items() if name in weights
        }
        self.weights_, self._hinges = weights, stack.rows.hinges
        self.members_ = {
            name: one.model if isinstance(one, FittedEstimator) else one
            for name, one in models.items()
        }
        kept = {"hinges": bool(stack.rows.n_hinges), "trees": bool(stack.trees)}
        self.form_ = " and ".join(name for name in kept if kept[name]) or "linear"
        xp = namespace(data.weights)
        dtype = data.X.dtype if on_device(data.X) else np.float64
        coef = xp.zeros((len(columns.task), data.n_features), dtype=dtype)
        shift = np.zeros(len(columns.task)) + stack.blends[-1].shift - thresholds
        intercepts = asarray_like(shift, coef, dtype)
        linear = {name: one.linear for name, one in models.items()}
        for name, one in linear.items():
            if one is not None:
                coef[:, : one.shared.shape[0]] += weights[name] * one.coef
                intercepts += weights[name] * one.intercepts
        whole = stack.rows.units.inverse_transform(coef, intercepts, columns.task)
        ones = xp.ones(data.X.shape[0], dtype=data.X.dtype)
        design = Design.standardized(data.X, ones, scale="auto")
        scaling = Scaling(design.shift, design.inverse_scale, 0.0, 1.0)
        self._keep_weights(data, columns, ColumnWeights.of_coef(*whole), scaling)
        self._nonlinear = fitted if None in linear.values() else None
        # For new tasks.
        self._blend_shift, self._target_scale = stack.blends[-1].shift, stack.rows.units.scale

    adapt = adapt
    _gathers_new_rows = True

    def _adapted(self, data: Observations, columns: OutputColumns, *, residual: bool) -> Self:
        # Here, since a model that only predicts needs none of it.
        from .adapted_stack import grown_stack

        return grown_stack(self, data, columns, residual=residual)[0]

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

    def variance_shares(self, X: Any, task: Any = None) -> dict[str, float]:
        """Shares of the prediction's variance over rows: linear in common, of tasks, and beyond.

        Of a classifier the prediction is the score, or beyond two classes those of all classes.
        Of hinges and trees the linear trend over the rows counts as linear, and what they have
        beyond it as nonlinear (of sparse rows hinges are linear). Linear parts that are correlated
        have half of their covariance each, so that a small one may have a share below zero. Shares
        depend on the rows: give as many as there are, and more than columns.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.
        task : array-like of shape (n_samples,), optional
            Task of each row, where it is no column of X.

        Returns
        -------
        dict
            Shares that sum to one: "common linear", of the mean of all tasks; "own linear", of what
            tasks differ by in slopes and levels; "nonlinear", of curves, steps and interactions.

        Examples
        --------
        >>> import numpy as np
        >>> from comtl import MultitaskRegressor
        >>> rng = np.random.default_rng(0)
        >>> X, task = rng.normal(size=(300, 3)), np.repeat(np.arange(20), 15)
        >>> y = X[:, 0] + rng.normal(size=20)[task] + 0.1 * rng.normal(size=300)
        >>> model = MultitaskRegressor(form="linear").fit(X, y, task=task)
        >>> list(model.variance_shares(X, task=task))
        ['common linear', 'own linear', 'nonlinear']
        """
        # Here, since a model that only predicts needs none of it.
        from .variance_shares import VarianceShares

        model = self.to_numpy()
        X, codes = model._read_codes(X, task)
        if codes is None:
            raise ValueError(
                "variance_shares compares tasks in one unit, but this model was fitted to columns "
                "of y, which may be of any units; fit it with y in one column and task=."
            )
        shares = VarianceShares(model._linear, model._nonlinear, len(model._hinges.columns))
        return shares(X, codes)

    def _restore(self, state: dict[str, Any]) -> None:
        # Earlier versions had linear members alone, with a basis for a form.
        former = {**FORMER_PARAMETERS, "basis_": "form_"}
        if "basis" in state:
            state = {former.get(name, name): part for name, part in state.items()}
            state["form"] = FORMER_FORMS.get(state["form"], state["form"])
        super()._restore({"_nonlinear": None, **state})
        found: Any = self._nonlinear
        hinges: Any = vars(self).get("_hinges")
        if found is not None and not (
            belongs(found, FittedStack)
            and belongs(hinges, Hinges)
            and found.fits(self._linear, len(hinges.columns))
        ):
            raise ModelFileError("the trees of the model do not fit each other.")

    def _feature_names(self) -> list[str]:
        width = self._linear.weights.directions.shape[0] - len(self._hinges.columns)
        names = names_of_features(vars(self).get("feature_names_in_"), width, self.task_column)
        return names + self._hinges.names(names)


@takes_former("basis", FORMER_FORMS)
@documented
@dataclass(eq=False, repr=False)
class MultitaskRegressor(IntervalMixin, MultitaskModel):
    r"""One model of all tasks, with defaults that need no tuning.

    A fixed library of members is fitted: hierarchical models of every structure and BiFactor
    models. They are combined by weights that are not negative
    and suit rows best that the members did not see. The result is one linear model for each task;
    by ``form``, with hinges of the columns and boosted trees above it where they help. Columns of a
    two-dimensional ``y`` may be of any units.

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

    _: KW_ONLY
    loss: Annotated[
        str,
        one_of("auto", "squared", "log"),
        Doc(
            '"log" fits the logarithms of positive targets and predicts their means: ``coef_`` is '
            'then of logarithms, and predictions and intervals are positive. "auto" tries it '
            "where targets are positive and skewed, and takes what has the lower squared error on "
            "held-out rows."
        ),
    ] = "auto"

    @property
    def _link(self) -> Link:
        return Log() if self.loss_ == "log" else Identity()

    def _takes_logarithms(self, data: Observations, losses: Callable[[bool], Any]) -> bool:
        # One number per observation.
        y, weights = to_numpy(data.y), to_numpy(data.weights)
        possible = not data.multi_output and float(y.min()) > 0.0
        if self.loss == "log" and not possible:
            raise ValueError(
                'loss="log" is for one column of positive targets, but y '
                + ("has several columns" if data.multi_output else "has values of zero or less")
                + '; use loss="squared".'
            )
        if self.loss != "auto" or not possible or data.on_device:
            return self.loss == "log"
        gap = (y - np.average(y, weights=weights)) / (y.std() or 1.0)
        if float(np.average(gap**3, weights=weights)) <= MIN_SKEWNESS:
            return False
        (plain, counted), (of_logs, _) = losses(False), losses(True)
        if len(plain) != len(of_logs):
            return False  # The user would not wait for the comparison.
        gain, error = mean_and_se(plain - of_logs, counted)
        return gain > LOG_GAIN_SE * error

    def _keep(self, stack: Stack, data: Observations, *more: Any) -> None:
        held, units = stack.held, stack.rows.units
        self.loss_ = "log" if units.log else "squared"
        self._log_correction = log_correction(stack) if units.log else 0.0
        super()._keep(stack, data, -self._log_correction)
        # What tasks say of their rows, against what would be said of a task never seen.
        known, new = data.codes, np.full_like(data.codes, -1)
        gap = self._observation_scores(data, known) - self._observation_scores(data, new)
        gap = gap / asarray_like(units.scale[known], gap, gap.dtype)
        between = weighted_mean(gap**2, data.weights)
        errors, weights = held.y - stack.score, row_counts(held.weights)
        found = ErrorModel.of(errors, weights, held.task, data.n_tasks, between)
        self._residuals = found.in_units(np.append(units.scale, units.scale.mean()))

    def _adapted(self, data: Observations, columns: OutputColumns, *, residual: bool) -> Self:
        from .adapted_stack import grown_stack, held_out_errors

        model, units = grown_stack(self, data, columns, residual=residual)
        found = held_out_errors(self, data, units, residual=residual)
        rows = np.bincount(data.codes, row_counts(to_numpy(data.weights)))
        scales = self._target_scale, units.scale
        model._residuals = self._residuals.joined(*found, rows / (data.n_features + 1), scales)
        return model

    def _deviations(self, X: Any, codes: np.ndarray | None) -> np.ndarray:
        return _by_row(self._residuals.deviations, X, codes)

    def _bounds(
        self, X: Any, codes: np.ndarray | None, level: float
    ) -> tuple[np.ndarray, np.ndarray]:
        low, high = (end - self._log_correction for end in self._residuals.bounds(level))
        return _by_row(low, X, codes), _by_row(high, X, codes)

    def _held_out_loss(self, data: Observations, unit: float) -> float:
        codes = self._linear.codes(data.tasks)[data.codes]
        guess = self._link.mean(self._observation_scores(data, codes))
        return weighted_mean(self._loss().held_out(data.y, guess, unit), data.weights)

    def _restore(self, state: dict[str, Any]) -> None:
        # Earlier versions had no logarithms.
        super()._restore({"loss_": "squared", "_log_correction": 0.0, **state})


def log_correction(stack: Stack) -> float:
    """Logarithm of the factor that makes means of exponentials those of held-out targets."""
    held, score = stack.held, stack.score
    top = max(float(held.y.max()), float(score.max()))
    means = [weighted_mean(np.exp(part - top), held.weights) for part in (held.y, score)]
    return float(np.log(means[0] / means[1]))


def _by_row(each: np.ndarray, X: Any, codes: np.ndarray | None) -> np.ndarray:
    """What each task has, and last a new one, for every row, beside the rows."""
    shown = each[codes] if codes is not None else np.tile(each[:-1], (X.shape[0], 1))
    return asarray_like(shown, X, X.dtype) if on_device(X) else shown


@takes_former("basis", FORMER_FORMS)
@documented
@dataclass(eq=False, repr=False)
class MultitaskClassifier(ClassifierOutputs, MultitaskModel):
    r"""One classifier of all tasks, with defaults that need no tuning.

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
