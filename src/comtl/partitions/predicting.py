"""Predictions of rows in partitions: each partition where it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from .collections import is_partitioned, partitions


def by_partition(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of rows take Dask collections: it then returns Dask arrays, not yet computed."""
    signature = inspect.signature(method)

    @wraps(method)
    def either(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        told = signature.bind(self, X, *args, **kwargs).arguments
        task = told.pop("task", None)
        if not is_partitioned(X, task):
            return method(self, X, *args, **kwargs)
        told.pop("self")
        told.pop("X")
        return _lazily(partial(_call, method.__name__, told), self, X, task)

    return either


def _call(name: str, options: dict[str, Any], model: Any, X: Any, task: Any) -> Any:
    return getattr(model, name)(X, task=task, **options)


def _lazily(call: Callable[..., Any], model: Any, X: Any, task: Any) -> Any:
    """Dask arrays of what a call says of every partition."""
    import dask.array as da
    from dask import delayed

    parts = partitions(X, task=task)
    sizes = X.chunks[0] if hasattr(X, "chunks") else [float("nan")] * len(parts)
    sample = call(model, *_one_row(model, X, task))
    held = delayed(model, traverse=False)
    told = [delayed(call, pure=False)(held, *part.values()) for part in parts]

    def together(pieces: list[Any], like: np.ndarray) -> Any:
        arrays = [
            da.from_delayed(piece, (rows, *like.shape[1:]), dtype=like.dtype)
            for piece, rows in zip(pieces, sizes, strict=True)
        ]
        return da.concatenate(arrays)

    if not isinstance(sample, tuple):
        return together(told, sample)
    return tuple(together([one[n] for one in told], like) for n, like in enumerate(sample))


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
