"""Figures of the relations of tasks and of features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ..models.task_model import TaskModel
from ..penalties.relations import Relation
from .plot_axes import draw_borders, heat, name_places, new_axes
from .views import BinnedAxis, unit_rows, view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 300
"""Rows beyond which neighbours within a cluster are put together, as means."""


def task_relation(model: TaskModel, *, ax: Axes | None = None) -> Axes:
    """How tasks are related: the learned relation as correlations, similar tasks side by side.

    For models that learn no relation, the cosine of the tasks' weights.

    Parameters
    ----------
    model : estimator
        Any fitted regressor or classifier of comtl; beyond two classes a task has a row for each.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import BiFactorRegressor, plot
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(80, 3)), np.repeat(["a", "b", "c", "d"], 20)
    >>> y = X[:, 0] * np.where(np.isin(task, ["a", "c"]), 1.0, -1.0)
    >>> ax = plot.task_relation(BiFactorRegressor(2, random_state=0).fit(X, y, task=task))
    >>> ax.images[0].get_array().round()[0].tolist()
    [1.0, 1.0, -1.0, -1.0]
    """
    shown = view(model)
    learned = _learned(model, "task_relation_", len(shown.values))
    names, clusters = shown.lines, shown.line_clusters
    return _drawn(shown.values, learned, names, clusters, "tasks", ax)


def feature_relation(model: TaskModel, *, ax: Axes | None = None) -> Axes:
    """How features are related: the learned relation as correlations, similar ones side by side.

    For models that learn no relation, the cosine of the features' weights over the tasks.

    Parameters
    ----------
    model : estimator
        Any fitted regressor or classifier of comtl.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import HierarchicalRegressor, plot
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(80, 3)), np.repeat(["a", "b", "c", "d"], 20)
    >>> y = X[:, 0] - X[:, 2] + 0.1 * rng.normal(size=80)
    >>> ax = plot.feature_relation(HierarchicalRegressor().fit(X, y, task=task))
    >>> ax.images[0].get_array().shape
    (3, 3)
    """
    shown = view(model)
    learned = _learned(model, "feature_relation_", len(shown.features))
    clusters = shown.feature_clusters
    return _drawn(shown.values.T, learned, shown.features, clusters, "features", ax)


def _learned(model: TaskModel, name: str, count: int) -> Relation | None:
    """The learned relation, if it covers all rows: tasks adapted later are not in it."""
    relation = getattr(model, name, None)
    return relation if isinstance(relation, Relation) and relation.shape[0] == count else None


def _drawn(
    rows: np.ndarray,
    learned: Relation | None,
    names: list[str],
    clusters: np.ndarray,
    what: str,
    ax: Axes | None,
) -> Axes:
    if len(rows) <= MOST:
        values = _similar(rows, learned, np.eye(len(rows)))
        order = similar_order(values)
        bins = BinnedAxis.of(order, np.zeros(len(rows), dtype=int), MOST)
        values = values[np.ix_(order, order)]
    else:
        bins = BinnedAxis.by_cluster(rows, clusters, MOST)
        values = _similar(rows, learned, bins.shares)
    ax = new_axes(ax, (6.4, 5.4))
    label = "cosine of weights" if learned is None else "learned correlation"
    heat(ax, values, label=label, limit=1.0)
    draw_borders(ax, bins, bins)
    for side in ("x", "y"):
        name_places(ax, bins.names(names), side)
    ax.set(title=f"Relation of {len(rows):,} {what}")
    return ax


def _similar(rows: np.ndarray, learned: Relation | None, means: np.ndarray) -> np.ndarray:
    """Similarities of rows, or of means of rows: columns of ``means`` hold the shares."""
    if learned is None:
        # Unit rows are averaged, rather than a table of all pairs.
        mixed = means.T @ unit_rows(rows)
        return np.clip(mixed @ mixed.T, -1.0, 1.0)
    size = len(rows)
    diagonal = np.empty(size)
    for start in range(0, size, 256):
        stop = min(start + 256, size)
        places = np.arange(start, stop), np.arange(stop - start)
        chosen = np.zeros((size, stop - start))
        chosen[places] = 1.0
        diagonal[start:stop] = (learned @ chosen)[places]
    scaled = means / np.sqrt(diagonal)[:, None]
    return np.clip(scaled.T @ (learned @ scaled), -1.0, 1.0)


def similar_order(values: np.ndarray) -> np.ndarray:
    """Order in which rows of a table of similarities stand beside those they are like."""
    if len(values) < 3:
        return np.arange(len(values))
    distance = np.clip(1.0 - 0.5 * (values + values.T), 0.0, 2.0)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    order = leaves_list(tree)
    return order if order[0] < order[-1] else order[::-1]
