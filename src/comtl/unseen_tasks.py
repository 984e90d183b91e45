"""What predict does with tasks that fit never saw: the mean of all tasks serves, or an error.

``LinearTasks`` in ``linear.py`` holds the means.
"""

from __future__ import annotations

import numpy as np

from .phrases import warn_caller


def check_unseen(labels: np.ndarray, codes: np.ndarray, *, unseen_task: str, remedy: str) -> None:
    """Refuse tasks of code -1 with ``unseen_task="raise"``, else warn where all are such tasks."""
    unknown = codes < 0
    if not unknown.any():
        return
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
