"""Planted co-clusters: weights that are nearly constant on blocks of features and tasks."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from .draws import assemble


def make_coclusters(
    *,
    n_features: int = 30,
    n_tasks: int = 60,
    n_feature_clusters: int = 4,
    n_task_clusters: int = 3,
    n_train: int = 15,
    n_test: int = 50,
    spread: float = 0.1,
    noise: float = 1.0,
    random_state: int = 0,
) -> Bunch:
    """Return tasks whose weights are constant on blocks of features and tasks, plus a spread.

    Parameters
    ----------
    n_features, n_tasks : int
        Sizes.
    n_feature_clusters, n_task_clusters : int
        Numbers of planted clusters.
    n_train, n_test : int
        Rows of each task.
    spread : float, default=0.1
        Standard deviation of the weights around their block's value.
    noise : float, default=1.0
        Standard deviation of the noise.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Bunch
        ``X, y, task``, the same with ``_test``, the weights ``coef`` (tasks × features) and ``W``
        (features × tasks), ``feature_clusters`` and ``task_clusters``.

    Examples
    --------
    >>> from comtl.datasets import make_coclusters
    >>> data = make_coclusters(n_tasks=6)
    >>> data.task_clusters.shape
    (6,)
    """
    rng = np.random.default_rng(random_state)
    features = rng.permutation(np.arange(n_features) % n_feature_clusters)
    tasks = rng.permutation(np.arange(n_tasks) % n_task_clusters)
    blocks = rng.standard_normal((n_task_clusters, n_feature_clusters))
    coef = blocks[tasks][:, features] + spread * rng.standard_normal((n_tasks, n_features))
    return assemble(
        coef, (n_train, n_test), noise, rng, feature_clusters=features, task_clusters=tasks
    )
