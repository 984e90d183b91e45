"""Problems with a known truth: the paper's synthetic sets, and planted co-clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import Bunch


def _assemble(
    coef: np.ndarray, rows: tuple[int, int], noise: float, rng: np.random.Generator, **truth: Any
) -> Bunch:
    """Draw training and test rows for given weights (T, P)."""
    parts: dict[str, Any] = {"coef": coef, **truth}
    for count, end in zip(rows, ("", "_test"), strict=True):
        task = np.repeat(np.arange(len(coef)), count)
        X = rng.standard_normal((len(task), coef.shape[1]))
        signal = np.einsum("ij,ij->i", X, coef[task])
        parts |= {
            f"X{end}": X,
            f"y{end}": signal + noise * rng.standard_normal(len(task)),
            f"task{end}": task,
        }
    return Bunch(**parts)


def _correlation(size: int, rng: np.random.Generator) -> np.ndarray:
    """Correlation matrix of ``AAᵀ`` with square standard normal ``A``."""
    A = rng.standard_normal((size, size))
    covariance = A @ A.T
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


def _rows_with(covariance: np.ndarray, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Columns drawn independently, rows related by the covariance."""
    return np.linalg.cholesky(covariance) @ rng.standard_normal((len(covariance), columns))


def _grouped(
    ranges: list[tuple[int, int]], n_features: int, n_tasks: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Weights of tasks in groups, each group with its own range of 15 latent features."""
    F = rng.standard_normal((n_features, 15))
    G = np.zeros((n_tasks, 15))
    groups = np.arange(n_tasks) * len(ranges) // n_tasks
    for group, (first, last) in enumerate(ranges):
        members = groups == group
        G[members, first:last] = rng.standard_normal((members.sum(), last - first))
    return 0.5 * G @ F.T, F, G, groups


def make_synthetic(
    name: str = "syn1",
    *,
    n_features: int = 20,
    n_tasks: int = 30,
    n_train: int = 25,
    n_test: int = 75,
    noise: float = 1.0,
    random_state: int = 0,
) -> Bunch:
    """Return one of the paper's five synthetic sets.

    "syn1": three groups of tasks on five latent features each; "syn2": overlapping groups;
    "syn3": two factors with related rows; "syn4": three factors; "syn5": matrix-normal weights.
    The paper gives no scales; these make zero predict with an RMSE near 5.

    Parameters
    ----------
    name : {"syn1", "syn2", "syn3", "syn4", "syn5"}, default="syn1"
        Which set.
    n_features, n_tasks : int
        Sizes.
    n_train, n_test : int
        Rows of each task.
    noise : float, default=1.0
        Standard deviation of the noise.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Bunch
        ``X, y, task``, the same with ``_test``, the true weights ``coef`` (tasks × features), and
        the factors or clusters they were made of.

    Examples
    --------
    >>> from comtl.datasets import make_synthetic
    >>> data = make_synthetic("syn4")
    >>> data.X.shape, data.coef.shape
    ((750, 20), (30, 20))
    """
    rng = np.random.default_rng(random_state)
    makers: dict[str, Callable[[], tuple[np.ndarray, dict[str, Any]]]] = {
        "syn1": lambda: _from_groups([(0, 5), (5, 10), (10, 15)]),
        "syn2": lambda: _from_groups([(0, 7), (3, 12), (8, 15)]),
        "syn3": lambda: _from_factors(15, 15, False),
        "syn4": lambda: _from_factors(5, 3, True),
        "syn5": lambda: _from_normal(),
    }

    def _from_groups(ranges: list[tuple[int, int]]) -> tuple[np.ndarray, dict[str, Any]]:
        coef, F, G, groups = _grouped(ranges, n_features, n_tasks, rng)
        return coef, {"F": F, "G": G, "task_clusters": groups}

    def _from_factors(K1: int, K2: int, core: bool) -> tuple[np.ndarray, dict[str, Any]]:
        sigma, omega = _correlation(n_features, rng), _correlation(n_tasks, rng)
        F, G = _rows_with(sigma, K1, rng), _rows_with(omega, K2, rng)
        truth = {"F": F, "G": G, "feature_relation": sigma, "task_relation": omega}
        if not core:
            return G @ F.T / 3.5, truth
        S = rng.uniform(size=(K1, K2))
        return (F @ S @ G.T).T / 2.0, {**truth, "S": S}

    def _from_normal() -> tuple[np.ndarray, dict[str, Any]]:
        sigma, omega = _correlation(n_features, rng), _correlation(n_tasks, rng)
        coef = _rows_with(omega, n_features, rng) @ np.linalg.cholesky(sigma).T
        return coef, {"feature_relation": sigma, "task_relation": omega}

    if name not in makers:
        raise ValueError(f"name must be one of {', '.join(makers)}, got {name!r}.")
    coef, truth = makers[name]()
    return _assemble(coef, (n_train, n_test), noise, rng, **truth)


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
        ``X, y, task``, the same with ``_test``, the true ``coef`` (tasks × features),
        ``feature_clusters`` and ``task_clusters``.

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
    return _assemble(
        coef, (n_train, n_test), noise, rng, feature_clusters=features, task_clusters=tasks
    )
