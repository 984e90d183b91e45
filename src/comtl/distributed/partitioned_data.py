"""What is known here of the observations of all partitions, which stay away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar

import joblib
import numpy as np

from ..linear import OutputColumns, Scaling
from ..losses import Loss
from ..rows.fit_input import FitInput
from ..rows.observations import Observations, check_classes
from ..rows.reading import encode_tasks, read_tasks
from .dask_collections import current_workers, partitions
from .executors import Future, Workers
from .partition import LabelEncoding, Partition, read_partition, summarize
from .partitioned_adapt import adapt_partitioned
from .partitioned_datafit import PartitionedDatafit
from .partitioned_population import partitioned_population
from .partitioned_problem import partitioned_units, summed_grams


@dataclass(frozen=True, eq=False)
class PartitionedData:
    """Observations in partitions; what :class:`Observations` is for one table."""

    workers: Workers
    pieces: list[Future]
    task_index: list[np.ndarray]  # numbers of the tasks of each partition
    firsts: list[np.ndarray]  # see _firsts
    encoding: LabelEncoding
    seen: np.ndarray | None
    n_rows: int
    n_features: int
    nnz: int
    multi_output: bool
    complete: bool

    partitioned: ClassVar[bool] = True
    on_device: ClassVar[bool] = False
    device: ClassVar[str] = "numpy"

    units = partitioned_units
    grams_of = summed_grams
    adapt_columns = adapt_partitioned
    population = partitioned_population

    def one_vs_rest(self, columns: OutputColumns) -> PartitionedData:
        task_index = self.task_index
        if columns.index is not None:
            own = [columns.index[part] for part in task_index]
            task_index = [index[index >= 0] for index in own]
        encoding = replace(self.encoding, columns=columns)
        return replace(self, task_index=task_index, encoding=encoding)

    def rows_datafit(self, units: Scaling, loss: Loss) -> PartitionedDatafit:
        return PartitionedDatafit.of(self, units, loss)

    @property
    def tasks(self) -> np.ndarray:
        """Labels of the tasks, or numbers of the columns of weights."""
        columns = self.encoding.columns
        if columns is None or columns.index is None:
            return self.encoding.tasks
        return np.arange(len(columns.task))

    @property
    def classes(self) -> np.ndarray | None:
        return self.encoding.classes

    @property
    def plain(self) -> bool:
        columns = self.encoding.columns
        return not self.multi_output and (columns is None or columns.index is None)

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)

    @property
    def dtype(self) -> np.dtype:
        return self.encoding.dtype

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the features."""
        return self.itemsize * self.nnz

    def _each(self, name: str) -> list[Any]:
        """An attribute of the observations of every partition."""
        workers = self.workers
        return workers.values(workers.map(attrgetter(f"obs.{name}"), self.pieces))

    @cached_property
    def weight(self) -> float:
        return sum(self._each("weight"))

    def average(self, measure: Callable[[Observations], float]) -> float:
        workers = self.workers
        common = workers.scatter(self.encoding), workers.scatter(measure)
        parts = workers.values(workers.map(_measured, self.pieces, common=common))
        means, weights = zip(*parts, strict=True)
        return float(np.average(means, weights=weights))

    @cached_property
    def max_abs(self) -> float:
        return max(self._each("max_abs"))

    @cached_property
    def fingerprint(self) -> str:
        return joblib.hash(self._each("fingerprint"))


def _measured(
    encoding: LabelEncoding, measure: Callable[[Observations], float], piece: Partition
) -> tuple[float, float]:
    obs, _ = piece.encoded(encoding)
    return measure(obs), obs.weight


def read_partitions(
    schema: Any, rows: FitInput, chosen: list[np.ndarray] | None, **options: Any
) -> PartitionedData:
    """Have partitions (or their ``chosen`` rows) validated; number tasks and classes together."""
    y = rows.y
    if y is None:
        raise ValueError(
            f"This {type(schema).__name__} estimator requires y to be passed, but the target y is "
            "None."
        )
    recipes = partitions(rows.X, y=y, task=rows.task, sample_weight=rows.sample_weight)
    workers = current_workers()
    pieces = _read(workers, schema, recipes, chosen, options)
    summaries = workers.values(workers.map(summarize, pieces))
    schema.n_features_in_ = summaries[0].columns_in
    if summaries[0].names is not None:
        schema.feature_names_in_ = summaries[0].names
    columns = None
    if summaries[0].multi_output:
        names = list(y.columns) if hasattr(y, "columns") else list(range(y.shape[1]))
        columns = read_tasks(names, "the column names of y")
    tasks = _all_tasks(summaries, columns)
    classes = seen = None
    if summaries[0].classes is not None:
        classes = np.unique(np.concatenate([one.classes for one in summaries]))
        check_classes(classes, multi_output=columns is not None)
    task_index = [encode_tasks(one.tasks, tasks) for one in summaries]
    if classes is not None:
        seen = np.zeros((len(tasks), len(classes)), dtype=bool)
        for one, own in zip(summaries, task_index, strict=True):
            seen[np.ix_(own, np.searchsorted(classes, one.classes))] |= one.seen
    dtype = np.result_type(*(one.dtype for one in summaries))
    encoding = LabelEncoding(tasks, classes, dtype)
    firsts = _firsts(summaries, task_index, len(tasks))
    return PartitionedData(
        workers,
        pieces,
        task_index,
        firsts,
        encoding,
        seen,
        n_rows=sum(one.n_rows for one in summaries),
        n_features=summaries[0].n_features,
        nnz=sum(one.nnz for one in summaries),
        multi_output=columns is not None,
        complete=all(one.complete and len(one.tasks) == len(tasks) for one in summaries),
    )


def _read(
    workers: Workers, schema: Any, recipes: list[dict[str, Any]], chosen: Any, options: dict
) -> list[Future]:
    """Pieces of the partitions; as many of them stay in memory as there is room for."""
    from dask import delayed

    read = delayed(read_partition, pure=False)
    chosen = [None] * len(recipes) if chosen is None else chosen
    parts = [
        read(schema, options, number, kept, *recipe.values())
        for number, (recipe, kept) in enumerate(zip(recipes, chosen, strict=True))
        if kept is None or len(kept)
    ]
    return workers.persist(parts)


def _all_tasks(summaries: list[Any], columns: np.ndarray | None) -> np.ndarray:
    """Labels of all tasks: sorted, or in the order of the columns of y."""
    kinds = {one.tasks.dtype.kind: number for number, one in enumerate(summaries)}
    if len(kinds) > 1:
        raise ValueError(
            "task has labels of different types, such as numbers in partition "
            f"{min(kinds.values())} and text in partition {max(kinds.values())}; use one type."
        )
    tasks = np.unique(np.concatenate([one.tasks for one in summaries]))
    if columns is None:
        return tasks
    unseen = columns[~np.isin(columns, tasks)]
    if unseen.size:
        raise ValueError(
            f"y has columns without any observed value: {unseen.tolist()}. Drop these columns."
        )
    return columns


def _firsts(summaries: list[Any], task_index: list, tasks: int) -> list[np.ndarray]:
    """Where the rows of each partition, task by task, would lie in one table of all."""
    if summaries[0].multi_output:
        starts = np.cumsum([0, *(one.n_rows for one in summaries[:-1])])
        return [np.array([start]) for start in starts]
    counts = np.zeros(tasks, dtype=np.intp)
    for one, own in zip(summaries, task_index, strict=True):
        counts[own] += np.diff(one.offsets)
    before, firsts = np.cumsum(counts) - counts, []
    for one, own in zip(summaries, task_index, strict=True):
        firsts.append(before[own])
        before[own] += np.diff(one.offsets)
    return firsts
