"""What the parts of the page that need no script are filled with."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from ..evaluation.comparison import Comparison
from ..models.task_model import TaskModel
from ..phrases import count_noun
from ..stacking.multitask import MultitaskModel
from .page_charts import calibration, curve, history, scatter
from .page_text import MODEL_PHRASES, SIMPLE, headline, lower, percent, relative, sentences
from .plot_curves import Curves, what_is_predicted
from .views import ModelView, choose_history

SHARES = {
    "common linear": "straight lines in common",
    "own linear": "levels and straight lines of each task’s own",
    "nonlinear": "curves, steps and interactions",
}


def summary(comparison: Comparison) -> dict[str, str]:
    """Whether multitask learning helps here."""
    return {
        "verdict": comparison.verdict.kind,
        "headline": escape(headline(comparison)),
        "sentences": "".join(f"<li>{escape(text)}</li>" for text in sentences(comparison)),
        "movers": _movers(comparison),
    }


def _movers(comparison: Comparison, most: int = 5) -> str:
    """Tasks that are significantly better or worse than with separate models, by size."""
    signs, gain = comparison.task_signs("separate"), comparison.loss_reduction["separate"]
    parts = []
    for sign, word in ((1, "Largest gains"), (-1, "Largest losses")):
        tasks = np.flatnonzero(signs == sign)
        tasks = tasks[np.argsort(-np.abs(gain[tasks]), kind="stable")][:most]
        if tasks.size:
            names = ", ".join(escape(str(label)) for label in comparison.tasks[tasks].tolist())
            parts.append(f"<dt>{word} against separate models</dt><dd>{names}</dd>")
    return f'<dl class="movers">{"".join(parts)}</dl>' if parts else ""


def scores(comparison: Comparison) -> dict[str, str]:
    """Errors of the model and of the reference models, and of each task."""
    head = ["Model", escape(comparison.metric)]
    if comparison.accuracy is not None:
        head.append("Accuracy")
    head.append("This model’s error is")
    rows = []
    for name in ("model", *SIMPLE, "mean"):
        kind = "" if name == "model" else f"{name.capitalize()}: "
        cells = [kind + MODEL_PHRASES[name], f"{comparison.overall[name]:#.4g}".rstrip(".")]
        if comparison.accuracy is not None:
            cells.append(percent(comparison.accuracy[name]))
        share = None if name == "model" else relative(comparison, name)
        rows.append([*cells, "–" if share is None else lower(share)])
    names, own = [str(label) for label in comparison.tasks.tolist()], comparison.errors["model"]
    figures = [
        scatter(names, own, comparison.errors[name], comparison.task_signs(name), name)
        for name in SIMPLE
    ]
    return {
        "metric": escape(comparison.metric),
        "scores": table_of(head, rows, {}),
        "scatters": "".join(f"<figure>{drawn}</figure>" for drawn in figures),
    }


def table_of(head: Sequence[str], rows: Sequence[Sequence[str]], kinds: dict[str, str]) -> str:
    """Table that scrolls within itself on narrow screens; ``kinds`` are classes of columns."""
    looks = [f' class="{kinds[title]}"' if title in kinds else "" for title in head]
    titles = [f'<th scope="col"{look}>{one}</th>' for one, look in zip(head, looks, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [f"<td{look}>{one}</td>" for one, look in zip(others, looks[1:], strict=True)]
        lines.append(f'<tr><th scope="row">{first}</th>{"".join(cells)}</tr>')
    return (
        f'<div class="scroll"><table><thead><tr>{"".join(titles)}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def intervals(comparison: Comparison) -> dict[str, str]:
    """Coverage of the prediction intervals; nothing for a model without them."""
    if comparison.nominal is None or comparison.coverage is None:
        return {}
    nominal, coverage = comparison.nominal, comparison.coverage
    pairs = zip(nominal.tolist(), coverage.tolist(), strict=True)
    rows = [(percent(level, 0), percent(share)) for level, share in pairs]
    return {
        "calibration": calibration(nominal, coverage),
        "coverage": table_of(["Nominal coverage", "Observed coverage"], rows, {}),
        "gap": f"{100 * np.abs(coverage - nominal).max():.1f}",
    }


def members(model: MultitaskModel) -> str:
    """Members of a stacked model and their weights."""
    rows, most = [], max(model.weights_.values())
    for name, share in sorted(model.weights_.items(), key=lambda item: -item[1]):
        bar = f'<div class="share"><i style="width:{100 * share / most:.1f}%"></i></div>'
        rows.append((escape(name), type(model.members_[name]).__name__, f"{share:.3f}", bar))
    return table_of(("Member", "Kind", "Weight", ""), rows, {"Kind": "text"})


CURVES, FIRST_LOOK = 4, (60, 4)
"""Columns with a curve: those whose curves rise and fall most, by so many rows and points."""


def curves(model: MultitaskModel, X: Any, task: Any) -> dict[str, str]:
    """Curves of some columns, and shares of the variance, where a stack is not linear."""
    if model.form_ == "linear" or model._multi_output:
        return {}
    rows, points = FIRST_LOOK
    look, found = Curves.of(model, X, task, rows), Curves.of(model, X, task)
    width = look.X.shape[1]
    heights = [np.ptp(look.means(n, look.grid(n, points))) for n in range(width)]
    figures = []
    for number in np.argsort(heights)[::-1][:CURVES].tolist():
        grid = found.grid(number)
        drawn = curve(
            found.names[number], what_is_predicted(model), grid, found.means(number, grid)[0]
        )
        figures.append(f"<figure>{drawn}</figure>")
    shares = model.variance_shares(X, task)
    cells = [(escape(SHARES[name]), percent(share)) for name, share in shares.items()]
    return {
        "curves": "".join(figures),
        "shares": table_of(["Part", "Share of the variance"], cells, {}),
    }


def fit(model: TaskModel) -> dict[str, str]:
    """History of the fit where there is one, and the parameters."""
    rows = [
        (f"<code>{escape(name)}</code>", f"<code>{escape(repr(value))}</code>")
        for name, value in model.get_params(deep=False).items()
    ]
    parameters = table_of(("Parameter", "Value"), rows, {"Value": "text long"})
    past = choose_history(model)
    if past is None:
        return {"parameters": parameters}
    done = count_noun(int(getattr(model, "n_iter_", 0)), past.step)
    return {
        "parameters": parameters,
        "outcome": f"{past.ended} after {done}; its {past.label} is {past.values[-1]:.6g}",
        "history": history(past),
    }


def tiles(view: ModelView, model: TaskModel, comparison: Comparison | None) -> str:
    """Sizes of the model and its data."""
    sizes: dict[str, int] = {"tasks": len(view.tasks), "features": len(view.features)}
    if comparison is not None:
        sizes["rows"] = int(comparison.train_rows.sum())
    if model._linear.classes is not None:
        sizes["classes"] = len(model._linear.classes)
    sizes["clusters of tasks"] = len(np.unique(view.task_clusters))
    sizes["clusters of features"] = len(np.unique(view.feature_clusters))
    return "".join(f"<div><dt>{name}</dt><dd>{size:,}</dd></div>" for name, size in sizes.items())
