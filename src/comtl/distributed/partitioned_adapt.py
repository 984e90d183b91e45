"""New tasks whose rows are in partitions: each is adapted where its rows are.

A task that straddles partitions is first put together with the first of them that has rows of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ..adapt import Adaptation, New
from ..adapt_residual import Sizes
from ..arrays import padded_index
from ..rows.observations import Observations
from .partition import LabelEncoding, Partition
from .partitioned_data import PartitionedData


def adapt_partitioned(cells: PartitionedData, adaptation: Adaptation, *, residual: bool) -> New:
    """Columns of weights of new tasks."""
    workers = cells.workers
    whole, owned = _whole_tasks(cells)
    told = workers.scatter(adaptation)
    sizes = None
    if residual:
        losses = workers.each(workers.map(_losses, whole, common=(told,)))
        sizes = adaptation.best(np.sum(losses, axis=0))
    parts = workers.each(workers.map(_columns, whole, common=(told, sizes)))
    order = np.argsort(np.concatenate(owned))
    factor, intercepts = (
        np.concatenate(part)[order] for part in list(zip(*parts, strict=True))[:2]
    )
    if not residual:
        return factor, intercepts, None
    beyond = sparse.vstack([part[2] for part in parts], format="csr")
    return factor, intercepts, sparse.csr_array(beyond)[order]


def _losses(adaptation: Adaptation, cells: Observations) -> np.ndarray:
    return adaptation.losses(cells)


def _columns(adaptation: Adaptation, sizes: Sizes | None, cells: Observations) -> New:
    return adaptation.columns(cells, sizes)


def _whole_tasks(data: PartitionedData) -> tuple[list[Any], list[np.ndarray]]:
    """Handles of observations with all rows of their tasks, and the numbers of these tasks."""
    owner = np.full(len(data.tasks), -1)
    for number, task_index in reversed(list(enumerate(data.task_index))):
        owner[task_index] = number
    workers = data.workers
    view = workers.scatter(data.view)
    sources: dict[int, list[int]] = {}
    for number, task_index in enumerate(data.task_index):
        for own in np.unique(owner[task_index]).tolist():
            sources.setdefault(own, []).append(number)
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(len(data.pieces) + 1))
    found, owned = [], []
    for number, numbers in sorted(sources.items()):
        tasks = order[bounds[number] : bounds[number + 1]]
        parts = workers.map(
            _taken, [data.pieces[n] for n in numbers], common=(view, workers.scatter(tasks))
        )
        found += workers.map(_together, [parts], common=(len(tasks),))
        owned.append(tasks)
    return found, owned


def _taken(
    view: LabelEncoding, tasks: np.ndarray, piece: Partition
) -> tuple[Observations, np.ndarray]:
    """Observations of some tasks, and where among these tasks theirs are."""
    cells, task_index = piece.seen(view)
    kept = np.flatnonzero(np.isin(task_index, tasks))
    index, inside = padded_index(cells.offsets, kept)
    chosen = index[inside]
    rows = chosen if cells.rows is None else cells.rows[chosen]
    used, own = np.unique(rows, return_inverse=True)
    sizes = np.diff(cells.offsets)[kept]
    part = replace(
        cells,
        X=cells.X[used],
        y=cells.y[chosen],
        weights=cells.weights[chosen],
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        tasks=cells.tasks[kept],
        rows=own,
    )
    return part, np.searchsorted(tasks, task_index[kept])


def _together(tasks: int, parts: list[tuple[Observations, np.ndarray]]) -> Observations:
    """Observations of several partitions as those of one, in their order within each task."""
    cells = [part for part, _ in parts]
    codes = np.concatenate([np.repeat(task_index, np.diff(c.offsets)) for c, task_index in parts])
    order = np.argsort(codes, kind="stable")
    starts = np.cumsum([0, *(c.X.shape[0] for c in cells[:-1])])
    shifted = [c.rows + start for c, start in zip(cells, starts, strict=True)]
    X: Any = [c.X for c in cells]
    packed = sparse.issparse(X[0])
    return replace(
        cells[0],
        X=sparse.csr_array(sparse.vstack(X)) if packed else np.concatenate(X),
        y=np.concatenate([c.y for c in cells])[order],
        weights=np.concatenate([c.weights for c in cells])[order],
        offsets=np.searchsorted(codes[order], np.arange(tasks + 1)),
        tasks=np.arange(tasks),
        rows=np.concatenate(shifted)[order],
    )
