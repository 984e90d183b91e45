"""Sums, Grams and quadratic forms of consecutive rows, a segment for each task."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import array_api_compat
import numpy as np

from .backends import Array, device_key, namespace

PIECE = 1024
"""Rows that are summed one after the other on a device: longer segments are summed in two steps."""

_KEPT: dict[tuple[Any, ...], Any] = {}


def cached_for(owner: np.ndarray, name: str, like: Array, make: Callable[[], Any]) -> Any:
    """What ``make()`` gives for a host array and a device, made once and dropped with the array."""
    if array_api_compat.is_numpy_array(like):
        return make()  # Kept, NumPy's would lie in memory beside the rows for the time of a fit.
    key = (id(owner), name, type(like), device_key(like))
    try:
        return _KEPT[key]
    except KeyError:
        found = _KEPT[key] = make()
        weakref.finalize(owner, _KEPT.pop, key, None)
        return found


def segment_sum(values: Array, offsets: np.ndarray) -> Array:
    """Sums of ``values[offsets[t]:offsets[t + 1]]``; every segment must hold at least one row."""
    if array_api_compat.is_numpy_array(values):
        return np.add.reduceat(values, offsets[:-1], axis=0)
    steps = cached_for(offsets, "pieces", values, lambda: _pieces(offsets, values))
    total = values
    for bounds in steps:
        total = _sum_once(total, *bounds)
    return total


def _pieces(offsets: np.ndarray, like: Array) -> list[tuple[np.ndarray, Array]]:
    """Bounds of pieces that are not too long, then those of segments counted in pieces."""
    xp = namespace(like)
    counts = -(-np.diff(offsets) // PIECE)
    steps = [offsets]
    if counts.max(initial=1) > 1:
        owner = np.repeat(np.arange(len(counts)), counts)
        ends = np.concatenate([[0], np.cumsum(counts)])
        place = np.arange(len(owner)) - ends[owner]
        starts = offsets[:-1][owner] + place * PIECE
        steps = [np.append(starts, offsets[-1]), ends]
    return [(bounds, xp.asarray(bounds.astype(np.int64))) for bounds in steps]


def _sum_once(values: Array, bounds: np.ndarray, there: Array) -> Array:
    """Sums by whatever the library has for it, the same on every run."""
    if array_api_compat.is_torch_array(values):
        import torch

        return torch.segment_reduce(values, "sum", offsets=there, axis=0, unsafe=True)
    if array_api_compat.is_cupy_array(values):
        import cupy

        return cupy.add.reduceat(values, there[:-1], axis=0)
    xp = namespace(values)
    parts = []
    batches, back = _batches(bounds, values)
    for shape, flat, inside, _ in batches:
        block = xp.reshape(xp.take(values, flat, axis=0), (*shape, *values.shape[1:]))
        mask = xp.reshape(inside, (*shape, *(1,) * (values.ndim - 1)))
        parts.append(xp.sum(xp.where(mask, block, xp.zeros_like(block)), axis=1))
    return xp.take(xp.concat(parts, axis=0), back, axis=0)


def local_offsets(offsets: np.ndarray, start: int, stop: int) -> tuple[int, int, np.ndarray]:
    """First and last segment with rows in ``start:stop``, and their bounds counted from start."""
    if start == 0 and stop == offsets[-1]:
        return 0, len(offsets) - 1, offsets  # itself, for what is kept with it
    first = int(np.searchsorted(offsets, start, side="right")) - 1
    last = int(np.searchsorted(offsets, stop, side="left"))
    return first, last, np.clip(offsets[first : last + 1], start, stop) - start


def segment_gram(values: Array, weights: Array, offsets: np.ndarray) -> Array:
    """Weighted Gram matrix of each segment of rows, ``(T, K, K)``, padded to similar lengths."""
    xp = namespace(values)
    width = values.shape[1]
    parts = []
    batches, back = _batches(offsets, values)
    for shape, flat, inside, _ in batches:
        block = xp.reshape(xp.take(values, flat, axis=0), (*shape, width))
        share = xp.reshape(xp.take(weights, flat, axis=0), shape)
        share = xp.where(inside, share, xp.zeros_like(share))
        parts.append(xp.matmul(xp.matrix_transpose(block * share[:, :, None]), block))
    return xp.take(xp.concat(parts, axis=0), back, axis=0)


def segment_forms(values: Array, matrices: Array, offsets: np.ndarray) -> Array:
    """Quadratic form ``xᵀ C_t x`` of each row with the matrix of its segment, ``(n,)``."""
    xp = namespace(values)
    parts, task_index, start = [], np.empty(offsets[-1], dtype=np.intp), 0
    batches, _ = _batches(offsets, values)
    for shape, flat, _, tasks in batches:
        block = xp.reshape(xp.take(values, flat, axis=0), (*shape, values.shape[1]))
        own = xp.take(matrices, xp.asarray(tasks), axis=0)
        forms = xp.sum(xp.matmul(block, own) * block, axis=2)
        parts.append(xp.reshape(forms, (-1,)))
        index, inside = padded_index(offsets, tasks)
        task_index[index[inside]] = start + np.flatnonzero(inside)
        start += inside.size
    return xp.take(xp.concat(parts, axis=0), xp.asarray(task_index), axis=0)


def segment_codes(offsets: np.ndarray, like: Array) -> Array:
    """Segment of each row, beside ``like``."""
    sizes = np.diff(offsets)
    return cached_for(
        offsets,
        "codes",
        like,
        lambda: namespace(like).asarray(np.repeat(np.arange(len(sizes)), sizes)),
    )


def _batches(offsets: np.ndarray, like: Array) -> tuple[list[tuple[Any, ...]], Array]:
    """Segments of similar length: shape, rows, what is no padding; and the way back in order."""

    def make() -> tuple[list[tuple[Any, ...]], Array]:
        xp = namespace(like)
        batches, order = [], []
        for tasks in similar_sizes(np.diff(offsets)):
            index, inside = padded_index(offsets, tasks)
            flat = xp.asarray(index.reshape(-1))
            batches.append((index.shape, flat, xp.asarray(inside), tasks))
            order.append(tasks)
        return batches, xp.asarray(np.argsort(np.concatenate(order)))

    return cached_for(offsets, "batches", like, make)


def padded_index(offsets: np.ndarray, segments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of some segments, a segment a line, and which of them are more than padding."""
    sizes = np.diff(offsets)[segments]
    steps = np.arange(sizes.max())
    inside = steps[None, :] < sizes[:, None]
    return np.where(inside, offsets[:-1][segments][:, None] + steps[None, :], 0), inside


def similar_sizes(sizes: np.ndarray) -> list[np.ndarray]:
    """Group segment numbers by length, within a factor of two."""
    octave = np.frexp(sizes.astype(float))[1]
    order = np.argsort(octave, kind="stable")
    borders = np.flatnonzero(np.diff(octave[order])) + 1
    return np.split(order, borders)
