"""Dask arrays and frames as lists of partitions, and predictions for them as Dask arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..rows.frames import is_partitioned
from .executors import DaskWorkers, Workers


def current_workers() -> Workers:
    """The cluster of the present Dask client; this process where there is none."""
    try:
        from distributed import get_client
    except ImportError:
        return Workers()
    try:
        client = get_client(timeout=5)
    except ValueError:
        return Workers()
    if client.asynchronous:
        raise ValueError(
            "The Dask client is asynchronous, but fit and predict wait for their results: connect "
            "with Client(..., asynchronous=False)."
        )
    return DaskWorkers(client)


def partitions(X: Any, **others: Any) -> list[dict[str, Any]]:
    """Delayed parts ``{"X": ..., name: ...}`` of each partition; numbers are for all."""
    if not is_partitioned(X):
        names = [name for name, item in others.items() if is_partitioned(item)]
        raise TypeError(
            f"{names[0]} is a Dask collection, but X is {type(X).__name__}: hand over X as a Dask "
            "array or frame as well, or compute the others."
        )
    X = _whole_rows(X)
    columns: dict[str, Sequence[Any]] = {"X": _recipes(X)}
    count = len(columns["X"])
    for name, item in others.items():
        if item is None or np.isscalar(item):
            columns[name] = [item] * count
        elif is_partitioned(item):
            columns[name] = _recipes(_aligned(_whole_rows(item), X))
        else:
            columns[name] = _cut(item, name, X)
        if len(columns[name]) != count:
            raise ValueError(
                f"X has {count} partitions and {name} has {len(columns[name])}; give both the "
                "same, Dask arrays with rechunk and frames with repartition."
            )
    return [dict(zip(columns, parts, strict=True)) for parts in zip(*columns.values(), strict=True)]


def _whole_rows(item: Any) -> Any:
    """Collection whose partitions hold rows with all their columns."""
    if hasattr(item, "chunks") and item.ndim == 2 and len(item.chunks[1]) > 1:
        return item.rechunk({1: -1})
    return item


def _aligned(item: Any, X: Any) -> Any:
    """Array with its rows split as those of X, where the borders are known."""
    known, own = row_chunks(X), row_chunks(item)
    if known is None or own is None or own == known or sum(own) != sum(known):
        return item
    return item.rechunk({0: known})


def row_chunks(item: Any) -> tuple[int, ...] | None:
    """Rows of each partition, if Dask knows them."""
    if not hasattr(item, "chunks"):
        return None
    rows = item.chunks[0]
    return None if np.isnan(rows).any() else tuple(rows)


def _recipes(item: Any) -> list[Any]:
    if hasattr(item, "simplify"):
        # Frames: no more than the columns in use, but all partitions. Full optimisation would put
        # those of narrow frames together, and y would no longer be split as X is.
        return list(item.simplify().to_delayed(optimize_graph=False))
    return list(np.ravel(item.to_delayed()))


def _cut(item: Any, name: str, X: Any) -> Sequence[Any]:
    """Parts of something in memory, as the rows of X are split."""
    sizes = row_chunks(X)
    if sizes is None:
        raise TypeError(
            f"{name} is {type(item).__name__}, but X is a Dask collection whose partitions have an "
            f"unknown number of rows: hand over {name} as a Dask collection, or call "
            "X.compute_chunk_sizes() first."
        )
    if len(item) != sum(sizes):
        raise ValueError(f"{name} has {len(item)} entries, but X has {sum(sizes)} rows.")
    ends = np.cumsum(sizes).tolist()
    rows = item.iloc if hasattr(item, "iloc") else item
    return [rows[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def call_by_partition(call: Callable[..., Any], model: Any, X: Any, task: Any) -> Any:
    """Dask arrays of what a call says of every partition."""
    import dask.array as da
    from dask import delayed

    parts = partitions(X, task=task)
    sizes = X.chunks[0] if hasattr(X, "chunks") else [float("nan")] * len(parts)
    sample = call(model, *_one_row(model, X, task))
    sent = delayed(model, traverse=False)
    calls = [delayed(call, pure=False)(sent, *part.values()) for part in parts]

    def together(pieces: list[Any], like: np.ndarray) -> Any:
        arrays = [
            da.from_delayed(piece, (rows, *like.shape[1:]), dtype=like.dtype)
            for piece, rows in zip(pieces, sizes, strict=True)
        ]
        return da.concatenate(arrays)

    if not isinstance(sample, tuple):
        return together(calls, sample)
    return tuple(together([one[n] for one in calls], like) for n, like in enumerate(sample))


def _one_row(model: Any, X: Any, task: Any) -> tuple[Any, Any]:
    """A row made up, of a task that the model knows."""
    known = np.asarray(model.tasks_[:1])
    label = None if task is None else known
    if not hasattr(X, "columns"):
        width = model.n_features_in_
        row = np.zeros((1, width), dtype=X.dtype if X.dtype.kind == "f" else None)
        if model.task_column is not None:
            row = row.astype(object) if known.dtype.kind == "U" else row
            row[0, model.task_column] = known[0]
        return row, label
    frame = X._meta_nonempty.iloc[:1].copy()
    if model.task_column is not None:
        place = model.task_column
        name = frame.columns[place] if isinstance(place, int | np.integer) else place
        frame[name] = known
    return frame, label
