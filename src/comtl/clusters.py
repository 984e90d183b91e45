"""Clusters of features and tasks, read off what the rotations of the factors cannot change."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score

from .arrays import Array, to_numpy
from .factors import thin_svd
from .linear import LinearTasks

MOST_CLUSTERS, SILHOUETTE_ROWS, MOST_DIRECTIONS = 8, 2000, 30
"""Most clusters tried where their number is open, points that are compared with all others, and
leading directions that distances are measured in: a few clusters span fewer."""


def cluster_rows(points: np.ndarray, count: int | None, seed: int) -> np.ndarray:
    """Label rows by k-means in order of first row; without ``count`` by the best silhouette."""
    scale = np.abs(points).max() or 1.0
    points = points / scale
    distinct = len(np.unique(points.round(9), axis=0))
    with warnings.catch_warnings():
        # Points that all but coincide leave fewer clusters, which is an answer and no failure.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if count is not None:
            labels = _means(points, min(count, distinct), seed)
        else:
            labels = _clearest(points, min(MOST_CLUSTERS, distinct - 1), seed)
    return in_order(labels)


def in_order(labels: np.ndarray) -> np.ndarray:
    """Number clusters in the order of their first row, without gaps."""
    _, first, places = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[places]


def _means(points: np.ndarray, count: int, seed: int) -> np.ndarray:
    from sklearn.cluster import KMeans  # here, for it takes a twentieth of the time of import comtl

    return KMeans(count, n_init=10, random_state=seed).fit_predict(points)


def _clearest(points: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Labels of the number of clusters, two to ``most``, that are farthest apart for their size."""
    tried = [_means(points, count, seed) for count in range(2, most + 1)]
    tried = [labels for labels in tried if 1 < len(np.unique(labels)) < len(points)]
    if not tried:
        return np.zeros(len(points), dtype=np.intp)
    sample = min(len(points), SILHOUETTE_ROWS)
    clear = [
        silhouette_score(points, labels, sample_size=sample, random_state=seed) for labels in tried
    ]
    return tried[int(np.argmax(clear))]


def clusters_of(
    linear: LinearTasks,
    units: tuple[Array, Array],
    counts: tuple[int | None, int | None],
    *,
    with_levels: bool,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of features and of tasks, from the singular vectors of the weights.

    ``units`` are shift and inverse scale of the features; ``with_levels`` counts levels of tasks.
    """
    # Weights are small, and k-means is that of scikit-learn, on the host.
    shift, scale = map(to_numpy, units)
    scale = np.where(scale > 0, scale, 1.0)
    weights, columns = linear.weights, linear.columns
    directions, task_factor = to_numpy(weights.directions), to_numpy(weights.task_factor)
    # Distances of the rows of Uσ and of Vσ, where W = U diag(σ) Vᵀ, are those of W.
    U, sigma, V = thin_svd(directions / scale[:, None], task_factor)
    features, tasks = ((side * sigma)[:, :MOST_DIRECTIONS] for side in (U, V))
    if with_levels:
        # Over rows of independent features the squared gap of two tasks is that of their weights
        # plus that of their levels.
        slopes = task_factor @ ((shift / scale) @ directions)
        levels = to_numpy(weights.intercepts) + slopes
        tasks = np.column_stack([tasks, levels - levels.mean()])
    if columns.index is not None:
        tasks = columns.by_task(tasks).reshape(len(columns.index), -1)
    return cluster_rows(features, counts[0], seed), cluster_rows(tasks, counts[1], seed)
