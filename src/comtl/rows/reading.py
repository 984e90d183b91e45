"""What users hand over, validated and grouped by task; the only place that validates input."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ..arrays import Array, asarray_like, namespace, on_device, to_numpy
from ..phrases import some
from .device_reading import (
    check_device_finite,
    device_rows,
    device_target,
    refuse_empty,
    refuse_huge,
)
from .frames import (
    as_array,
    column_names,
    float_types,
    holds_dates,
    is_frame,
    is_series,
    split_column,
    text_columns,
    values_of,
)
from .observations import Matrix, Observations

_LARGEST_INT = np.iinfo(np.int64).max
_HOST_FLOATS = np.empty(0)
LEAST_WEIGHT, MOST_WEIGHT = 1e-30, 1e9
"""Rows that a row may count for: below it counts as none, beyond rounding hides the others."""
_ENCODE = "Encode them as numbers (dates, for example, as days since the first)"


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
    X, labels = read_rows(estimator, X, task, reset=True)
    check_finite(X, estimator)
    if classification:
        target, missing = read_classes(to_numpy(y))
    elif on_device(X) and on_device(y):
        target, missing = device_target(y, X)
    else:
        single = X.dtype == namespace(X).float32
        target, missing = read_numbers(to_numpy(y), np.float32 if single else np.float64)
        target = asarray_like(target, X)
    check_consistent_length(X, target)
    weights = read_weights(sample_weight, target.shape, X)
    if target.ndim == 1:
        data = Observations.of_rows(X, target, weights, labels)
    elif labels is None:
        names = read_tasks(column_names(y if is_frame(y) else target), "the column names of y")
        data = Observations.of_columns(X, target, weights, missing, names, partial=partial)
    else:
        raise ValueError(
            "y is two-dimensional, so each of its columns is a task, and task= or task_column "
            "cannot be given as well. Leave them out, or pass a one-dimensional y."
        )
    return data.with_classes(classes, partial=partial) if classification else data


def read_rows(
    estimator: Any, X: Any, task: Any = None, *, reset: bool = False
) -> tuple[Matrix, np.ndarray | None]:
    """Validated features and task labels; `check_finite` is left to the caller."""
    column = estimator.task_column
    if column is not None and task is not None:
        raise ValueError(
            f"The task is given twice: by task_column={column!r} and by task=. Give only one."
        )
    refuse_masked(X, "X")
    check_indices(X)
    features, labels = device_rows(estimator, X) if on_device(X) else X, task
    if column is not None:
        labels, features = split_column(features, column)
    if on_device(X):
        refuse_empty(features, X.shape)
    else:
        features = _listed(features)
        remedy = f"{_ENCODE}, or name the column with the tasks as task_column."
        refuse_text(features, remedy)
        try:
            features = check_array(
                features,
                accept_sparse="csr",
                dtype=float_types(features),
                ensure_all_finite=False,
                input_name="X",
                estimator=estimator,
            )
        except TypeError as error:
            if not is_frame(features):
                raise
            raise ValueError(f"X cannot be read as numbers: {error}. {remedy}") from error
        features = sparse.csr_array(features) if sparse.issparse(features) else features
    validate_data(estimator, X, skip_check_array=True, reset=reset)
    if labels is None:
        return features, None
    name = "task" if column is None else f"The task column {column!r} of X"
    labels = read_tasks(to_numpy(labels), name)
    if len(labels) != features.shape[0]:
        raise ValueError(
            f"task has {len(labels)} labels, but X has {features.shape[0]} rows; give one label "
            "for each row."
        )
    return features, labels


def refuse_text(X: Any, remedy: str, name: str = "X") -> None:
    """Raise if a column is not numeric, or anything is a date; ``remedy`` ends the message."""
    X = values_of(X)[0] if is_series(X) else X
    if not is_frame(X) and not (isinstance(X, np.ndarray) and X.dtype.kind in "OUmM"):
        return
    if not is_frame(X) and holds_dates(X):
        raise ValueError(f"{name} holds dates or durations, which are no numbers. {remedy}")
    if len(X.shape) == 2 and (wrong := text_columns(X)):
        raise ValueError(
            f"{name} has columns that are neither numeric nor boolean: {some(wrong, 10)}. {remedy}"
        )


def _listed(values: Any) -> Any:
    """Array of the type that NumPy finds for lists; others stay as they are."""
    return np.asarray(values) if isinstance(values, list | tuple) else values


def refuse_masked(values: Any, name: str) -> None:
    """Raise if entries of a masked array are missing."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries; fill them, or leave out their rows.")


def check_indices(X: Any, name: str = "X") -> None:
    """Refuse a sparse matrix with indices that lead outside, where compiled code would follow."""
    form = X.format if sparse.issparse(X) and X.ndim == 2 else None
    if form == "coo":
        size = len(X.data)
        fits = all(map(_within, (X.row, X.col), (size, size), X.shape))
    elif form in ("csr", "csc", "bsr"):
        shape = np.floor_divide(X.shape, X.blocksize if form == "bsr" else (1, 1)).tolist()
        major, minor = shape[::-1] if form == "csc" else shape
        fits = _within(X.indptr, major + 1, len(X.indices) + 1) and X.indptr[0] == 0
        fits = fits and len(X.indices) == len(X.data) and bool(np.all(np.diff(X.indptr) >= 0))
        fits = fits and _within(X.indices[: X.indptr[-1]], X.indptr[-1], minor)
    else:
        return
    if not fits:
        raise ValueError(
            f"{name} is a sparse matrix with row or column indices that do not fit its shape or "
            "its data; build it again, for example by scipy.sparse.coo_array."
        )


def _within(places: np.ndarray, size: int, end: int) -> bool:
    """Whether there are so many places, all from zero up to an end."""
    if places.shape != (size,) or places.dtype.kind not in "iu":
        return False
    # In one pass: without a sign, numbers below zero are the largest.
    return not size or int(places.view(f"u{places.itemsize}").max()) < end


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
        refuse_huge(values, "X")


def read_numbers(y: Any, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Read the targets of a regression and mark the missing ones, which only a 2-D y may have."""
    if isinstance(y, np.ma.MaskedArray) and y.dtype.kind not in "mM":
        y = np.where(np.ma.getmaskarray(y), np.nan, y.data)
    y = _listed(y)
    refuse_text(y, f"{_ENCODE}, or use the classifier for class labels.", name="y")
    try:
        target = check_array(
            y, ensure_2d=False, dtype=dtype, ensure_all_finite=False, input_name="y"
        )
    except ValueError as error:
        raise ValueError(
            f"y cannot be read as numbers: {error}. For class labels use the classifier."
        ) from error
    assert_all_finite(target, allow_nan=target.ndim == 2, input_name="y")
    refuse_huge(target, "y")
    return target, np.isnan(target)


def read_weights(
    sample_weight: Any, shape: tuple[int, ...], like: Array = _HOST_FLOATS
) -> np.ndarray:
    """Read weights for a y of this shape, one a row or, for a 2-D y, an entry, beside ``like``."""
    xp, shape, n_rows = namespace(like), tuple(shape), shape[0]
    if sample_weight is None:
        return xp.ones(n_rows, dtype=like.dtype)
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_rows, sample_weight, dtype=float)
    refuse_masked(sample_weight, "sample_weight")
    sample_weight = _listed(sample_weight)
    refuse_text(sample_weight, f"{_ENCODE}.", name="sample_weight")
    if on_device(like):
        weights = asarray_like(sample_weight, like, like.dtype)
        check_device_finite(weights, "sample_weight")
    else:
        options = {"dtype": like.dtype, "ensure_2d": False, "input_name": "sample_weight"}
        weights = check_array(to_numpy(sample_weight), **options)
    if weights.ndim > len(shape):
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {weights.ndim}D array: sample_weight "
            f"must be a number or have the shape ({n_rows},)."
        )
    if tuple(weights.shape) not in {(n_rows,), shape}:
        rest = f" or that of y, {shape}." if len(shape) == 2 else ", one weight for each row."
        raise ValueError(
            f"sample_weight has the shape {tuple(weights.shape)}, expected ({n_rows},){rest}"
        )
    if bool(xp.any(weights < 0)):
        raise ValueError("sample_weight holds negative values; weights must be zero or positive.")
    heaviest = float(xp.max(weights)) if n_rows else 0.0
    if heaviest > MOST_WEIGHT:
        raise ValueError(
            f"sample_weight goes up to {heaviest:.3g}, and a weight counts as so many rows; beyond "
            f"{MOST_WEIGHT:.0e} there is nothing to tell. Where weights are relative, such as one "
            "over the variance of each row, divide them by their mean."
        )
    return xp.where(weights < LEAST_WEIGHT, xp.zeros_like(weights), weights)


def read_values(values: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read labels from any container as an array, and mark None, NaN and null as missing."""
    if is_frame(values) or is_series(values):
        array, missing = values_of(values)
    else:
        array, masked = as_array(values), isinstance(values, np.ma.MaskedArray)
        missing = np.array(np.ma.getmaskarray(values)) if masked else np.zeros(array.shape, bool)
    if array.dtype.kind == "f":
        return array, missing | np.isnan(array)
    if array.dtype.kind == "T":  # NumPy's strings of any length, which may hold NaN or None
        array = array.astype(object)
    if array.dtype.kind == "O" and array.ndim:
        missing, rest = np.array(missing), array[~missing]
        nothing = np.full(rest.shape, None)
        try:
            missing[~missing] = (rest == nothing) | (rest != rest)
        except TypeError as error:  # pandas.NA has no truth value
            raise ValueError(
                f"{name} is an array of objects with missing labels that cannot be compared, such "
                "as pandas.NA. Replace them, or pass a pandas Series or frame."
            ) from error
    return array, missing


def one_kind(values: np.ndarray, name: str) -> np.ndarray:
    """Turn objects, none missing, into an array of strings, booleans, integers or floats."""
    if values.dtype.kind != "O":
        return values
    types = set(map(type, values))
    for kind in (str, bool | np.bool_, Integral, Real):
        if all(issubclass(t, kind) for t in types):
            return np.array(values.tolist())
    found = ", ".join(sorted(t.__name__ for t in types))
    raise TypeError(
        f"{name} must hold labels of one kind: all strings, all integers or all booleans; found "
        f"{found}. Convert them, for example with astype(str)."
    )


def read_tasks(values: Any, name: str = "task") -> np.ndarray:
    """Read task labels as str, int64 or bool; whole numbers held as floats become int64."""
    array, missing = read_values(values, name)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one label a row, got an array of shape {array.shape}."
        )
    if missing.any():
        raise ValueError(
            f"{name} has {missing.sum()} missing labels (None or NaN), the first in row "
            f"{missing.argmax()}. Drop these rows or name their task."
        )
    labels = one_kind(array, name)
    kind = labels.dtype.kind
    if kind == "f":
        # Beyond this size neighbouring whole numbers share one float, and tasks would merge.
        exact = 2.0 ** (np.finfo(labels.dtype).nmant + 1)
        if not np.all((labels == np.trunc(labels)) & (np.abs(labels) <= exact)):
            raise ValueError(
                f"{name} holds floats that are not (exact) whole numbers; task labels are strings, "
                "integers or booleans. Check that the right column is named, or convert to strings."
            )
        return labels.astype(np.int64)
    if kind == "i" or (kind == "u" and (labels.size == 0 or labels.max() <= _LARGEST_INT)):
        return labels.astype(np.int64, copy=False)
    if kind in "bU":
        return labels
    raise TypeError(
        f"{name} has labels of type {labels.dtype}; task labels are strings, integers (of 64 bits) "
        "or booleans. Convert them, for example with astype(str)."
    )


def read_classes(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Read class labels and mark the missing ones, which only a 2-D y may have."""
    labels, missing = read_values(y, "y")
    if holds_dates(labels):
        raise ValueError(
            "y holds dates or durations, but class labels are text, numbers or booleans. Convert "
            "them, for example with astype(str)."
        )
    if labels.ndim not in (1, 2) or 0 in labels.shape[1:]:
        raise ValueError(
            "y must be a dense array of class labels with one or two dimensions, got "
            f"{type(y).__name__} of shape {labels.shape}."
        )
    if labels.ndim == 1 and missing.any():
        raise ValueError(
            f"Input y contains NaN or None: {missing.sum()} labels are missing, the first in row "
            f"{missing.argmax()}. Drop these rows."
        )
    observed = one_kind(labels[~missing], "y")
    if observed.dtype.kind == "f":
        assert_all_finite(observed, input_name="y")
    check_classification_targets(observed)
    target = np.empty(labels.shape, dtype=observed.dtype)
    target[~missing] = observed
    return target, missing


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
