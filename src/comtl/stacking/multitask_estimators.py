"""The models to reach for first: no choice to make."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import expit

from ..arrays import asarray_like, on_device, weighted_mean
from ..hierarchical.intervals_mixin import IntervalMixin
from ..losses import Logistic, Loss, Squared
from ..models.fields import Checkpoint, TaskColumn, UnseenTask, Verbose
from ..models.outputs import ClassifierOutputs
from ..parameters import Doc, documented, former_name, one_of
from ..rows.observations import Observations
from ..saving import ModelFileError
from ..saving.registry import belongs
from .blending import row_counts
from .intervals import ErrorModel
from .multitask import MultitaskModel
from .stack import FittedStack, Stack
from .thresholds import METRICS, best_thresholds

Basis = Annotated[
    str | None,
    one_of(None, "hinges"),
    Doc(
        '"hinges" also tries columns of ten values or more with hinges at four quantiles, and '
        "keeps them where they are better on rows that the members did not see, by more than "
        "chance explains. ``coef_`` and ``feature_clusters_`` then hold the columns of X first and "
        "the hinges after them; ``coef_frame()`` names them."
    ),
]
CV = Annotated[
    Any,
    Doc(
        "Folds on which the members are compared. An int splits every task (and every class in it) "
        "into that many parts; the folds depend on nothing else.",
        "int, splitter or list of splits",
    ),
]
Jobs = Annotated[int | None, Doc("Members fitted at the same time, in processes of joblib.")]


@documented
@dataclass(eq=False, repr=False)
class MultitaskRegressor(IntervalMixin, MultitaskModel):
    r"""The best linear model of all tasks, without a parameter to choose.

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

    _: KW_ONLY
    basis: Basis = None
    cv: CV = 5
    task_column: TaskColumn = None
    unseen_task: UnseenTask = "mean"
    n_jobs: Jobs = None
    checkpoint: Checkpoint = None
    verbose: Verbose = 0

    def _loss(self) -> Loss:
        return Squared()

    def _keep(
        self,
        stack: Stack,
        fitted: FittedStack,
        data: Observations,
        thresholds: np.ndarray | float = 0.0,
    ) -> None:
        super()._keep(stack, fitted, data, thresholds)
        held, units = stack.held, stack.rows.units
        # What tasks say of their rows, against what would be said of a task never seen.
        gap = self._cell_scores(data, data.codes) - self._cell_scores(
            data, np.full_like(data.codes, -1)
        )
        gap = gap / asarray_like(units.scale[data.codes], gap, gap.dtype)
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
    r"""The best linear classifier of all tasks, without a parameter to choose.

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
    basis: Basis = None
    cv: CV = 5
    task_column: TaskColumn = None
    unseen_task: UnseenTask = "mean"
    n_jobs: Jobs = None
    checkpoint: Checkpoint = None
    verbose: Verbose = 0

    def _loss(self) -> Loss:
        return Logistic()

    def _keep(
        self,
        stack: Stack,
        fitted: FittedStack,
        data: Observations,
        thresholds: np.ndarray | float = 0.0,
    ) -> None:
        self.thresholds_ = np.zeros(data.n_tasks)
        if self.threshold is not None:
            held, scores = stack.held, stack.score
            rows = scores, expit(scores), held.weights, held.task
            self.thresholds_ = thresholds = best_thresholds(self.threshold, *rows, data.n_tasks)
        super()._keep(stack, fitted, data, thresholds)

    def _thresholds_of(self, codes: np.ndarray | None) -> np.ndarray:
        # A task never seen has the mean intercept, and with it the mean threshold.
        return (
            self.thresholds_
            if codes is None
            else np.append(self.thresholds_, self.thresholds_.mean())[codes]
        )

    def _restore(self, state: dict[str, Any]) -> None:
        # What files of earlier versions call them.
        state = {"thresholds_" if name == "cuts_" else name: part for name, part in state.items()}
        super()._restore(state)
        cuts: Any = state.get("thresholds_")
        shape = self.tasks_.shape
        if not belongs(cuts, np.ndarray) or cuts.shape != shape or cuts.dtype.kind != "f":
            raise ModelFileError("the thresholds of the model do not fit its tasks.")

    def _check_data(self, data: Observations) -> None:
        if self.threshold is not None and data.classes is not None and len(data.classes) > 2:
            raise ValueError(
                f"threshold={self.threshold!r} is a threshold between two classes, but y has "
                f"{len(data.classes)}; leave threshold=None."
            )
