"""Predictions and scores of rows in partitions, made where these are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..rows.reading import read_classes, read_numbers, read_weights
from .dask_collections import current_workers, partitions


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


def score_partitions(model: Any, X: Any, y: Any, task: Any, sample_weight: Any) -> float:
    """R² or accuracy; for a two-dimensional y its mean over the columns."""
    from dask import delayed

    workers = current_workers()
    work, add = (_hits, _accuracy) if model._classification else (_squares, _explained)
    work = delayed(work, pure=False)
    sent = delayed(model, traverse=False)
    parts = partitions(X, y=y, task=task, sample_weight=sample_weight)
    recipes = [work(sent, *part.values()) for part in parts]
    return add(workers.each(workers.compute_small(recipes)))


def _columns(*arrays: np.ndarray) -> list[np.ndarray]:
    return [array.reshape(len(array), -1) for array in arrays]


def _shares(weight: Any, missing: np.ndarray) -> np.ndarray:
    """Weight of every observation, none for those that are missing."""
    weights = read_weights(weight, missing.shape, np.dtype(float))
    weights, missing = _columns(weights, missing)
    return np.where(missing, 0.0, np.broadcast_to(weights, missing.shape))


def _squares(model: Any, X: Any, y: Any, task: Any, weight: Any) -> np.ndarray:
    """Of each column: weight, mean, squares about it, squared errors, observations."""
    guess = model.predict(X, task)
    truth, missing = read_numbers(y, guess.dtype)
    share = _shares(weight, missing)
    truth, guess = (np.where(share > 0.0, one, 0.0) for one in _columns(truth, guess))
    total = share.sum(axis=0)
    mean = (share * truth).sum(axis=0) / np.where(total > 0.0, total, 1.0)
    around = (share * (truth - mean) ** 2).sum(axis=0)
    errors = (share * (truth - guess) ** 2).sum(axis=0)
    return np.stack([total, mean, around, errors, (share > 0.0).sum(axis=0)])


def _explained(parts: list[np.ndarray]) -> float:
    """R², the mean over columns with two observations or more."""
    total, mean, around, errors, count = parts[0]
    for more, other, spread, gaps, rows in parts[1:]:
        both = np.where(total + more > 0.0, total + more, 1.0)
        around = around + spread + (other - mean) ** 2 * total * more / both
        mean = mean + (other - mean) * more / both
        total, errors, count = total + more, errors + gaps, count + rows
    kept = count >= 2
    if not kept.any():
        return float("nan")
    flat = around[kept] == 0.0
    share = 1.0 - errors[kept] / np.where(flat, 1.0, around[kept])
    return float(np.mean(np.where(flat, errors[kept] == 0.0, share)))


def _hits(model: Any, X: Any, y: Any, task: Any, weight: Any) -> np.ndarray:
    """Of each column: weight of its observations, and of those whose class is guessed."""
    guess = model.predict(X, task)
    truth, missing = read_classes(y)
    share = _shares(weight, missing)
    truth, guess = _columns(truth, guess)
    return np.stack([share.sum(axis=0), (share * (truth == guess)).sum(axis=0)])


def _accuracy(parts: list[np.ndarray]) -> float:
    """Accuracy, the mean over columns that have observations."""
    total, right = np.sum(parts, axis=0)
    kept = total > 0.0
    return float(np.mean(right[kept] / total[kept])) if kept.any() else float("nan")
