"""What a model is worth on held-out rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..evaluation.compare_models import Comparison
from .plot_axes import COLOURS, MOST_NAMES, name_places, new_axes, plain, require_comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = {
    "separate": (COLOURS[5], "s"),
    "pooled": (COLOURS[2], "^"),
    "model": (COLOURS[0], "o"),
}


def task_errors(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Error of each task with the model, with separate models and with one pooled model.

    Up to 50 tasks have a line each, the one with the largest gain over separate models on top.
    Of more tasks each is a dot, the model's error against that of the others: below the dashed
    line the model is better.

    Parameters
    ----------
    comparison : Comparison
        What :func:`comtl.evaluation.compare` returned; tasks without held-out rows are left out.
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
    >>> from comtl.evaluation import compare
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat(["a", "b", "c"], 20)
    >>> found = compare(HierarchicalRegressor(), X, X[:, 0] + rng.normal(size=60), task)
    >>> ax = plot.task_errors(found)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['separate', 'pooled', 'model']
    """
    errors = require_comparison(comparison).errors
    known = np.flatnonzero(np.all([np.isfinite(errors[name]) for name in STYLES], axis=0))
    if not known.size:
        raise ValueError(
            "comparison has no task with held-out rows; compare on data with more rows a task."
        )
    if len(known) <= MOST_NAMES:
        gain = errors["separate"][known] - errors["model"][known]
        known = known[np.argsort(-gain, kind="stable")]
        ax = new_axes(ax, (6.4, 1.6 + 0.22 * len(known)))
        places = np.arange(len(known))
        ends = np.stack([errors[name][known] for name in STYLES])
        ax.hlines(places, ends.min(axis=0), ends.max(axis=0), color="0.8", zorder=1)
        for name, (colour, marker) in STYLES.items():
            look: dict[str, Any] = {"color": colour, "marker": marker, "label": name}
            ax.scatter(errors[name][known], places, s=28, zorder=2, **look)
        name_places(ax, [str(label) for label in comparison.tasks[known].tolist()], "y")
        ax.invert_yaxis()
        ax.set(xlabel=comparison.metric)
    else:
        ax = new_axes(ax, (5.4, 4.8))
        for name in ("separate", "pooled"):
            colour, marker = STYLES[name]
            across, up = errors[name][known], errors["model"][known]
            look = {"color": colour, "marker": marker, "label": f"against {name}"}
            ax.scatter(across, up, s=14, alpha=0.6, **look)
        low, high = (bound(ax.get_xlim() + ax.get_ylim()) for bound in (min, max))
        ax.plot([low, high], [low, high], color="grey", linestyle="--", linewidth=1.0)
        ax.set(
            xlabel=f"{comparison.metric} of the other", ylabel=f"{comparison.metric} of the model"
        )
    ax.set(title="Errors of the tasks on held-out rows")
    plain(ax)
    ax.legend(framealpha=0.85, edgecolor="none", fontsize="small")
    return ax


def calibration(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Observed against nominal coverage of the prediction intervals, on held-out targets.

    Parameters
    ----------
    comparison : Comparison
        What :func:`comtl.evaluation.compare` returned for a model with intervals.
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
    >>> from comtl.evaluation import compare
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat(["a", "b", "c"], 20)
    >>> found = compare(HierarchicalRegressor(), X, X[:, 0] + rng.normal(size=60), task)
    >>> len(plot.calibration(found).lines[1].get_xdata())
    9
    """
    require_comparison(comparison)
    if comparison.nominal is None or comparison.coverage is None:
        raise ValueError(
            "comparison is of a model without intervals; compare a HierarchicalRegressor or a "
            "MultitaskRegressor."
        )
    ax = new_axes(ax, (4.8, 4.4))
    ax.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1.0)
    ax.plot(comparison.nominal, comparison.coverage, color=COLOURS[0], marker="o", markersize=4.5)
    ax.set(
        title="Prediction intervals",
        xlabel="nominal coverage",
        ylabel="observed coverage",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    plain(ax)
    return ax
