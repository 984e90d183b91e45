"""What a user hands over for a fit, parts of it, and rows that are stacked into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples

from ..arrays import on_device, take, to_numpy
from .device_reading import as_rows
from .frames import column_names, is_frame, is_partitioned, only_column
from .observations import Observations
from .reading import (
    check_indices,
    read_classes,
    read_rows,
    read_tasks,
    read_training,
    refuse_masked,
)

if TYPE_CHECKING:
    from ..models.task_model import TaskModel
    from .folds import Split


@dataclass(frozen=True, eq=False)
class FitInput:
    """What a user hands over for a fit."""

    X: Any
    y: Any
    task: Any = None
    sample_weight: Any = None

    @classmethod
    def of(cls, schema: TaskModel, X: Any, y: Any, task: Any, sample_weight: Any) -> Self:
        """What was handed over; where rows have tasks, one column of targets is all of them."""
        if task is not None or schema.task_column is not None:
            y, sample_weight = only_column(y), only_column(sample_weight)
        return cls(X, y, task, sample_weight)

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
        """Validated observations of further tasks; ``schema`` learns the columns again."""
        read_rows(model, self.X, self.task)
        return self.read(schema, classes=model._linear.classes)

    def here(self, schema: TaskModel) -> FitInput:
        """Rows in the memory of this process, for models that need them there."""
        return self

    def nearby(self, schema: TaskModel, data: Observations) -> tuple[FitInput, Observations]:
        """Rows and observations as they serve many fits best: here they are in memory anyway."""
        return self, data

    @contextmanager
    def side_by_side(self, n_jobs: int | None) -> Iterator[int | None]:
        """Set up the jobs of many fits to these rows, and tell how many there may be."""
        yield n_jobs

    @property
    def counted(self) -> np.ndarray:
        """Numbers of the rows with a target of positive weight."""
        from .folds import counts

        return np.flatnonzero(counts(to_numpy(self.y), self.sample_weight, _num_samples(self.X)))

    def splits(self, schema: TaskModel, cv: Any) -> list[Split]:
        """Row numbers of the folds; a number of folds divides every task and class alike."""
        from .folds import counted_folds

        rows, labels = read_rows(schema, self.X, self.task)
        y = to_numpy(self.y)
        classes = read_classes(y)[0] if schema._classification else None
        # Splitters see the numbers of rows on a device, not the rows.
        rows = np.zeros((rows.shape[0], 1)) if on_device(rows) else rows
        return counted_folds(cv, rows, y, labels, classes, self.counted)


def rows_of(schema: TaskModel, X: Any, y: Any, task: Any, sample_weight: Any) -> FitInput:
    """What a user hands over for a fit: rows in memory, or in partitions."""
    if not is_partitioned(X, y, task, sample_weight):
        return FitInput.of(schema, X, y, task, sample_weight)
    from ..distributed.partitioned_input import PartitionedInput

    return PartitionedInput.of(schema, X, y, task, sample_weight)


def pack_tasks(
    Xs: Sequence[Any], ys: Sequence[Any], tasks: Any = None
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Stack one X and one y for each task into what `fit` takes.

    Parameters
    ----------
    Xs : sequence of array-likes, sparse matrices or frames, each of shape (n_t, n_features)
        Features of each task; all frames with the same columns, or none.
    ys : sequence of array-likes, each of shape (n_t,)
        Targets of each task.
    tasks : array-like of shape (n_tasks,), optional
        Distinct labels of the tasks; 0, 1, ... if not given.

    Returns
    -------
    X : ndarray, csr_array or frame of shape (n, n_features)
        All rows, task after task; sparse if any of `Xs` is.
    y : ndarray of shape (n,)
        All targets.
    task : ndarray of shape (n,)
        The task of each row, for ``fit(X, y, task=task)``.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, task = pack_tasks([np.ones((2, 3)), np.zeros((1, 3))], [[1.0, 2.0], [3.0]])
    >>> X.shape, y, task
    ((3, 3), array([1., 2., 3.]), array([0, 0, 1]))
    """
    labels = read_tasks(range(len(Xs)) if tasks is None else tasks, "tasks")
    if not len(Xs) == len(ys) == len(labels):
        raise ValueError(
            f"Xs, ys and tasks must have one item for each task, got {len(Xs)}, {len(ys)} and "
            f"{len(labels)} items."
        )
    if not len(Xs):
        raise ValueError("Xs and ys are empty; give at least one task.")
    if len(np.unique(labels)) < len(labels):
        raise ValueError("tasks holds the same label twice; give each task another label.")
    for values in (*Xs, *ys):
        refuse_masked(values, "X or y of a task")
        check_indices(values)
    blocks: list[Any] = [X if is_frame(X) or sparse.issparse(X) else np.asarray(X) for X in Xs]
    targets = [np.asarray(y) for y in ys]
    for label, X, y in zip(labels.tolist(), blocks, targets, strict=True):
        _check_block(label, X, y, blocks[0])
    if is_frame(blocks[0]):
        X = nw.concat([nw.from_native(block) for block in blocks]).to_native()
    elif any(map(sparse.issparse, blocks)):
        X = sparse.vstack([sparse.csr_array(block) for block in blocks], format="csr")
    else:
        X = np.concatenate(blocks)
    return X, np.concatenate(targets), np.repeat(labels, [len(y) for y in targets])


def _check_block(label: Any, X: Any, y: np.ndarray, first: Any) -> None:
    if len(X.shape) != 2 or y.ndim != 1 or X.shape[0] != len(y):
        raise ValueError(
            f"Task {label!r} needs a two-dimensional X and a one-dimensional y of the same length, "
            f"got shapes {X.shape} and {y.shape}."
        )
    if not len(y):
        raise ValueError(f"Task {label!r} has no rows; leave it out of Xs, ys and tasks.")
    if X.shape[1] != first.shape[1]:
        raise ValueError(
            f"All tasks must have the same features: task {label!r} has {X.shape[1]} columns, the "
            f"first task {first.shape[1]}."
        )
    if is_frame(X) != is_frame(first) or column_names(X) != column_names(first):
        raise ValueError(
            f"Either all Xs are frames with the same columns or none is a frame; task {label!r} "
            "differs from the first task. Reorder or rename its columns, or convert all to arrays."
        )
