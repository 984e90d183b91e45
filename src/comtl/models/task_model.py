"""What all models of several tasks share: fitting, reading of rows, weights, files, frames."""

import html
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, device_name, namespace, on_device, take_pairs
from ..engine.progress import SILENT, FitProgress, progress_shown
from ..factors import padded
from ..linear import ColumnWeights, LinearTasks, OutputColumns, Scaling
from ..losses import Loss
from ..parameters import REMOVED, Doc, check_parameters, one_of
from ..phrases import warn_caller
from ..rows.fit_input import FitInput, rows_of
from ..rows.observations import Observations
from ..rows.reading import check_finite, read_rows
from ..saving.registry import ModelFileError, belongs, field_types, saved
from .display import coef_frame, names_of_features, numpy_copy, report, summary, task_frame

if TYPE_CHECKING:
    Method = TypeVar("Method")

    def with_callbacks(method: Method) -> Method:
        """Keep the type of ``fit``, which scikit-learn's untyped decorator would lose."""
        return method
else:
    from sklearn.callback import with_callbacks

DERIVED = frozenset({"_cluster_cache", "shared_coef_", "_skl_callbacks"})
"""What :meth:`TaskModel._set_linear` makes of the weights, and what belongs to the session."""
STORED = {"tasks": "tasks_", "classes": "classes_", "columns": "_columns", "weights": "_linear"}
"""Names in files of the parts of :class:`LinearTasks`."""


@contextmanager
def missing_values_explained() -> Iterator[None]:
    """Say what to do about NaN in X; scikit-learn names estimators of its own."""
    try:
        yield
    except ValueError as error:
        if not str(error).startswith("Input X contains NaN"):
            raise
        partition = str(error).partition("Input X")[0]  # Of Dask, or nothing.
        raise ValueError(
            f"{partition}Input X contains NaN: impute missing values first (sklearn.impute), or "
            "use comtl.tables.fit_table, which imputes and marks them."
        ) from None


@dataclass(eq=False, repr=False)
class TaskModel(CallbackSupportMixin, BaseEstimator, ABC):
    """Abstract model with linear weights for each task.

    Attributes
    ----------
    tasks_ : ndarray of shape (n_tasks,)
        Task labels, in the order of the rows of ``coef_``.
    coef_ : ndarray of shape (n_tasks, n_features)
        Weights of every task, the task column left out; beyond two classes of shape (n_tasks,
        n_classes, n_features).
    intercept_ : ndarray of shape (n_tasks,)
        Intercepts; beyond two classes of shape (n_tasks, n_classes).
    shared_coef_ : ndarray of shape (n_features,)
        The part that all tasks have in common: the mean of the weights in hierarchical models and
        stacks, zero in models that have no such part.
    feature_clusters_, task_clusters_ : ndarrays
        Clusters of features and tasks, from the singular vectors of the weights unless the model
        learns clusters.
    n_features_in_ : int
        Columns of X seen in fit, the task column counted.
    """

    __metadata_request__fit = {"task": True, "sample_weight": True}
    __metadata_request__predict = {"task": True}
    __metadata_request__score = {"task": True, "sample_weight": True}

    _: KW_ONLY
    task_column: Annotated[
        str | int | None, Doc("Name or number of the column of X that holds the task.")
    ] = None
    unseen_task: Annotated[
        str,
        one_of("mean", "raise"),
        Doc(
            "What predict does with a task that fit never saw: use the mean of all tasks, or raise."
        ),
    ] = "mean"
    verbose: Annotated[
        int, Doc('Whether to show the progress of the fit, through the logger "comtl".')
    ] = 0

    _classification: ClassVar[bool]  # whether y holds class labels
    _algorithm_class: ClassVar[type[Any] | None] = None
    """How a model of factors is fitted; None: the model does it."""
    _gathers_new_rows: ClassVar[bool] = False
    """Whether rows of new tasks are brought together from their partitions."""
    _on_devices: ClassVar[bool] = True  # whether it works on arrays of other libraries than NumPy
    _levels_tell: ClassVar[bool] = False
    """Whether clusters of tasks count what tasks differ by at the mean of the features."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        saved(cls)

    @abstractmethod
    def _binary(self, data: Observations, columns: OutputColumns) -> Observations:
        """Observations as the engine takes them."""

    @abstractmethod
    def _held_out_loss(self, data: Observations, unit: float) -> float:
        """Weighted mean loss of observations that fit did not see, targets measured in ``unit``."""

    def _adapted(self, data: Observations, columns: OutputColumns, *, residual: bool) -> Self:
        """Copy of the model with the columns of further tasks."""
        adapted: Self = self._algorithm.adapted(data, columns, residual=residual)
        return adapted

    @property
    def tasks_(self) -> np.ndarray:
        """Task labels, in the order of the rows of ``coef_``."""
        return self._linear.tasks

    @property
    def _algorithm(self) -> Any:
        return None if self._algorithm_class is None else self._algorithm_class(self)

    def _loss(self) -> Loss:
        """Loss of an observation."""
        return self._algorithm.loss()

    def _clusters(self) -> tuple[int | None, int | None]:
        """How many feature and task clusters to report; None leaves it to the weights."""
        return (None, None) if self._algorithm is None else self._algorithm.clusters()

    def _check_parameters(self) -> None:
        """Refuse bad parameters before any work."""
        check_parameters(self)
        self._loss()

    @with_callbacks
    def fit(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> Self:
        """Fit all tasks together.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows of all tasks; holds the task too where ``task_column`` names it.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Targets; two dimensions without tasks: one task a column, NaN for missing.
        task : array-like of shape (n_samples,), optional
            Task of each row, where it is no column of X; without any, all rows are one task.
        sample_weight : array-like of shape (n_samples,) or that of y, optional
            Weights; a weight of 2 counts as the row given twice, so weights that sum to one
            stand for a single row.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        passed = {"X": X, "y": y, "metadata": {"task": task, "sample_weight": sample_weight}}
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, **passed)
        with progress_shown(self.verbose), missing_values_explained():
            self._fit(rows_of(self, X, y, task, sample_weight), FitProgress(self, X, y))
        if task is None and self.task_column is None and not self._multi_output:
            warn_caller(
                "fit was given no tasks and takes all rows for one task. Name the task of each row "
                "by task= or task_column, or give all the same one.",
                UserWarning,
            )
        learned = partial(dict[str, Any], vars(self))
        context.call_on_fit_task_end(estimator=self, **passed, reconstruction_attributes=learned)
        return self

    def _fit_quietly(self, rows: FitInput) -> Self:
        """Fit as a part of a longer computation: an interruption is not held back."""
        self._check_parameters()
        with progress_shown(self.verbose), missing_values_explained():
            self._fit(rows, SILENT)
        return self

    def _fit(self, rows: FitInput, watch: FitProgress) -> None:
        """Learn from rows, and keep what came of it."""
        data = rows.read(self)
        self._learn(data, OutputColumns.of(data), watch)

    def _learn(
        self, data: Observations, columns: OutputColumns, watch: FitProgress = SILENT
    ) -> None:
        """Learn the columns of weights from the observations, and keep what came of it."""
        self._algorithm.learn(data, columns, watch)

    def _keep_weights(
        self,
        data: Observations,
        columns: OutputColumns,
        weights: ColumnWeights,
        units: Scaling,
        widths: tuple[int, int] | None = None,
        seed: int = 0,
    ) -> None:
        """Keep the weights of all columns, and the tasks and classes that they belong to."""
        rank = weights.directions.shape[1]
        self._widths = (rank, rank) if widths is None else widths
        self._multi_output, self._units, self._seed = data.multi_output, units, seed
        self._set_linear(LinearTasks(data.tasks, data.classes, columns, weights))

    def _set_linear(self, linear: LinearTasks) -> None:
        self._linear = linear
        self.shared_coef_ = linear.weights.shared
        self._cluster_cache: dict[str, np.ndarray] = {}

    @property
    def coef_(self) -> Array:
        """Weights: tasks × features, or tasks × classes × features beyond two classes."""
        return self._linear.coef

    @property
    def task_factor_(self) -> Array:
        """Factor of the tasks: one row a column of weights, zeros beyond the rank."""
        return padded(self._linear.weights.task_factor, self._widths[1])

    @property
    def intercept_(self) -> Array:
        """Intercepts: one a task, or tasks × classes beyond two classes."""
        return self._linear.intercepts

    @property
    def feature_clusters_(self) -> np.ndarray:
        """Cluster of each feature, from the singular vectors of the weights."""
        return self._cached_clusters("features")

    @property
    def task_clusters_(self) -> np.ndarray:
        """Cluster of each task, from the singular vectors of the weights.

        Of hierarchical models and stacks by their levels too, but for columns of a two-dimensional
        y, whose levels may be of any units.
        """
        return self._cached_clusters("tasks")

    def _cached_clusters(self, side: str) -> np.ndarray:
        if side not in self._cluster_cache:
            from ..clusters import clusters_of

            units = self._units.shift, self._units.inverse_scale
            features, tasks = clusters_of(
                self._linear,
                units,
                self._clusters(),
                with_levels=self._levels_tell and not self._multi_output,
                seed=self._seed,
            )
            self._cluster_cache.update(features=features, tasks=tasks)
        return self._cluster_cache[side]

    def _observation_scores(self, data: Observations, codes: np.ndarray) -> Array:
        """Score of each observation of other data for a column of the extended weights."""
        extended = self._linear.extended
        if data.rows is None:
            return extended.scores(data.X, codes)
        return take_pairs(extended.table(data.X), data.rows, codes)

    def _scores(self, X: Any, codes: np.ndarray | None) -> Array:
        """Scores of rows for the columns that ``codes`` name, or for all tasks without them."""
        scores = self._linear.scores(X, codes)
        xp = namespace(scores)
        if not bool(xp.all(xp.isfinite(scores))):
            with missing_values_explained():
                check_finite(X, self)
        return scores

    def _check_device(self, X: Any) -> None:
        """Refuse rows of another library or device than those of the fit."""
        mine, given = device_name(self._linear.weights.shared), device_name(X)
        if mine != given:
            raise TypeError(
                f"X is an array of {given}, but the model was fitted on {mine}. Pass rows that lie "
                "there too, or use model.to_numpy(), which predicts for rows of NumPy."
            )

    def _read_codes(self, X: Any, task: Any) -> tuple[Any, np.ndarray | None]:
        """Validated rows and the task code of each; None where every task is asked for."""
        check_is_fitted(self)
        self._check_device(X)
        X, labels = read_rows(self, X, task)
        if labels is None:
            if self._multi_output:
                return X, None
            if len(self.tasks_) > 1:
                raise ValueError(
                    "This model knows several tasks: pass task= with one label a row (in pipelines "
                    "and searches after sklearn.set_config(enable_metadata_routing=True)), or fit "
                    "it with task_column so that X holds the task."
                )
            return X, np.zeros(X.shape[0], dtype=np.intp)
        remedy = "Adapt the model to them with adapt()"
        return X, self._linear.codes(labels, unseen_task=self.unseen_task, remedy=remedy)

    def _feature_names(self) -> list[str]:
        """Names of the columns of ``coef_``."""
        width = self._linear.weights.directions.shape[0]
        return names_of_features(vars(self).get("feature_names_in_"), width, self.task_column)

    coef_frame = coef_frame
    task_frame = task_frame
    report = report
    _summary = summary

    def _html_repr(self) -> str:
        """Scikit-learn's diagram, and what was fitted in one line below it."""
        page = estimator_html_repr(self)
        fitted = self.__sklearn_is_fitted__()
        return page + f"<p>{html.escape(self._summary())}</p>" if fitted else page

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_linear" in vars(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`comtl.load` reads.

        The file holds arrays and JSON, no pickle; a crash leaves the old file or the new one.

        Parameters
        ----------
        path : path-like
            The file, by custom ``*.comtl``.
        """
        from ..saving import save

        save(self.to_numpy(), path)

    def to_numpy(self) -> Self:
        """Return a copy of the model with all that it learned held by NumPy.

        For a model that was fitted on tensors of torch or arrays of CuPy. Nothing but what was
        learned is copied from the device. The copy predicts for rows of NumPy.

        Returns
        -------
        estimator
            The copy.

        Examples
        --------
        >>> import numpy as np
        >>> from comtl import BiFactorRegressor
        >>> rng = np.random.default_rng(0)
        >>> X, task = rng.normal(size=(40, 2)), np.repeat([0, 1], 20)
        >>> model = BiFactorRegressor(1).fit(X, X[:, 0], task=task)
        >>> type(model.to_numpy().coef_)
        <class 'numpy.ndarray'>
        """
        check_is_fitted(self)
        return numpy_copy(self) if on_device(self._linear.weights.shared) else self

    def to_onnx(self) -> Any:
        """Return the prediction as an ONNX model: of linear models, and of stacks with trees."""
        # Not above: the export knows the kinds of models, which are built on this one.
        from ..show.onnx_graph import to_onnx

        return to_onnx(self.to_numpy())

    def _saved_state(self) -> dict[str, Any]:
        """What a file keeps: parameters, and all that was learned but what follows from it."""
        state = {name: value for name, value in vars(self).items() if name not in DERIVED}
        if "_linear" in state:
            linear = state.pop("_linear")
            state.update({name: getattr(linear, part) for part, name in STORED.items()})
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        """Take what a file kept, as far as it belongs together."""
        state = {name: value for name, value in state.items() if name not in REMOVED}
        parts = {part: state.pop(name, None) for part, name in STORED.items()}
        self._take_state(state, {"_units": Scaling})
        types = field_types(LinearTasks)
        linear = LinearTasks(**parts)
        if not all(belongs(parts[name], kind) for name, kind in types.items()) or (
            not linear.consistent
        ):
            raise ModelFileError("the weights of the model do not fit each other.")
        self._set_linear(linear)

    def _take_state(self, state: dict[str, Any], needed: dict[str, type]) -> None:
        defaults = inspect.signature(type(self).__init__).parameters
        parameters = {name: defaults[name].default for name in self._get_param_names()}
        allowed = all(
            name.isidentifier() and not name.startswith("__") and name not in dir(type(self))
            for name in state.keys() - parameters.keys()
        )
        if not allowed or not all(belongs(state.get(name), kind) for name, kind in needed.items()):
            raise ModelFileError(f"the parts of a {type(self).__name__} do not belong to it.")
        for name, value in {**parameters, **state}.items():
            setattr(self, name, value)
