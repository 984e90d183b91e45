"""What all models share in fitting: reading, then learning, then what was learned from."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Self

from sklearn.callback import CallbackSupportMixin, with_callbacks

from ..engine.problem import OutputColumns
from ..engine.progress import SILENT, FitProgress
from ..rows.fit_input import FitInput
from ..rows.frames import is_partitioned
from ..rows.observations import Observations
from .fitted import FittedTasks


def rows_of(X: Any, y: Any, task: Any, sample_weight: Any) -> FitInput:
    """What a user hands over for a fit: rows in memory, or in partitions."""
    if not is_partitioned(X, y, task, sample_weight):
        return FitInput(X, y, task, sample_weight)
    from ..distributed.partitioned_input import PartitionedInput

    return PartitionedInput(X, y, task, sample_weight)


def by_partition(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of rows take Dask collections: it then returns Dask arrays, not yet computed."""
    signature = inspect.signature(method)

    @wraps(method)
    def either(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        arguments = signature.bind(self, X, *args, **kwargs).arguments
        task = arguments.pop("task", None)
        if not is_partitioned(X, task):
            return method(self, X, *args, **kwargs)
        from ..distributed.predicting import call_by_partition

        del arguments["self"], arguments["X"]
        return call_by_partition(partial(_call, method.__name__, arguments), self, X, task)

    return either


def _call(name: str, options: dict[str, Any], model: Any, X: Any, task: Any) -> Any:
    return getattr(model, name)(X, task=task, **options)


class TaskModel(CallbackSupportMixin, FittedTasks):
    """Abstract model of tasks that can be fitted."""

    __metadata_request__fit = {"task": True, "sample_weight": True}

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse bad parameters before any work."""

    @abstractmethod
    def _fit(self, rows: FitInput, watch: FitProgress) -> None:
        """Learn from rows, and keep what came of it."""

    def _fit_quietly(self, rows: FitInput) -> Self:
        """Fit as a part of a longer computation: an interruption is not held back."""
        self._check_parameters()
        self._fit(rows, SILENT)
        return self

    def _read_cells(self, schema: Any, *cells: Any) -> Observations:
        return rows_of(*cells).read_more(self, schema)

    def _describe(self, data: Observations, columns: OutputColumns) -> None:
        """Keep what the fit was told."""
        self.tasks_ = data.tasks
        self._columns = columns
        self._multi_output = data.multi_output

    @with_callbacks
    def fit(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> Self:
        """Fit all tasks together.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows of all tasks; holds the task too where ``task_column`` names it.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Targets; two dimensions: one task a column on shared rows, NaN for missing.
        task : array-like of shape (n_samples,), optional
            Task of each row, where it is no column of X.
        sample_weight : array-like of shape (n_samples,) or that of y, optional
            Weights; a weight of 2 counts as the row given twice, so weights that sum to one
            stand for a single row.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        told = {"X": X, "y": y, "metadata": {"task": task, "sample_weight": sample_weight}}
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, **told)
        self._fit(rows_of(X, y, task, sample_weight), FitProgress(self, X, y))
        attributes = partial(dict[str, Any], vars(self))
        context.call_on_fit_task_end(estimator=self, **told, reconstruction_attributes=attributes)
        return self


class CellModel(TaskModel):
    """Abstract model that learns from the observations of all tasks at once."""

    @abstractmethod
    def _learn(
        self, data: Observations, columns: OutputColumns, watch: FitProgress = SILENT
    ) -> None:
        """Learn the columns of weights from the observations, and keep what came of it."""

    def _fit(self, rows: FitInput, watch: FitProgress) -> None:
        data = rows.read(self)
        self._learn(data, OutputColumns.of(data), watch)
