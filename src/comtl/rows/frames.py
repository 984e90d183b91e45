"""What users hand over (arrays, lists, sparse matrices, frames, series) turned into NumPy.

Frames of any make go through narwhals, so neither pandas nor polars is ever imported here.
"""

import operator
from numbers import Integral, Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.multiclass import check_classification_targets

from ..phrases import some

_LARGEST_INT = np.iinfo(np.int64).max


def is_frame(X: Any) -> bool:
    """Tell whether X is an eager frame (pandas, polars, ...), not a series or an array."""
    return nw.dependencies.is_into_dataframe(X)


def column_names(X: Any) -> list[Any]:
    """Return the column names of a frame, the column numbers of any other table."""
    return list(nw.from_native(X).columns) if is_frame(X) else list(range(X.shape[1]))


def split_column(X: Any, column: str | int) -> tuple[Any, Any]:
    """One column of X, by name (frames) or number, and X without it."""
    table: Any = X if is_frame(X) or sparse.issparse(X) else _as_array(X)
    if len(table.shape) != 2:
        raise ValueError(
            f"X must be two-dimensional to hold the task_column, got shape {table.shape}. "
            "Reshape your data to one row a sample."
        )
    position = choose_position(table, column)
    others = np.delete(np.arange(table.shape[1]), position)
    refuse_no_features(table, column)
    if is_frame(table):
        frame: Any = nw.from_native(table)
        return frame[:, position].to_native(), frame[:, others.tolist()].to_native()
    if sparse.issparse(table):
        rows = table.tocsr()
        return rows[:, [position]].toarray().ravel(), rows[:, others]
    return table[:, position], np.delete(table, position, axis=1)


def refuse_no_features(X: Any, column: str | int) -> None:
    """Raise if X has the task column only."""
    if X.shape[1] == 1:
        raise ValueError(
            f"X holds nothing but the task column {column!r}: 0 feature(s) are left while a "
            "minimum of 1 is required. Add the feature columns to X."
        )


def choose_position(X: Any, column: str | int) -> int:
    """Find the number, not negative, of the column that `task_column` means."""
    if isinstance(column, str):
        if not is_frame(X):
            raise ValueError(
                f"task_column={column!r} names a column, but X ({type(X).__name__}) has no column "
                "names. Pass X as a pandas or polars frame, or give task_column as an integer."
            )
        names = column_names(X)
        if column not in names:
            raise ValueError(
                f"task_column={column!r} is missing in X, whose columns are {some(names, 10)}. Add "
                "the column to X, name another one, or set task_column=None and pass task=."
            )
        return names.index(column)
    if isinstance(column, bool | np.bool_) or not isinstance(column, Integral):
        raise TypeError(
            "task_column must be None, a column name or an integer column number, "
            f"got {column!r} of type {type(column).__name__}."
        )
    width = X.shape[1]
    if not -width <= column < width:
        raise ValueError(
            f"task_column={column} is missing in X, which has {width} columns. Give a number from "
            f"{-width} to {width - 1}, or set task_column=None and pass task=."
        )
    return operator.index(column) % width


def refuse_text(X: Any, remedy: str, name: str = "X") -> None:
    """Raise if a column of a frame or of objects is not numeric; ``remedy`` ends the message."""
    if is_frame(X):
        frame = nw.from_native(X)
        # Columns of a type unknown to narwhals (the sparse ones of pandas) are left to check_array.
        wrong = [
            column
            for i, (column, dtype) in enumerate(frame.schema.items())
            if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Unknown))
            and not (dtype == nw.Object and _reads_as_float(frame[:, i].to_numpy()))
        ]
    elif type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "OU":
        wrong = [i for i in range(X.shape[1]) if not _reads_as_float(X[:, i])]
    else:
        return
    if wrong:
        raise ValueError(
            f"{name} has columns that are neither numeric nor boolean: {some(wrong, 10)}. {remedy}"
        )


def float_types(X: Any) -> list[type[np.floating]]:
    """Return the types that X may keep, in the order of preference for what it cannot keep."""
    # check_array sees the types of pandas columns only; this serves polars as well.
    if is_frame(X) and set(nw.from_native(X).schema.values()) == {nw.Float32()}:
        return [np.float32]
    return [np.float64, np.float32]


def read_values(values: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read labels from any container as an array, and mark None, NaN and null as missing."""
    if nw.dependencies.is_into_series(values):
        series = nw.from_native(values, series_only=True)
        array, missing = series.to_numpy(), series.is_null().to_numpy()
    elif is_frame(values):
        frame = nw.from_native(values)
        array, missing = frame.to_numpy(), frame.select(nw.all().is_null()).to_numpy()
    else:
        array = _as_array(values)
        missing = np.zeros(array.shape, dtype=bool)
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


def read_row_tasks(values: Any, name: str, rows: int) -> np.ndarray:
    """Read the task label of each row of X."""
    labels = read_tasks(values, name)
    if len(labels) != rows:
        raise ValueError(
            f"task has {len(labels)} labels, but X has {rows} rows; give one label for each row."
        )
    return labels


def read_numbers(y: Any, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Read the targets of a regression and mark the missing ones, which only a 2-D y may have."""
    refuse_text(y, "Encode them, or use the classifier for class labels.", name="y")
    try:
        target = check_array(
            y, ensure_2d=False, dtype=dtype, ensure_all_finite=False, input_name="y"
        )
    except ValueError as error:
        raise ValueError(
            f"y cannot be read as numbers: {error}. For class labels use the classifier."
        ) from error
    assert_all_finite(target, allow_nan=target.ndim == 2, input_name="y")
    return target, np.isnan(target)


def read_classes(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Read class labels and mark the missing ones, which only a 2-D y may have."""
    labels, missing = read_values(y, "y")
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


def read_weights(sample_weight: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Read weights for a y of this shape: one a row, or for a 2-D y also one a cell."""
    n_rows = shape[0]
    if sample_weight is None:
        return np.ones(n_rows, dtype=dtype)
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_rows, sample_weight, dtype=dtype)
    weights = check_array(sample_weight, ensure_2d=False, dtype=dtype, input_name="sample_weight")
    if weights.ndim > len(shape):
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {weights.ndim}D array: sample_weight "
            f"must be a number or have the shape ({n_rows},)."
        )
    if weights.shape not in {(n_rows,), shape}:
        raise ValueError(
            f"sample_weight has the shape {weights.shape}, expected ({n_rows},)"
            + (f" or that of y, {shape}." if len(shape) == 2 else ", one weight for each row.")
        )
    if (weights < 0).any():
        raise ValueError("sample_weight holds negative values; weights must be zero or positive.")
    return weights


def _as_array(values: Any) -> np.ndarray:
    # np.asarray([1, "a"]) would be an array of strings, which hides the mixture.
    return np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)


def _reads_as_float(column: np.ndarray) -> bool:
    try:
        column.astype(float)
    except ValueError:
        return False
    return True


def is_partitioned(*items: Any) -> bool:
    """Tell whether any of the items is a Dask collection."""
    return any(type(item).__module__.split(".")[0].startswith("dask") for item in items)
