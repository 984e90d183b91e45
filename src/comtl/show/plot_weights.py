"""The weights of all tasks as a map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..models.task_model import TaskModel
from .plot_axes import draw_borders, draw_strips, heat, name_places, new_axes
from .views import BinnedAxis, view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 400
"""Rows or columns beyond which neighbours of a cluster are averaged."""


def coclusters(model: TaskModel, *, ax: Axes | None = None) -> Axes:
    """Weights of tasks (down) and features (across), each in the order of its clusters.

    Weights are those of features in units of their spread, so that they can be compared. Beyond
    400 tasks or features neighbours within a cluster are put together, as means.

    Parameters
    ----------
    model : estimator
        Any fitted regressor or classifier of comtl; beyond two classes a task has a row for each.
    ax : matplotlib Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib Axes
        The axes, with strips that show the clusters.

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
    rows = BinnedAxis.by_cluster(shown.values, shown.line_clusters, MOST)
    columns = BinnedAxis.by_cluster(shown.values.T, shown.feature_clusters, MOST)
    ax = new_axes(ax, (7.5, 5.5))
    values = columns.mean(rows.mean(shown.values).T).T
    per = "unit" if (shown.spread == 1.0).all() else "standard deviation"
    heat(ax, values, label=f"weight for one {per} of the feature")
    draw_borders(ax, rows, columns)
    draw_strips(ax, rows, columns)
    name_places(ax, rows.names(shown.lines), "y")
    name_places(ax, columns.names(shown.features), "x")
    sizes = f"{len(shown.tasks):,} tasks", f"{len(shown.features):,} features"
    ax.set(ylabel=sizes[0], xlabel=sizes[1])
    ax.set_title("Weights by cluster", pad=16)
    return ax
