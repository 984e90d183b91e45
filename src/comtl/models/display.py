"""What a fitted model shows: tables with names, a page to read, a line below its parameters."""

from __future__ import annotations

import copy
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..arrays import device_name, on_device, to_numpy
from ..linear import RowSparse
from ..phrases import count_noun

if TYPE_CHECKING:
    from .task_model import TaskModel


def names_of_features(
    given: np.ndarray | None, width: int, task_column: str | int | None
) -> list[str]:
    """Names of the columns of X without the one that holds the task; x0, x1, ... without names."""
    extra = 0 if task_column is None else 1
    names = [f"x{i}" for i in range(width + extra)] if given is None else [str(n) for n in given]
    if task_column is not None:
        del names[names.index(task_column) if isinstance(task_column, str) else int(task_column)]
    return names


def import_pandas(wanted_by: str) -> Any:
    """Return the module pandas, or say how to get it."""
    try:
        import pandas
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f'{wanted_by} needs pandas: pip install "comtl[report]".', name="pandas"
        ) from missing
    return pandas


def coef_frame(self: TaskModel) -> Any:
    """Return the weights as a pandas frame, with the names of tasks and features.

    Returns
    -------
    pandas.DataFrame
        A row for each task and a column for each feature; beyond two classes a row for each
        pair of a task and a class that it has seen.

    Examples
    --------
    >>> import pandas as pd
    >>> from comtl import HierarchicalRegressor
    >>> X = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0] * 2, "school": ["a"] * 4 + ["b"] * 4})
    >>> model = HierarchicalRegressor(task_column="school").fit(X, 2.0 * X["age"])
    >>> model.coef_frame().round(2)
            age
    school
    a       2.0
    b       2.0
    """
    check_is_fitted(self)
    pandas = import_pandas("coef_frame")
    index = pandas.Index(self.tasks_, name=_task_title(self))
    linear, columns = self._linear, self._linear.columns
    if columns.index is not None:
        assert linear.classes is not None
        pairs = [linear.tasks[columns.task], linear.classes[columns.label]]
        index = pandas.MultiIndex.from_arrays(pairs, names=[_task_title(self), "class"])
    weights = to_numpy(linear.weights.coef)
    return pandas.DataFrame(weights, index=index, columns=self._feature_names())


def task_frame(self: TaskModel) -> Any:
    """Return what the model knows of each task as a pandas frame.

    Returns
    -------
    pandas.DataFrame
        A row for each task, with its cluster and its intercept; beyond two classes with an
        intercept for each class.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import HierarchicalRegressor
    >>> X, task = np.arange(8.0)[:, None] % 4, np.repeat(["a", "b"], 4)
    >>> model = HierarchicalRegressor().fit(X, X[:, 0] + 5.0 * (task == "b"), task=task)
    >>> model.task_frame().round(1)
          cluster  intercept
    task
    a           0        0.0
    b           0        5.0
    """
    check_is_fitted(self)
    pandas = import_pandas("task_frame")
    columns: dict[str, np.ndarray] = {"cluster": self.task_clusters_}
    if self._linear.columns.index is None:
        columns["intercept"] = to_numpy(self.intercept_)
    else:
        assert self._linear.classes is not None
        intercepts = to_numpy(self.intercept_)
        for name, values in zip(self._linear.classes.tolist(), intercepts.T, strict=True):
            columns[f"intercept of {name}"] = values
    return pandas.DataFrame(columns, index=pandas.Index(self.tasks_, name=_task_title(self)))


def report(
    self: TaskModel,
    path: str | Path,
    X: Any = None,
    y: Any = None,
    task: Any = None,
    sample_weight: Any = None,
    title: str | None = None,
) -> Path:
    """Write a page that shows the model, and with data what it is worth.

    Parameters
    ----------
    path : str or Path
        Where to write the page: one HTML file that needs no other.
    X, y, task, sample_weight
        Rows as in fit. With them copies of the model and of reference models are fitted on
        folds, and compared on the rest; see :func:`comtl.evaluation.compare`.
    title : str, optional
        Heading of the page.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from comtl import HierarchicalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(40, 2)), np.repeat(["a", "b"], 20)
    >>> model = HierarchicalRegressor().fit(X, X[:, 0], task=task)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.report(f"{folder}/report.html").name
    'report.html'
    """
    # Here, since the report builds on the models.
    from ..show.page import report_of

    if on_device(X):
        raise TypeError(
            f"report compares models on the host, but X lies in {device_name(X)}; pass arrays of "
            "NumPy, or no rows at all for a page of the model alone."
        )
    return report_of(self.to_numpy(), path, (X, y, task, sample_weight), title)


def summary(model: TaskModel) -> str:
    """Size and outcome of a fit, in one line."""
    parts = [
        count_noun(len(model.tasks_), "task"),
        count_noun(len(model._feature_names()), "feature"),
    ]
    if model._linear.classes is not None:
        parts.append(count_noun(len(model._linear.classes), "class", "classes"))
    parts.append(count_noun(len(np.unique(model.task_clusters_)), "cluster") + " of tasks")
    return ", ".join(parts) + '. model.report("report.html") shows more.'


def _task_title(model: TaskModel) -> str:
    return model.task_column if isinstance(model.task_column, str) else "task"


def numpy_copy(value: Any) -> Any:
    """Copy of a value with every array on a device, however deep, copied to NumPy."""
    if on_device(value):
        return to_numpy(value)
    if isinstance(value, RowSparse):
        return value.to_scipy()
    if type(value) in (list, tuple):
        return type(value)(map(numpy_copy, value))
    if type(value) is dict:
        return {name: numpy_copy(part) for name, part in value.items()}
    if isinstance(value, BaseEstimator) or (is_dataclass(value) and not isinstance(value, type)):
        value = copy.copy(value)
        vars(value).update(numpy_copy(vars(value)))
    return value
