"""Frames and series of any make, by narwhals alone, and the columns of any table."""

import operator
from datetime import date, timedelta
from numbers import Integral
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse

from ..arrays import is_device_sparse, namespace, on_device
from ..phrases import some

_DATES = np.datetime64, np.timedelta64, date, timedelta


def is_frame(X: Any) -> bool:
    """Tell whether X is an eager frame (pandas, polars, ...), not a series or an array."""
    return nw.dependencies.is_into_dataframe(X)


def is_series(X: Any) -> bool:
    """Tell whether X is a series, a single column."""
    return nw.dependencies.is_into_series(X)


def is_partitioned(*items: Any) -> bool:
    """Tell whether any of the items is a Dask collection."""
    return any(type(item).__module__.split(".")[0].startswith("dask") for item in items)


def column_names(X: Any) -> list[Any]:
    """Return the column names of a frame, the column numbers of any other table."""
    return list(nw.from_native(X).columns) if is_frame(X) else list(range(X.shape[1]))


def split_column(X: Any, column: str | int) -> tuple[Any, Any]:
    """One column of X, by name (frames) or number, and X without it."""
    table: Any = X if is_frame(X) or sparse.issparse(X) or on_device(X) else as_array(X)
    if len(table.shape) != 2:
        raise ValueError(
            f"X must be two-dimensional to hold the task_column, got shape {table.shape}. "
            "Reshape your data to one row a sample."
        )
    position = choose_position(table, column)
    if table.shape[1] == 1:
        raise ValueError(
            f"X holds nothing but the task column {column!r}: 0 feature(s) are left while a "
            "minimum of 1 is required. Add the feature columns to X."
        )
    others = np.delete(np.arange(table.shape[1]), position)
    if is_frame(table):
        frame: Any = nw.from_native(table)
        return frame[:, position].to_native(), frame[:, others.tolist()].to_native()
    if sparse.issparse(table):
        rows = table.tocsr()
        return rows[:, [position]].toarray().ravel(), rows[:, others]
    if is_device_sparse(table):
        return table.split(position)
    rest = [table[:, :position], table[:, position + 1 :]]
    return table[:, position], namespace(table).concat(rest, axis=1)


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


def text_columns(X: Any) -> list[Any]:
    """Columns of a frame, or of an array, that are neither numeric nor boolean."""
    if not is_frame(X):
        return [i for i in range(X.shape[1]) if not _reads_as_float(X[:, i])]
    frame = nw.from_native(X)
    # Columns of a type unknown to narwhals (the sparse ones of pandas) are left to check_array.
    return [
        column
        for i, (column, dtype) in enumerate(frame.schema.items())
        if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Unknown))
        and not (dtype == nw.Object and _reads_as_float(frame[:, i].to_numpy()))
    ]


def float_types(X: Any) -> list[type[np.floating]]:
    """Return the types that X may keep, in the order of preference for what it cannot keep."""
    # check_array sees the types of pandas columns only; this serves polars as well.
    if is_frame(X) and set(nw.from_native(X).schema.values()) == {nw.Float32()}:
        return [np.float32]
    return [np.float64, np.float32]


def only_column(values: Any) -> Any:
    """The column of a frame or array of one column; other values as they are."""
    shape: Any = getattr(values, "shape", ())
    if len(shape) != 2 or shape[1] != 1:
        return values
    if is_frame(values):
        return nw.from_native(values)[:, 0].to_native()
    return getattr(values, "iloc", values)[:, 0]


def values_of(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Values of a frame or a series, and which of them are null."""
    table: Any = nw.from_native(X, allow_series=True)
    nulls = table.is_null() if is_series(X) else table.select(nw.all().is_null())
    return table.to_numpy(), nulls.to_numpy()


def as_array(values: Any) -> np.ndarray:
    """Array of its own kind: a list such as [1, "a"] as objects, not as strings."""
    return np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)


def holds_dates(values: np.ndarray) -> bool:
    """Whether values are dates or durations, which NumPy would count in units of any length."""
    if values.dtype.kind != "O":
        return values.dtype.kind in "mM"
    return any(isinstance(value, _DATES) for value in values.flat)


def _reads_as_float(column: np.ndarray) -> bool:
    if holds_dates(column):
        return False
    try:
        column.astype(float)
    except ValueError:
        return False
    return True
