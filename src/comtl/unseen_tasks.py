"""What predict does with tasks that fit never saw: the mean of all tasks, or an error."""

import numpy as np

from .phrases import warn_caller

HINT = (
    " Are the labels of the same type as in fit? In cross-validation, did a fold hold out whole "
    "tasks, as KFold does on sorted rows (use KFold(shuffle=True) or TaskStratifiedKFold)?"
)


def check_unseen(labels: np.ndarray, codes: np.ndarray, *, unseen_task: str, remedy: str) -> None:
    """Refuse tasks of code -1 with ``unseen_task="raise"``, else warn where all are such tasks."""
    unknown = codes < 0
    if not unknown.any():
        return
    names = np.unique(labels[unknown]).tolist()
    hint = HINT if unknown.all() else ""
    if unseen_task == "raise":
        raise ValueError(
            f"task holds labels that fit never saw: {names[:10]}. {remedy}, or set "
            f'unseen_task="mean".{hint}'
        )
    if hint:
        warn_caller(
            f"No task label is known to the model (such as {names[0]!r}); predictions are "
            f"those of the mean of all tasks.{hint}",
            UserWarning,
        )
