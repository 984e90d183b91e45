"""What a user hands over for a fit, and parts of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.model_selection import PredefinedSplit, check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples

from ..arrays import on_device, take, to_numpy
from ..parameters import require_integer
from .device_reading import as_rows
from .frames import is_partitioned, read_classes, read_values
from .observations import Observations
from .reading import read_rows, read_training

if TYPE_CHECKING:
    from ..models.task_model import TaskModel

Split: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Numbers of the rows to learn from, and of those held out."""


@dataclass(frozen=True, eq=False)
class FitInput:
    """What a user hands over for a fit."""

    X: Any
    y: Any
    task: Any = None
    sample_weight: Any = None

    def take(self, numbers: np.ndarray) -> FitInput:
        def part(item: Any) -> Any:
            if item is None or np.isscalar(item):
                return item
            if on_device(item):
                return take(as_rows(item) if item is self.X else item, numbers)
            # Some sparse formats and containers have no index of their own.
            return _safe_indexing(indexable(item)[0], numbers)

        return FitInput(part(self.X), part(self.y), part(self.task), part(self.sample_weight))

    def read(self, schema: TaskModel, **options: Any) -> Observations:
        """Validated observations; ``schema`` learns the columns."""
        parts = (self.X, self.y, self.task, self.sample_weight)
        return read_training(schema, *parts, classification=schema._classification, **options)

    def read_more(self, model: TaskModel, schema: TaskModel) -> Observations:
        """Validated observations of further tasks for a model; ``schema`` learns the columns
        again.
        """
        read_rows(model, self.X, self.task)
        return self.read(schema, classes=model._known_classes)

    def here(self, schema: TaskModel) -> FitInput:
        """Rows in the memory of this process, for models that need them there."""
        return self

    def nearby(self, schema: TaskModel, data: Observations) -> tuple[FitInput, Observations]:
        """Rows and their observations as they serve many fits best: here they are in memory
        anyway.
        """
        return self, data

    @contextmanager
    def side_by_side(self, n_jobs: int | None) -> Iterator[int | None]:
        """Set up the jobs of many fits to these rows, and tell how many there may be."""
        yield n_jobs

    @property
    def counted(self) -> np.ndarray:
        """Numbers of the rows with a target of positive weight."""
        return np.flatnonzero(counts(to_numpy(self.y), self.sample_weight, _num_samples(self.X)))

    def splits(self, schema: TaskModel, cv: Any) -> list[Split]:
        """Row numbers of the folds; a number of folds divides every task and class alike."""
        rows, labels = read_rows(schema, self.X, self.task)
        y = to_numpy(self.y)
        classes = read_classes(y)[0] if schema._classification else None
        # Splitters see the numbers of rows on a device, not the rows.
        rows = np.zeros((rows.shape[0], 1)) if on_device(rows) else rows
        return counted_folds(cv, rows, y, labels, classes, self.counted)


def rows_of(X: Any, y: Any, task: Any, sample_weight: Any) -> FitInput:
    """What a user hands over for a fit: rows in memory, or in partitions."""
    if not is_partitioned(X, y, task, sample_weight):
        return FitInput(X, y, task, sample_weight)
    from ..distributed.partitioned_input import PartitionedInput

    return PartitionedInput(X, y, task, sample_weight)


def counts(y: Any, sample_weight: Any, count: int) -> np.ndarray:
    """Whether each of ``count`` rows has a target with a weight."""
    parts = np.ones((count, 1), dtype=bool)
    if sample_weight is not None and not np.isscalar(sample_weight):
        weights = np.asarray(to_numpy(sample_weight), dtype=float)
        parts = weights.reshape(count, -1) > 0.0
    missing = read_values(y, "y")[1]
    if missing.ndim == 2:
        parts = parts & ~missing
    return np.asarray(parts.any(axis=1))


def counted_folds(
    cv: Any,
    rows: Any,
    y: Any,
    labels: np.ndarray | None,
    classes: np.ndarray | None,
    counted: np.ndarray,
) -> list[Split]:
    """Row numbers of the folds, without rows that do not count."""
    size = rows.shape[0]
    if len(counted) == size:
        return fold_numbers(cv, rows, y, labels, classes)
    drawn = isinstance(cv, int | np.integer) or callable(getattr(cv, "split", None))
    if drawn and not isinstance(cv, PredefinedSplit):
        y, labels = (it if it is None else _safe_indexing(it, counted) for it in (y, labels))
        some = None if classes is None else classes[counted]
        splits = fold_numbers(cv, rows[counted], y, labels, some)
        return [(counted[train], counted[test]) for train, test in splits]
    # Folds that name rows are of all of them.
    kept = np.isin(np.arange(size), counted)
    splits = []
    for split in fold_numbers(cv, rows, y, labels, classes):
        train, test = (np.arange(size)[np.asarray(part)] for part in split)
        splits.append((train[kept[train]], test[kept[test]]))
    splits = [(train, test) for train, test in splits if len(train) and len(test)]
    if not splits:
        raise ValueError(
            "cv has no fold with rows of positive sample_weight on both sides; name other folds, "
            "or leave out rows of weight zero."
        )
    return splits


def fold_numbers(
    cv: Any, rows: Any, y: Any, labels: np.ndarray | None, classes: np.ndarray | None
) -> list[Split]:
    """Row numbers of the training and test part of each fold."""
    from .folds import TaskStratifiedKFold

    if isinstance(cv, int | np.integer):
        cv = TaskStratifiedKFold(require_integer("cv", cv, low=2))
    if isinstance(cv, TaskStratifiedKFold):
        return list(cv.split(rows, classes, labels))
    with warnings.catch_warnings():
        # Tasks are offered to every splitter as groups, also to those without use for them.
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        splits = list(check_cv(cv).split(rows, y, labels))
    if not splits:
        raise ValueError(
            "cv has no folds. A generator of splits serves one fit only: pass list(...) of it, a "
            "number of folds or a splitter."
        )
    size = rows.shape[0]
    for part in (np.asarray(part) for split in splits for part in split):
        if part.size and part.dtype.kind != "b" and not -size <= part.min() <= part.max() < size:
            raise ValueError(
                f"cv names row {part.max() if part.max() >= size else part.min()}, but X has "
                f"{size} rows, numbered from 0."
            )
    return splits
