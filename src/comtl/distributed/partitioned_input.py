"""What a user hands over for a fit as Dask collections."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import joblib
import numpy as np

from ..arrays import DENSE_BYTES
from ..models.task_model import TaskModel
from ..rows.fit_input import FitInput
from ..rows.folds import counted_folds, counts
from ..rows.reading import read_classes, read_rows
from .dask_collections import current_workers, partitions, row_chunks
from .executors import DaskWorkers
from .partitioned_data import read_partitions

MOST_BYTES = 4 * 2**30
"""Features that are brought together in one process for models that need them there."""


@dataclass(frozen=True, eq=False)
class PartitionedInput(FitInput):
    """Dask collections; ``chosen`` holds the rows of each partition that count, or is None."""

    chosen: list[np.ndarray] | None = None

    def read(self, schema: TaskModel, **options: Any) -> Any:
        """Have the partitions validated where they are; ``schema`` learns the columns."""
        return read_partitions(schema, self, self.chosen, **options)

    def read_more(self, model: TaskModel, schema: TaskModel) -> Any:
        """Have the partitions of further tasks validated; their columns must be those of fit."""
        data = self.read(schema, classes=model._linear.classes)
        names = [getattr(one, "feature_names_in_", None) for one in (model, schema)]
        same = names[0] is None or names[1] is None or np.array_equal(names[0], names[1])
        if model.n_features_in_ != schema.n_features_in_ or not same:
            raise ValueError(
                f"X has {schema.n_features_in_} columns, but {type(model).__name__} was fitted to "
                f"{model.n_features_in_}; hand over the same ones in the same order."
            )
        return data

    def here(self, schema: TaskModel) -> FitInput:
        """Rows in the memory of this process, unless there are too many for it."""
        size = self.read(copy.copy(schema)).nbytes
        if size > MOST_BYTES:
            raise ValueError(
                f"{type(schema).__name__} brings its rows together in one process, and these take "
                f"{size / 2**30:.1f} GiB, more than {MOST_BYTES / 2**30:.0f}: use a Hierarchical "
                "or a BiFactor model, which leave rows where they are."
            )
        return self.gathered()

    def nearby(self, schema: TaskModel, data: Any) -> tuple[FitInput, Any]:
        """Little data is brought here, so that many fits run side by side."""
        if data.nbytes > DENSE_BYTES:
            return self, data
        rows = self.gathered()
        return rows, rows.read(schema)

    def gathered(self) -> GatheredInput:
        import dask

        return GatheredInput(*dask.compute(self.X, self.y, self.task, self.sample_weight))

    @contextmanager
    def side_by_side(self, n_jobs: int | None) -> Iterator[int | None]:
        """One fit after the other: each has the whole cluster at work."""
        yield 1

    def take(self, numbers: np.ndarray) -> PartitionedInput:
        ends = np.cumsum(self._sizes)
        numbers = np.sort(numbers)
        borders = np.searchsorted(numbers, ends)
        parts = np.split(numbers, borders[:-1])
        starts = np.concatenate([[0], ends[:-1]])
        chosen = [part - start for part, start in zip(parts, starts, strict=True)]
        return replace(self, chosen=chosen)

    @cached_property
    def _sizes(self) -> Sequence[int]:
        """Rows of each partition, read where Dask does not know them."""
        return row_chunks(self.X) or self._run(lambda X, *others: X.shape[0])

    def splits(self, schema: TaskModel, cv: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Row numbers of the folds, as in one table; a label for each row comes here."""
        read = self._run(_labels, schema)
        known, labels, classes = (
            None if column[0] is None else np.concatenate(column)
            for column in zip(*read, strict=True)
        )
        assert known is not None
        rows = np.zeros((len(known), 1))
        return counted_folds(cv, rows, classes, labels, classes, np.flatnonzero(known))

    def _run(self, work: Any, *common: Any) -> list[Any]:
        """What some work says of every partition as given."""
        import dask

        parts = partitions(self.X, y=self.y, task=self.task, sample_weight=self.sample_weight)
        calls = [dask.delayed(work, pure=False)(*common, *part.values()) for part in parts]
        return list(dask.compute(*calls))


def _labels(
    schema: Any, X: Any, y: Any, task: Any, sample_weight: Any
) -> tuple[np.ndarray, Any, Any]:
    """Which rows of a partition count, their task labels and classes."""
    features, labels = read_rows(schema, X, task)
    classes = read_classes(y)[0] if schema._classification else None
    return counts(y, sample_weight, features.shape[0]), labels, classes


@dataclass(frozen=True, eq=False)
class GatheredInput(FitInput):
    """Rows that were brought together from a cluster; many fits to them go back to it."""

    @contextmanager
    def side_by_side(self, n_jobs: int | None) -> Iterator[int | None]:
        """Jobs on the workers of the cluster, unless a number of processes is asked for."""
        if n_jobs is not None or not isinstance(current_workers(), DaskWorkers):
            yield n_jobs
            return
        with joblib.parallel_config(backend="dask"):
            yield -1
