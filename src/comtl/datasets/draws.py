"""What the makers of synthetic problems draw: rows, relations and factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch


def assemble(
    coef: np.ndarray, rows: tuple[int, int], noise: float, rng: np.random.Generator, **truth: Any
) -> Bunch:
    """Draw training and test rows for given weights (T, P)."""
    parts: dict[str, Any] = {"coef": coef, "W": coef.T, **truth}
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


def correlation(size: int, rng: np.random.Generator) -> np.ndarray:
    """Correlation matrix of ``AAᵀ`` with square standard normal ``A``."""
    A = rng.standard_normal((size, size))
    covariance = A @ A.T
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


def rows_with(covariance: np.ndarray, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Columns drawn independently, rows related by the covariance."""
    return np.linalg.cholesky(covariance) @ rng.standard_normal((len(covariance), columns))


def grouped(
    ranges: list[tuple[int, int]], n_features: int, n_tasks: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Factors of tasks in groups of equal size, each on its own range of 15 latent features."""
    F = rng.standard_normal((n_features, 15))
    G = np.zeros((n_tasks, 15))
    groups = np.arange(n_tasks) * len(ranges) // n_tasks
    for group, (first, last) in enumerate(ranges):
        members = groups == group
        G[members, first:last] = rng.standard_normal((members.sum(), last - first))
    return {"F": F, "G": G, "task_clusters": groups}


def related(n_features: int, n_tasks: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Relations Σ of the features and Ω of the tasks."""
    sigma, omega = correlation(n_features, rng), correlation(n_tasks, rng)
    return {"feature_relation": sigma, "task_relation": omega}
