"""One X and one y for each task, stacked into what `fit` takes."""

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse

from .frames import column_names, is_frame, read_tasks


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
