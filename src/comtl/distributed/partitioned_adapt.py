"""New tasks whose rows are in partitions: each is adapted where its rows are.

A task that straddles partitions is first put together with the first of them that has rows of it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..adapt import Adaptation, New
from ..rows.observations import Observations
from .partition import LabelEncoding, Partition, stacked

if TYPE_CHECKING:
    from .partitioned_data import PartitionedData


def adapt_partitioned(obs: PartitionedData, adaptation: Adaptation, *, residual: bool) -> New:
    """Columns of weights of new tasks."""
    workers = obs.workers
    complete, owned = _complete_tasks(obs)
    handle = workers.scatter(adaptation)
    sizes = None
    if residual:
        losses = workers.values(workers.map(Adaptation.losses, complete, common=(handle,)))
        sizes = adaptation.best(np.sum(losses, axis=0))
    parts = workers.values(workers.map(Adaptation.columns, complete, common=(handle, sizes)))
    order = np.argsort(np.concatenate(owned))
    factors, intercepts, residuals = zip(*parts, strict=True)
    beyond = sparse.csr_array(sparse.vstack(residuals, format="csr"))[order] if residual else None
    return np.concatenate(factors)[order], np.concatenate(intercepts)[order], beyond


def _complete_tasks(data: PartitionedData) -> tuple[list[Any], list[np.ndarray]]:
    """Handles of observations with all rows of their tasks, and the numbers of these tasks."""
    owner = np.full(len(data.tasks), -1)
    for number, task_index in reversed(list(enumerate(data.task_index))):
        owner[task_index] = number
    sources = defaultdict(list)
    for piece, task_index in zip(data.pieces, data.task_index, strict=True):
        for number in np.unique(owner[task_index]).tolist():
            sources[number].append(piece)
    workers, found, owned = data.workers, [], []
    encoding = workers.scatter(data.encoding)
    for number, pieces in sources.items():
        tasks = np.flatnonzero(owner == number)
        parts = workers.map(_take_tasks, pieces, common=(encoding, workers.scatter(tasks)))
        found += workers.map(_concat_tasks, [parts], common=(len(tasks),))
        owned.append(tasks)
    return found, owned


def _take_tasks(
    encoding: LabelEncoding, tasks: np.ndarray, piece: Partition
) -> tuple[Observations, np.ndarray]:
    """Observations of some tasks, and where among these tasks theirs are."""
    obs, task_index = piece.encoded(encoding)
    kept = np.flatnonzero(np.isin(task_index, tasks))
    part, _ = obs.of_tasks(kept)
    assert part.rows is not None
    used, rows = np.unique(part.rows, return_inverse=True)
    return replace(part, X=obs.X[used], rows=rows), np.searchsorted(tasks, task_index[kept])


def _concat_tasks(tasks: int, parts: list[tuple[Observations, np.ndarray]]) -> Observations:
    """Observations of several partitions as those of one, in their order within each task."""
    obs = [part for part, _ in parts]
    codes = np.concatenate([np.repeat(task_index, np.diff(c.offsets)) for c, task_index in parts])
    order = np.argsort(codes, kind="stable")
    starts = np.cumsum([0, *(c.X.shape[0] for c in obs[:-1])])
    shifted = [c.rows + start for c, start in zip(obs, starts, strict=True)]
    return replace(
        obs[0],
        X=stacked([c.X for c in obs]),
        y=np.concatenate([c.y for c in obs])[order],
        weights=np.concatenate([c.weights for c in obs])[order],
        offsets=np.searchsorted(codes[order], np.arange(tasks + 1)),
        tasks=np.arange(tasks),
        rows=np.concatenate(shifted)[order],
    )
