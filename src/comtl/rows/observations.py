"""The training observations, grouped by task, as every model takes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import joblib
import numpy as np
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from ..arrays import (
    Array,
    asarray_like,
    device_name,
    namespace,
    on_device,
    take,
    take_pairs,
    to_numpy,
)
from ..arrays.backends import is_sparse
from ..phrases import warn_caller

Matrix: TypeAlias = np.ndarray | sparse.csr_array


@dataclass(frozen=True, eq=False)
class Observations:
    """Rows, targets and weights sorted by task, one observation for each observed target."""

    partitioned: ClassVar[bool] = False  # whether the rows lie in partitions elsewhere

    X: Matrix
    y: np.ndarray  # in the type of X, or indices into classes
    weights: np.ndarray  # positive
    offsets: np.ndarray  # task t has observations offsets[t]:offsets[t + 1], at least one
    tasks: np.ndarray
    rows: np.ndarray | None = None  # row of each observation; None if observation i is row i
    classes: np.ndarray | None = None  # sorted; None for regression
    multi_output: bool = False

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)

    @property
    def n_observations(self) -> int:
        return self.y.shape[0]

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    @property
    def nnz(self) -> int:
        """Number of stored features."""
        X: Any = self.X
        return int(X.nnz) if is_sparse(X) else self.n_rows * self.n_features

    @property
    def dtype(self) -> np.dtype:
        return self.X.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of a number."""
        return int(namespace(self.weights).finfo(self.dtype).bits) // 8

    @property
    def weight(self) -> float:
        return float(namespace(self.weights).sum(self.weights))

    def average(self, measure: Callable[[Observations], float]) -> float:
        """Weighted mean over all observations, where ``measure`` gives that of some of them."""
        return measure(self)

    @property
    def max_abs(self) -> float:
        """Largest absolute target."""
        xp = namespace(self.weights)
        return float(xp.max(xp.abs(self.y)))

    @property
    def plain(self) -> bool:
        """Whether every observation has a row of its own."""
        return self.rows is None

    @property
    def complete(self) -> bool:
        """Whether each of several tasks has every row at the same weight."""
        if self.plain or self.n_tasks == 1 or self.n_observations != self.n_rows * self.n_tasks:
            return False
        xp = namespace(self.weights)
        weights = xp.reshape(self.weights, (self.n_tasks, self.n_rows))
        return bool(xp.all(weights == weights[:1, :]))

    @property
    def device(self) -> str:
        return device_name(self.X)

    @property
    def on_device(self) -> bool:
        return on_device(self.X)

    @property
    def seen(self) -> np.ndarray:
        """Whether a task has observations of a class, ``(n_tasks, n_classes)``."""
        assert self.classes is not None
        table = np.zeros((self.n_tasks, len(self.classes)), dtype=bool)
        table[self.codes, self.y] = True
        return table

    @property
    def fingerprint(self) -> str:
        """Hash of the observations."""
        parts = (self.X, self.y, self.codes, self.weights, self.rows, self.tasks, self.classes)
        return joblib.hash(parts)

    @cached_property
    def codes(self) -> np.ndarray:
        """Task of each observation, as an index into `tasks`."""
        return np.repeat(np.arange(self.n_tasks), np.diff(self.offsets))

    def one_vs_rest(self, columns: Any) -> Observations:
        """Targets -1 and +1: one class against the rest of its task's rows, by output column."""
        if columns.index is None:
            return replace(self, y=signs(self.y == 1, self.weights, self.dtype))
        part, _ = self.of_tasks(columns.task)
        y = signs(part.y == columns.label[part.codes], self.weights, self.dtype)
        return replace(part, y=y, tasks=np.arange(part.n_tasks))

    def of_tasks(self, chosen: np.ndarray) -> tuple[Observations, np.ndarray]:
        """Observations of some tasks, which may come twice, and their places among all."""
        sizes = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], sizes)
        part = replace(
            self,
            y=take(self.y, places),
            weights=take(self.weights, places),
            offsets=offsets,
            tasks=self.tasks[chosen],
            rows=places if self.rows is None else self.rows[places],
        )
        return part, places

    @classmethod
    def of_rows(
        cls, X: Matrix, y: np.ndarray, weights: np.ndarray, labels: np.ndarray | None
    ) -> Observations:
        """Observations of rows with a label each, or all of one task."""
        labels = np.zeros(y.shape[0], dtype=np.int64) if labels is None else labels
        kept = np.flatnonzero(to_numpy(weights))
        tasks, codes, counts = np.unique(labels[kept], return_inverse=True, return_counts=True)
        order = kept[np.argsort(codes, kind="stable")]
        if not np.array_equal(order, np.arange(y.shape[0])):  # else the arrays serve uncopied
            X, y, weights = (take(part, order) for part in (X, y, weights))
        return cls(X, y, weights, _offsets(counts), tasks)

    @classmethod
    def of_columns(
        cls,
        X: Matrix,
        y: np.ndarray,
        weights: np.ndarray,
        missing: np.ndarray,
        names: np.ndarray,
        *,
        partial: bool,
    ) -> Observations:
        """Observations of a table with a column for each task."""
        unseen = names[missing.all(axis=0)]
        if unseen.size and not partial:
            raise ValueError(
                f"y has columns without any observed value: {unseen.tolist()}. Drop these columns."
            )
        xp = namespace(weights)
        weights = xp.broadcast_to(xp.reshape(weights, (y.shape[0], -1)), y.shape)
        observed = ~missing & to_numpy(weights != 0)
        counts = observed.sum(axis=0)
        codes, rows = np.nonzero(observed.T)
        y, weights = take_pairs(y, rows, codes), take_pairs(weights, rows, codes)
        offsets, tasks = _offsets(counts[counts > 0]), names[counts > 0]
        return cls(X, y, weights, offsets, tasks, rows, multi_output=True)

    def with_classes(self, known: np.ndarray | None, *, partial: bool) -> Observations:
        """The same with class labels as indices into their classes, or into those ``known``."""
        data = self
        classes, y = np.unique(data.y, return_inverse=True)
        if known is not None:
            fresh = classes[~np.isin(classes, known)]
            if fresh.size:
                raise ValueError(
                    f"y holds classes that the model does not know: {fresh[:10].tolist()}. Fit a "
                    "model with rows of all classes."
                )
            return replace(data, y=np.searchsorted(known, classes)[y], classes=known)
        if data.multi_output and len(classes) > 2 and data.n_tasks == 1:
            warn_caller(
                "A column-vector y was passed when a 1d array was expected: with more than two "
                "classes it is read as one-dimensional. Pass y.ravel().",
                DataConversionWarning,
            )
            assert data.rows is not None
            data = replace(data, X=take(data.X, data.rows), rows=None, multi_output=False)
        if not partial:
            check_classes(classes, multi_output=data.multi_output)
        return replace(data, y=y, classes=classes)


def _offsets(counts: np.ndarray) -> np.ndarray:
    if not counts.size:
        raise ValueError("sample_weight is zero for every observed y; give some a weight above 0.")
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)


def check_classes(classes: np.ndarray, *, multi_output: bool) -> None:
    """Refuse a single class, and more than two in a table of targets."""
    if len(classes) == 1:
        raise ValueError(
            f"y holds only one class, {classes.tolist()[0]!r}; a classifier needs at least two "
            "(rows of weight zero do not count)."
        )
    if multi_output and len(classes) > 2:
        raise ValueError(
            "A two-dimensional y must be binary: two classes over all its columns, got "
            f"{len(classes)}: {classes[:10].tolist()}. For more classes pass a one-dimensional y "
            "with the task of each row."
        )


def signs(ones: np.ndarray, like: Array, dtype: Any) -> Array:
    """One where given and minus one elsewhere, in the library of ``like``."""
    return asarray_like(np.where(ones, 1.0, -1.0), like, dtype)
