"""The paper's five synthetic sets, and planted co-clusters.

The paper gives no scales for its sets; those here make zero predict with an RMSE near 5.
"""

from collections.abc import Callable
from inspect import cleandoc
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.utils import Bunch

Drawn = tuple[np.ndarray, dict[str, np.ndarray]]
"""Weights (T, P), and what they are made of."""
PARAMETERS = """Parameters
    ----------
    n_features, n_tasks : int
        Sizes ``P`` and ``T``.
    n_train, n_test : int
        Rows of each task.
    noise : float, default=1.0
        Standard deviation of the noise.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Bunch
        ``X, y, task``, the same with ``_test``, the weights ``coef`` (tasks × features) and ``W``
        (features × tasks),"""
"""What the docstrings of the five have in common, in place of their word PARAMETERS."""


def maker(draw: Callable[[int, int, Generator], Drawn]) -> Callable[..., Bunch]:
    """Public function that draws weights and then rows, with the name and docstring of ``draw``."""

    def make(
        *,
        n_features: int = 20,
        n_tasks: int = 30,
        n_train: int = 25,
        n_test: int = 75,
        noise: float = 1.0,
        random_state: int = 0,
    ) -> Bunch:
        rng = np.random.default_rng(random_state)
        coef, truth = draw(n_features, n_tasks, rng)
        return assemble(coef, (n_train, n_test), noise, rng, **truth)

    make.__name__ = make.__qualname__ = draw.__name__
    make.__doc__ = cleandoc(draw.__doc__ or "").replace("PARAMETERS", cleandoc(PARAMETERS))
    return make


def assemble(
    coef: np.ndarray, rows: tuple[int, int], noise: float, rng: Generator, **truth: Any
) -> Bunch:
    """Draw training and test rows for given weights (T, P)."""
    parts: dict[str, Any] = {"coef": coef, "W": coef.T, **truth}
    for count, end in zip(rows, ("", "_test"), strict=True):
        task = np.repeat(np.arange(len(coef)), count)
        X = rng.standard_normal((len(task), coef.shape[1]))
        signal = np.einsum("ij,ij->i", X, coef[task])
        y = signal + noise * rng.standard_normal(len(task))
        parts |= {f"X{end}": X, f"y{end}": y, f"task{end}": task}
    return Bunch(**parts)


def correlation(size: int, rng: Generator) -> np.ndarray:
    """Correlation matrix of ``AAᵀ`` with square standard normal ``A``."""
    A = rng.standard_normal((size, size))
    covariance = A @ A.T
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


def rows_with(covariance: np.ndarray, columns: int, rng: Generator) -> np.ndarray:
    """Columns drawn independently, rows related by the covariance."""
    return np.linalg.cholesky(covariance) @ rng.standard_normal((len(covariance), columns))


def grouped(ranges: list[tuple[int, int]], n_features: int, n_tasks: int, rng: Generator) -> Drawn:
    """``F Gᵀ / 2`` of tasks in groups of equal size, each on its own range of 15 columns."""
    F = rng.standard_normal((n_features, 15))
    G = np.zeros((n_tasks, 15))
    groups = np.arange(n_tasks) * len(ranges) // n_tasks
    for group, (first, last) in enumerate(ranges):
        members = groups == group
        G[members, first:last] = rng.standard_normal((members.sum(), last - first))
    return 0.5 * G @ F.T, {"F": F, "G": G, "task_clusters": groups}


def related(n_features: int, n_tasks: int, rng: Generator) -> dict[str, np.ndarray]:
    """Relations Σ of the features and Ω of the tasks."""
    sigma, omega = correlation(n_features, rng), correlation(n_tasks, rng)
    return {"feature_relation": sigma, "task_relation": omega}


@maker
def make_syn1(n_features: int, n_tasks: int, rng: Generator) -> Drawn:
    """Return the paper's syn1: three groups of tasks without overlap.

    ``W = F Gᵀ / 2`` with 15 normal latent features ``F``; the tasks of each group combine five
    latent features that no other group uses.

    PARAMETERS ``F``, ``G`` and the groups as ``task_clusters``. Features have
        no clusters here, as every latent feature uses all of them.

    Examples
    --------
    >>> from comtl.datasets import make_syn1
    >>> data = make_syn1()
    >>> data.X.shape, data.W.shape, data.task_clusters.tolist()[::10]
    ((750, 20), (20, 30), [0, 1, 2])
    """
    return grouped([(0, 5), (5, 10), (10, 15)], n_features, n_tasks, rng)


@maker
def make_syn2(n_features: int, n_tasks: int, rng: Generator) -> Drawn:
    """Return the paper's syn2: three overlapping groups of tasks.

    ``W = F Gᵀ / 2`` as in `make_syn1`, but the groups combine the latent features 1-7, 4-12 and
    9-15.

    PARAMETERS ``F``, ``G`` and the groups as ``task_clusters``. Features have
        no clusters here, as every latent feature uses all of them.

    Examples
    --------
    >>> from comtl.datasets import make_syn2
    >>> data = make_syn2()
    >>> (data.G[0] != 0).sum(), (data.G[15] != 0).sum()
    (np.int64(7), np.int64(9))
    """
    return grouped([(0, 7), (3, 12), (8, 15)], n_features, n_tasks, rng)


@maker
def make_syn3(n_features: int, n_tasks: int, rng: Generator) -> Drawn:
    """Return the paper's syn3: two factors with related rows.

    ``W = F Gᵀ / 3.5`` with 15 columns each, drawn from N(0, Σ) and N(0, Ω). Σ and Ω are the
    correlation matrices of ``AAᵀ`` with square standard normal ``A``.

    PARAMETERS ``F``, ``G``, Σ as ``feature_relation`` and Ω as ``task_relation``.
        There are no clusters.

    Examples
    --------
    >>> from comtl.datasets import make_syn3
    >>> data = make_syn3()
    >>> data.F.shape, data.G.shape, data.task_relation.shape
    ((20, 15), (30, 15), (30, 30))
    """
    truth = related(n_features, n_tasks, rng)
    truth["F"] = rows_with(truth["feature_relation"], 15, rng)
    truth["G"] = rows_with(truth["task_relation"], 15, rng)
    return truth["G"] @ truth["F"].T / 3.5, truth


@maker
def make_syn4(n_features: int, n_tasks: int, rng: Generator) -> Drawn:
    """Return the paper's syn4: three factors, two of them with related rows.

    ``W = F S Gᵀ / 2`` with ``F`` (5 columns) and ``G`` (3 columns) as in `make_syn3`, and the core
    ``S`` uniform on (0, 1).

    PARAMETERS ``F``, ``S``, ``G``, Σ as ``feature_relation`` and Ω as
        ``task_relation``. There are no clusters.

    Examples
    --------
    >>> from comtl.datasets import make_syn4
    >>> data = make_syn4()
    >>> data.F.shape, data.S.shape, data.G.shape
    ((20, 5), (5, 3), (30, 3))
    """
    truth = related(n_features, n_tasks, rng)
    truth["F"] = rows_with(truth["feature_relation"], 5, rng)
    truth["G"] = rows_with(truth["task_relation"], 3, rng)
    truth["S"] = rng.uniform(size=(5, 3))
    return (truth["F"] @ truth["S"] @ truth["G"].T).T / 2.0, truth


@maker
def make_syn5(n_features: int, n_tasks: int, rng: Generator) -> Drawn:
    """Return the paper's syn5: matrix-normal weights.

    The columns of ``W`` are related by Ω and its rows by Σ, both as in `make_syn3`.

    PARAMETERS Σ as ``feature_relation`` and Ω as ``task_relation``. There are no
        factors and no clusters.

    Examples
    --------
    >>> from comtl.datasets import make_syn5
    >>> data = make_syn5()
    >>> data.W.shape, data.feature_relation.shape
    ((20, 30), (20, 20))
    """
    truth = related(n_features, n_tasks, rng)
    across = rows_with(truth["task_relation"], n_features, rng)
    return across @ np.linalg.cholesky(truth["feature_relation"]).T, truth


SYNTHETIC = MappingProxyType(
    {"syn1": make_syn1, "syn2": make_syn2, "syn3": make_syn3, "syn4": make_syn4, "syn5": make_syn5}
)
"""The paper's five sets by name."""


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
