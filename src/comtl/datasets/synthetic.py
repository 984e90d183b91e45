"""The paper's five synthetic sets.

The paper gives no scales for its sets; those here make zero predict with an RMSE near 5.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np
from numpy.random import Generator
from sklearn.utils import Bunch

from .draws import assemble, grouped, related, rows_with

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
    make.__doc__ = (draw.__doc__ or "").replace("PARAMETERS", PARAMETERS)
    return make


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
    truth = grouped([(0, 5), (5, 10), (10, 15)], n_features, n_tasks, rng)
    return 0.5 * truth["G"] @ truth["F"].T, truth


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
    truth = grouped([(0, 7), (3, 12), (8, 15)], n_features, n_tasks, rng)
    return 0.5 * truth["G"] @ truth["F"].T, truth


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
