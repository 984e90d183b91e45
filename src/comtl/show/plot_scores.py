"""Curves of a fit and of a search, and errors on held-out rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..evaluation.comparison import Comparison
from ..models.search import CrossValidated
from ..models.task_model import TaskModel
from .plot_axes import COLOURS, MOST_NAMES, name_places, new_axes, plain, says_where
from .views import choose_history, view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_FIGURES = 150
"""Fields of a surface beyond which numbers in them could not be read."""
STYLES = {
    "separate": (COLOURS[5], "s"),
    "pooled": (COLOURS[2], "^"),
    "model": (COLOURS[0], "o"),
}


@says_where
def history(model: TaskModel, *, ax: Axes | None = None) -> Axes:
    """Objective after each sweep, or the log marginal likelihood of a hierarchical model.

    Parameters
    ----------
    model : estimator
        A fitted model that keeps its ``objective_history_``.
    AXES

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import HierarchicalRegressor, plot
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(40, 2)), np.repeat(["a", "b"], 20)
    >>> model = HierarchicalRegressor().fit(X, X[:, 0] + rng.normal(size=40), task=task)
    >>> plot.history(model).get_ylabel()
    'log marginal likelihood'
    """
    view(model)
    past = choose_history(model)
    if past is None:
        raise ValueError(
            f"model is a {type(model).__name__}, which keeps no history; draw that of a member, "
            "one of model.members_, or of a BiFactor, TriFactor or Hierarchical model."
        )
    ax = new_axes(ax)
    marker = "." if len(past.values) <= 40 else ""
    ax.plot(past.values, color=COLOURS[0], linewidth=1.6, marker=marker)
    title = f"Fit of {type(model).__name__}: {past.ended}"
    ax.set(title=title, xlabel=past.step, ylabel=past.label)
    plain(ax)
    return ax


@says_where
def sensitivity(search: CrossValidated, *, ax: Axes | None = None) -> Axes:
    """Held-out loss by penalty and rank, the chosen setting marked.

    With one rank a line with the standard deviation over the folds, else a surface.

    Parameters
    ----------
    search : estimator
        A fitted ``BiFactor…CV`` or ``TriFactor…CV``.
    AXES

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import BiFactorRegressorCV, plot
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(90, 4)), np.repeat([0, 1, 2], 30)
    >>> y = X @ rng.normal(size=4) + rng.normal(size=90)
    >>> model = BiFactorRegressorCV([1, 2], alphas=(0.01, 1.0, 100.0), cv=3)
    >>> ax = plot.sensitivity(model.fit(X, y, task=task))
    >>> ax.images[0].get_array().shape
    (2, 3)
    """
    if not isinstance(search, CrossValidated) or "cv_results_" not in vars(search):
        raise TypeError(
            f"search must be a fitted BiFactor…CV or TriFactor…CV, got {type(search).__name__} "
            "without cv_results_; fit one of these first."
        )
    results, names = search.cv_results_, search._algorithm.rank_names
    settings = results["params"]
    alphas, column = np.unique([one["alpha_task"] for one in settings], return_inverse=True)
    widths = [[one[name] for name in names] for one in settings]
    ranks, row = np.unique(widths, axis=0, return_inverse=True)
    row = row.ravel()  # NumPy 2.0 gives it an axis more.
    losses, spread = np.full((2, len(ranks), len(alphas)), np.nan)
    losses[row, column] = -results["mean_test_score"]
    spread[row, column] = results["std_test_score"]
    losses[~np.isfinite(losses)] = np.nan
    best = settings.index(search.best_params_)
    ax = new_axes(ax)
    if len(ranks) == 1:
        ax.errorbar(range(len(alphas)), losses[0], spread[0], color=COLOURS[0], capsize=2.5)
        ax.plot(column[best], losses[0, column[best]], "*", color=COLOURS[5], markersize=13)
        ax.set(ylabel="held-out loss")
        plain(ax)
    else:
        _surface(ax, losses, (row[best], column[best]))
        ax.set_yticks(range(len(ranks)), [" × ".join(map(str, rank)) for rank in ranks])
        ax.set(ylabel=" × ".join(name.removeprefix("n_").replace("_", " ") for name in names))
    turned = 45.0 if len(alphas) > 8 else 0.0
    ax.set_xticks(range(len(alphas)), [f"{alpha:g}" for alpha in alphas], rotation=turned)
    ax.set(xlabel="alpha_task", title="Held-out loss by setting (★ the chosen one)")
    return ax


def _surface(ax: Axes, losses: np.ndarray, best: tuple[int, int]) -> None:
    image = ax.imshow(losses, cmap="cividis", origin="lower", aspect="auto")
    ax.figure.colorbar(image, ax=ax, label="held-out loss")
    finite = losses[np.isfinite(losses)]
    middle = (finite.min() + finite.max()) / 2.0 if finite.size else 0.0
    for (row, column), value in np.ndenumerate(losses):
        chosen = (row, column) == best
        if np.isfinite(value) and (chosen or losses.size <= MOST_FIGURES):
            colour = "white" if value < middle else "black"
            text = ("★ " if chosen else "") + f"{value:.3g}"
            ax.text(column, row, text, ha="center", va="center", color=colour, fontsize="x-small")


@says_where
def task_errors(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Error of each task with the model, with separate models and with one pooled model.

    Up to 50 tasks have a line each, the one with the largest gain over separate models on top.
    Of more tasks each is a dot, the model's error against that of the others: below the dashed
    line the model is better.

    Parameters
    ----------
    comparison : Comparison
        What :func:`comtl.evaluation.compare` returned; tasks without held-out rows are left out.
    AXES

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
    errors = _require_comparison(comparison).errors
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


@says_where
def calibration(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Observed against nominal coverage of the prediction intervals, on held-out targets.

    Parameters
    ----------
    comparison : Comparison
        What :func:`comtl.evaluation.compare` returned for a model with intervals.
    AXES

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
    _require_comparison(comparison)
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


def _require_comparison(comparison: Any) -> Comparison:
    if not isinstance(comparison, Comparison):
        raise TypeError(
            "comparison must be what comtl.evaluation.compare returned, got "
            f"{type(comparison).__name__}."
        )
    return comparison
