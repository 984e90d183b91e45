"""Exam scores of the Inner London Education Authority, one task a school."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from .files import PathLike, locate, read_columns
from .splits import share_of_each


def load_school(
    *, train_share: float | None = None, random_state: int = 0, data_home: PathLike | None = None
) -> Bunch:
    """Load the exam scores of 15,362 students of 139 schools.

    The 27 attributes describe the year, the student and the school; there is no column for the
    bias. (The paper counts 26; the published data have 27.)

    Parameters
    ----------
    train_share : float or None, default=None
        Share of every school's rows that trains, rounded, but at least one row; the paper takes
        0.2, 0.3 and 0.4. None: all rows, no split.
    random_state : int, default=0
        Seed of the split.
    data_home : path or None, default=None
        Folder of the data; by default the one that the environment variable COMTL_DATA names.

    Returns
    -------
    Bunch
        ``X, y, task, feature_names``, with a split also ``X_test, y_test, task_test``.

    Examples
    --------
    >>> from comtl_reproduction.loaders import load_school
    >>> data = load_school(train_share=0.2)  # doctest: +SKIP
    >>> data.X.shape, data.X_test.shape  # doctest: +SKIP
    ((3069, 27), (12293, 27))
    """
    columns = read_columns(locate("school", data_home))
    task = columns.pop("task").astype(np.intp)
    y = columns.pop("y").astype(np.float64)
    X = np.column_stack(list(columns.values())).astype(np.float64)
    if train_share is None:
        return Bunch(X=X, y=y, task=task, feature_names=list(columns))
    train = share_of_each(task, train_share, np.random.default_rng(random_state))
    return Bunch(
        X=X[train],
        y=y[train],
        task=task[train],
        X_test=X[~train],
        y_test=y[~train],
        task_test=task[~train],
        feature_names=list(columns),
    )
