"""Folds that treat every task alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from ..parameters import require_integer
from ..saving.registry import saved


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
