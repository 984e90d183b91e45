"""Predictions of rows in partitions, made where these are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .dask_collections import partitions


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
