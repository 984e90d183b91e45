"""What users hand over, validated and grouped by task; the only place that validates input."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import assert_all_finite, check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from ..arrays import namespace, on_device, take, take_pairs, to_numpy
from ..phrases import warn_caller
from .device_reading import check_device_finite, device_rows, device_target, device_weights
from .frames import (
    column_names,
    float_types,
    is_frame,
    read_classes,
    read_numbers,
    read_row_tasks,
    read_tasks,
    read_weights,
    refuse_text,
    split_column,
)
from .observations import Matrix, Observations


def read_training(
    estimator: Any,
    X: Any,
    y: Any,
    task: Any = None,
    sample_weight: Any = None,
    *,
    classification: bool = False,
    classes: np.ndarray | None = None,
    partial: bool = False,
) -> Observations:
    """Validate what `fit` was given, group it by task and note the columns in ``estimator``."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )
    X, labels = _read_matrix(estimator, X, task, reset=True)
    check_finite(X, estimator)
    if classification:
        target, missing = read_classes(to_numpy(y))
    elif on_device(X):
        target, missing = device_target(y, X)
    else:
        target, missing = read_numbers(to_numpy(y), X.dtype)
    check_consistent_length(X, target)
    if on_device(X):
        weights = device_weights(sample_weight, target.shape, X)
    else:
        weights = read_weights(to_numpy(sample_weight), target.shape, X.dtype)
    if target.ndim == 1:
        data = _from_rows(X, target, weights, labels)
    elif labels is None:
        names = read_tasks(column_names(y if is_frame(y) else target), "the column names of y")
        data = _from_columns(X, target, weights, missing, names, partial=partial)
    else:
        raise ValueError(
            "y is two-dimensional, so each of its columns is a task, and task= or task_column "
            "cannot be given as well. Leave them out, or pass a one-dimensional y."
        )
    return _encode_classes(data, classes, partial) if classification else data


def read_rows(estimator: Any, X: Any, task: Any = None) -> tuple[Matrix, np.ndarray | None]:
    """Validated features and task labels for `predict`; `check_finite` is left to the caller."""
    return _read_matrix(estimator, X, task, reset=False)


def encode_tasks(labels: Any, tasks: Any) -> np.ndarray:
    """Index of each label among the tasks, -1 for one that is not; 1 and 1.0 are the same label."""
    labels, tasks = read_tasks(labels), read_tasks(tasks, "tasks")
    if not tasks.size or (labels.dtype.kind == "U") != (tasks.dtype.kind == "U"):
        return np.full(len(labels), -1, dtype=np.intp)
    if labels.dtype.kind == tasks.dtype.kind == "i":
        low, high = int(tasks.min()), int(tasks.max())
        if high - low < 4 * (len(tasks) + len(labels)):
            table = np.full(high - low + 1, -1)
            table[tasks - low] = np.arange(len(tasks))
            inside = (labels >= low) & (labels <= high)
            return np.where(inside, table[np.where(inside, labels - low, 0)], -1)
    order = np.argsort(tasks)
    places = np.searchsorted(tasks, labels, sorter=order)
    codes = order[np.minimum(places, len(tasks) - 1)]
    return np.where(tasks[codes] == labels, codes, -1)


def _read_matrix(
    estimator: Any, X: Any, task: Any, *, reset: bool
) -> tuple[Matrix, np.ndarray | None]:
    column = estimator.task_column
    if column is not None and task is not None:
        raise ValueError(
            f"The task is given twice: by task_column={column!r} and by task=. Give only one."
        )
    if on_device(X):
        return device_rows(estimator, X, task, reset=reset)
    task = to_numpy(task)
    features, labels, name = X, task, "task"
    if column is not None:
        labels, features = split_column(X, column)
        name = f"The task column {column!r} of X"
    refuse_text(features, "Encode them as numbers, or name the one with the tasks as task_column.")
    features = check_array(
        features,
        accept_sparse="csr",
        dtype=float_types(features),
        ensure_all_finite=False,
        input_name="X",
        estimator=estimator,
    )
    validate_data(estimator, X, skip_check_array=True, reset=reset)
    if sparse.issparse(features):
        features = sparse.csr_array(features)
    if labels is None:
        return features, None
    return features, read_row_tasks(labels, name, features.shape[0])


def check_finite(X: Any, estimator: Any) -> None:
    """Refuse NaN and infinity; where there are none, at the speed of BLAS on all its threads."""
    if on_device(X):
        check_device_finite(X)
        return
    values = (X.data if sparse.issparse(X) else X).ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(values @ values)
    if not finite:  # or too large to square, which sklearn tells apart
        assert_all_finite(X, input_name="X", estimator_name=type(estimator).__name__)


def _from_rows(
    X: Matrix, y: np.ndarray, weights: np.ndarray, labels: np.ndarray | None
) -> Observations:
    labels = np.zeros(y.shape[0], dtype=np.int64) if labels is None else labels
    kept = np.flatnonzero(to_numpy(weights))
    tasks, codes = np.unique(labels[kept], return_inverse=True)
    order = kept[np.argsort(codes, kind="stable")]
    if not np.array_equal(order, np.arange(y.shape[0])):  # else the caller's arrays serve uncopied
        X, y, weights = (take(part, order) for part in (X, y, weights))
    offsets = _offsets(np.bincount(codes, minlength=len(tasks)))
    return Observations(X, y, weights, offsets, tasks, rows=None, classes=None, multi_output=False)


def _from_columns(
    X: Matrix,
    y: np.ndarray,
    weights: np.ndarray,
    missing: np.ndarray,
    names: np.ndarray,
    *,
    partial: bool,
) -> Observations:
    unseen = names[missing.all(axis=0)]
    if unseen.size and not partial:
        raise ValueError(
            f"y has columns without any observed value: {unseen.tolist()}. Drop these columns."
        )
    xp = namespace(weights)
    weights = xp.broadcast_to(xp.reshape(weights, (y.shape[0], -1)), y.shape)
    observed = ~missing & to_numpy(weights != 0)
    counts = observed.sum(axis=0)
    codes, rows = np.nonzero(observed.T)
    return Observations(
        X=X,
        y=take_pairs(y, rows, codes),
        weights=take_pairs(weights, rows, codes),
        offsets=_offsets(counts[counts > 0]),
        tasks=names[counts > 0],
        rows=rows,
        classes=None,
        multi_output=True,
    )


def _offsets(counts: np.ndarray) -> np.ndarray:
    if not counts.size:
        raise ValueError("sample_weight is zero for every observed y; give some a weight above 0.")
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)


def _encode_classes(data: Observations, known: np.ndarray | None, partial: bool) -> Observations:
    classes, y = np.unique(data.y, return_inverse=True)
    if known is not None:
        fresh = classes[~np.isin(classes, known)]
        if fresh.size:
            raise ValueError(
                f"y holds classes that the model does not know: {fresh[:10].tolist()}. Fit a "
                "model with rows of all classes."
            )
        return replace(data, y=np.searchsorted(known, classes)[y], classes=known)
    if not partial:
        _check_several(classes)
    if data.multi_output and len(classes) > 2 and data.n_tasks == 1:
        warn_caller(
            "A column-vector y was passed when a 1d array was expected: with more than two "
            "classes it is read as one-dimensional. Pass y.ravel().",
            DataConversionWarning,
        )
        assert data.rows is not None
        data = replace(data, X=take(data.X, data.rows), rows=None, multi_output=False)
    if data.multi_output and not partial:
        check_classes(classes, multi_output=True)
    return replace(data, y=y, classes=classes)


def check_classes(classes: np.ndarray, *, multi_output: bool) -> None:
    """Refuse a single class, and more than two in a table of targets."""
    _check_several(classes)
    if multi_output and len(classes) > 2:
        raise ValueError(
            "A two-dimensional y must be binary: two classes over all its columns, got "
            f"{len(classes)}: {classes[:10].tolist()}. For more classes pass a one-dimensional y "
            "with the task of each row."
        )


def _check_several(classes: np.ndarray) -> None:
    if len(classes) == 1:
        raise ValueError(
            f"y holds only one class, {classes.tolist()[0]!r}; a classifier needs at least two "
            "(rows of weight zero do not count)."
        )
