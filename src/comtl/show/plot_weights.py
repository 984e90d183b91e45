"""Heat maps of the weights of a model, and of the relations of its tasks and features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from ..models.task_model import TaskModel
from ..penalties.relations import Relation
from .plot_axes import COLOURS, name_places, new_axes, says_where
from .views import BinnedAxis, colour_limit, unit_rows, view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_WEIGHTS, MOST_RELATED = 400, 300
"""Rows or columns of the maps beyond which neighbours of a cluster are averaged."""


@says_where
def coclusters(model: TaskModel, *, ax: Axes | None = None) -> Axes:
    """Weights of tasks (down) and features (across) in the order of clusters, which strips show.

    Weights are those of features in units of their spread, so that they can be compared. Beyond
    400 tasks or features neighbours within a cluster are put together, as means.

    Parameters
    ----------
    model : estimator
        Any fitted regressor or classifier of comtl; beyond two classes a task has a row for each.
    AXES

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import BiFactorRegressor, plot
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(80, 3)), np.repeat(["a", "b", "c", "d"], 20)
    >>> y = X[:, 0] * np.isin(task, ["a", "c"])
    >>> model = BiFactorRegressor(2, random_state=0).fit(X, y, task=task)
    >>> ax = plot.coclusters(model)
    >>> sorted(label.get_text() for label in ax.get_yticklabels())
    ['a', 'b', 'c', 'd']
    """
    shown = view(model)
    rows = BinnedAxis.by_cluster(shown.values, shown.line_clusters, MOST_WEIGHTS)
    columns = BinnedAxis.by_cluster(shown.values.T, shown.feature_clusters, MOST_WEIGHTS)
    ax = new_axes(ax, (7.5, 5.5))
    values = rows.shares @ shown.values @ columns.shares.T
    _heat(ax, values, rows, columns, f"weight for one {shown.feature_unit} of the feature")
    _draw_strips(ax, rows, columns)
    name_places(ax, rows.names(shown.lines), "y")
    name_places(ax, columns.names(shown.features), "x")
    sizes = f"{len(shown.tasks):,} tasks", f"{len(shown.features):,} features"
    ax.set(ylabel=sizes[0], xlabel=sizes[1])
    ax.set_title("Weights by cluster", pad=16)
    return ax


@says_where
def task_relation(model: TaskModel, *, ax: Axes | None = None) -> Axes:
    """How tasks are related: the learned relation as correlations, similar tasks side by side.

    For models that learn no relation, the cosine of the tasks' weights.

    Parameters
    ----------
    model : estimator
        Any fitted regressor or classifier of comtl; beyond two classes a task has a row for each.
    AXES

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
    return _relation(model, "task", shown.values, shown.lines, shown.line_clusters, ax)


@says_where
def feature_relation(model: TaskModel, *, ax: Axes | None = None) -> Axes:
    """How features are related: the learned relation as correlations, similar ones side by side.

    For models that learn no relation, the cosine of the features' weights over the tasks.

    Parameters
    ----------
    model : estimator
        Any fitted regressor or classifier of comtl.
    AXES

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
    rows, clusters = shown.values.T, shown.feature_clusters
    return _relation(model, "feature", rows, shown.features, clusters, ax)


def _relation(
    model: TaskModel,
    kind: str,
    rows: np.ndarray,
    names: Sequence[str],
    clusters: np.ndarray,
    ax: Axes | None,
) -> Axes:
    learned = getattr(model, f"{kind}_relation_", None)
    if not isinstance(learned, Relation) or learned.shape[0] != len(rows):
        learned = None  # Tasks adapted later are not in it.
    if len(rows) <= MOST_RELATED:
        order = _similar_order(_similar(rows, learned, sparse.eye_array(len(rows))))
        bins = BinnedAxis.of(order, np.zeros(len(rows), dtype=int), MOST_RELATED)
    else:
        bins = BinnedAxis.by_cluster(rows, clusters, MOST_RELATED)
    values = _similar(rows, learned, bins.shares)
    ax = new_axes(ax, (6.4, 5.4))
    label = "cosine of weights" if learned is None else "learned correlation"
    _heat(ax, values, bins, bins, label, limit=1.0)
    for side in ("x", "y"):
        name_places(ax, bins.names(names), side)
    ax.set(title=f"Relation of {len(rows):,} {kind}s")
    return ax


def _similar(rows: np.ndarray, learned: Relation | None, shares: Any) -> np.ndarray:
    """Similarities of means of rows, by the share of each row in each mean (n_means, n)."""
    if learned is None:
        # Unit rows are averaged, rather than a table of all pairs.
        mixed = shares @ unit_rows(rows)
        return np.clip(mixed @ mixed.T, -1.0, 1.0)
    diagonal = learned.floor + learned.basis**2 @ (learned.roots - learned.floor)
    scaled = shares.toarray().T / np.sqrt(diagonal / learned.trace)[:, None]
    return np.clip(scaled.T @ (learned @ scaled), -1.0, 1.0)


def _similar_order(values: np.ndarray) -> np.ndarray:
    """Order in which rows of a table of similarities stand beside those they are like."""
    if len(values) < 3:
        return np.arange(len(values))
    distance = np.clip(1.0 - 0.5 * (values + values.T), 0.0, 2.0)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    order = leaves_list(tree)
    return order if order[0] < order[-1] else order[::-1]


def _heat(
    ax: Axes,
    values: np.ndarray,
    rows: BinnedAxis,
    columns: BinnedAxis,
    label: str,
    limit: float | None = None,
) -> None:
    """Heat map about zero with its bar of colours, and lines between clusters."""
    limit = colour_limit(values) if limit is None else limit
    image = ax.imshow(
        values, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest"
    )
    ax.figure.colorbar(image, ax=ax, label=label, extend="both" if limit != 1.0 else "neither")
    for place in rows.borders.tolist():
        ax.axhline(place - 0.5, color="black", linewidth=0.8)
    for place in columns.borders.tolist():
        ax.axvline(place - 0.5, color="black", linewidth=0.8)


def _draw_strips(ax: Axes, rows: BinnedAxis, columns: BinnedAxis) -> None:
    """Strips in the colours of the clusters, above and to the right."""
    from matplotlib.colors import to_rgb

    for bins, box, upright in (
        (rows, (1.01, 0.0, 0.025, 1.0), True),
        (columns, (0.0, 1.015, 1.0, 0.03), False),
    ):
        strip = ax.inset_axes(box)
        colours = np.array([to_rgb(COLOURS[c % len(COLOURS)]) for c in bins.clusters.tolist()])
        strip.imshow(colours[:, None] if upright else colours[None], aspect="auto")
        strip.set_axis_off()
