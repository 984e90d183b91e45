"""Folds that treat every task alike, and the row numbers of any folds."""

import warnings
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import PredefinedSplit, check_cv
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from ..arrays import to_numpy
from ..parameters import require_integer
from ..saving.registry import saved
from .reading import LEAST_WEIGHT, read_values

Split: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Numbers of the rows to learn from, and of those held out."""


@saved
class TaskStratifiedKFold:
    """Folds that each hold an equal part of every task, and of every class within it.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    random_state : int, default=0
        Seed of the order within a task.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import TaskStratifiedKFold
    >>> task = np.repeat(["a", "b"], [4, 2])
    >>> folds = TaskStratifiedKFold(n_splits=2).split(np.zeros((6, 1)), groups=task)
    >>> [np.unique(task[test], return_counts=True)[1].tolist() for _, test in folds]
    [[2, 1], [2, 1]]
    """

    def __init__(self, n_splits: int = 5, random_state: int = 0) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield row numbers of training and test parts; ``groups`` holds the tasks.

        Classes in ``y`` are spread evenly too; values, and targets of many columns, count for
        nothing.
        """
        require_integer("n_splits", self.n_splits, low=2)
        rows = _num_samples(X if groups is None else groups)
        if self.n_splits > rows:
            raise ValueError(f"cv={self.n_splits} folds need as many rows, got n_samples={rows}.")
        strata = np.zeros(rows, dtype=np.intp)
        for labels in (groups, _classes(y)):
            if labels is not None:
                _, codes = np.unique(np.asarray(labels), return_inverse=True)
                strata = strata * (codes.max() + 1) + codes
        chance = check_random_state(self.random_state).random_sample(rows)
        fold = np.empty(rows, dtype=np.intp)
        fold[np.lexsort((chance, strata))] = np.arange(rows) % self.n_splits
        for number in range(self.n_splits):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def _classes(y: Any) -> np.ndarray | None:
    """One class for each row, where there is one; fractions are values, as in scikit-learn."""
    if y is None:
        return None
    labels = np.asarray(y)
    if labels.size != len(labels):
        return None
    if labels.dtype.kind == "f":
        known = labels[np.isfinite(labels)]
        if np.any(known != np.floor(known)):
            return None
    return labels.ravel()


def counts(y: Any, sample_weight: Any, count: int) -> np.ndarray:
    """Whether each of ``count`` rows has a target with a weight."""
    parts = np.ones((count, 1), dtype=bool)
    if sample_weight is not None and not np.isscalar(sample_weight):
        weights = np.asarray(to_numpy(sample_weight), dtype=float)
        parts = weights.reshape(count, -1) >= LEAST_WEIGHT
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
