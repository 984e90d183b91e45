"""What a user hands over for a fit, and parts of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples

from .arrays import on_device, taken, to_numpy
from .data import read_rows, read_training
from .device_data import as_rows
from .fitted import FittedTasks
from .folds import TaskStratifiedKFold
from .frames import read_classes
from .parameters import require_integer
from .task_data import TaskData

Split: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Numbers of the rows to learn from, and of those held out."""


@dataclass(frozen=True, eq=False)
class Rows:
    """What a user hands over for a fit."""

    X: Any
    y: Any
    task: Any = None
    sample_weight: Any = None

    def take(self, numbers: np.ndarray) -> Rows:
        """Some of the rows."""

        def part(item: Any) -> Any:
            if item is None or np.isscalar(item):
                return item
            if on_device(item):
                return taken(as_rows(item) if item is self.X else item, numbers)
            # Some sparse formats and containers have no index of their own.
            return _safe_indexing(indexable(item)[0], numbers)

        return Rows(part(self.X), part(self.y), part(self.task), part(self.sample_weight))

    def read(self, reader: FittedTasks, **options: Any) -> TaskData:
        """Validated cells; ``reader`` learns the columns."""
        cells = (self.X, self.y, self.task, self.sample_weight)
        return read_training(reader, *cells, classification=reader._classification, **options)

    def read_more(self, model: FittedTasks, reader: FittedTasks) -> TaskData:
        """Validated cells of further tasks for a model; ``reader`` learns the columns again."""
        read_rows(model, self.X, self.task)
        return self.read(reader, classes=model._known_classes)

    def here(self, reader: FittedTasks) -> Rows:
        """Rows in the memory of this process, for models that need them there."""
        return self

    def nearby(self, reader: FittedTasks, data: TaskData) -> tuple[Rows, TaskData]:
        """Rows and their cells as they serve many fits best: here they are in memory anyway."""
        return self, data

    @contextmanager
    def side_by_side(self, n_jobs: int | None) -> Iterator[int | None]:
        """Set up the jobs of many fits to these rows, and tell how many there may be."""
        yield n_jobs

    @property
    def counted(self) -> np.ndarray:
        """Numbers of the rows that have a weight: one of weight zero is no row."""
        if self.sample_weight is None or np.isscalar(self.sample_weight):
            return np.arange(_num_samples(self.X))
        weights = np.asarray(to_numpy(self.sample_weight), dtype=float)
        return np.flatnonzero(weights.reshape(len(weights), -1).max(axis=1) > 0.0)

    def splits(self, reader: FittedTasks, cv: Any) -> list[Split]:
        """Numbers of the rows of the folds; a number of folds cuts every task and class alike."""
        rows, labels = read_rows(reader, self.X, self.task)
        y, counted = to_numpy(self.y), self.counted
        classes = read_classes(y)[0] if reader._classification else None
        # Splitters see the numbers of rows on a device, not the rows.
        rows = np.zeros((rows.shape[0], 1)) if on_device(rows) else rows
        if len(counted) == rows.shape[0]:
            return fold_numbers(cv, rows, y, labels, classes)
        if not isinstance(cv, int | np.integer) and not callable(getattr(cv, "split", None)):
            given = fold_numbers(cv, rows, y, labels, classes)
            return [_both(split, lambda part: part[np.isin(part, counted)]) for split in given]
        some = None if labels is None else labels[counted]
        seen = None if classes is None else classes[counted]
        drawn = fold_numbers(cv, rows[counted], _safe_indexing(y, counted), some, seen)
        return [_both(split, lambda part: counted[part]) for split in drawn]


def _both(split: Split, change: Callable[[np.ndarray], np.ndarray]) -> Split:
    train, test = split
    return change(train), change(test)


def fold_numbers(
    cv: Any, rows: Any, y: Any, labels: np.ndarray | None, classes: np.ndarray | None
) -> list[Split]:
    """Row numbers of the training and test part of each fold."""
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        strata = None
        if classes is not None and (classes.ndim == 1 or classes.shape[1] == 1):
            strata = classes.ravel()
        splitter = TaskStratifiedKFold(require_integer("cv", cv, low=2))
        return list(splitter.split(rows, strata, labels))
    with warnings.catch_warnings():
        # Tasks are offered to every splitter as groups, also to those without use for them.
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        return list(check_cv(cv).split(rows, y, labels))
