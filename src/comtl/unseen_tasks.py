"""What predict does with tasks that fit never saw: the mean of all tasks serves, or an error."""

from __future__ import annotations

import numpy as np

from .phrases import warn_caller
from .rows.reading import encode_tasks


def codes_of_rows(
    labels: np.ndarray, tasks: np.ndarray, *, unseen_task: str, remedy: str
) -> np.ndarray:
    """Number of each row's task; -1, for which the mean serves, where fit never saw it.

    With ``unseen_task="raise"`` such tasks are refused; a model that knows none of them warns.
    """
    codes = encode_tasks(labels, tasks)
    unknown = codes < 0
    if not unknown.any():
        return codes
    names = np.unique(labels[unknown]).tolist()
    if unseen_task == "raise":
        raise ValueError(
            f"task holds labels that fit never saw: {names[:10]}. {remedy}, or set "
            'unseen_task="mean".'
        )
    if unknown.all():
        warn_caller(
            f"No task label is known to the model (such as {names[0]!r}); the mean of all "
            "tasks serves. Are the labels of the same type as in fit?",
            UserWarning,
        )
    return codes
