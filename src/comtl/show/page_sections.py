"""The parts of the page that need no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from ..evaluation.compare_models import NAMES, Comparison
from ..models.task_model import TaskModel
from ..phrases import count_noun
from ..stacking.multitask import MultitaskModel
from .page_charts import calibration, history, scatter
from .page_text import SIMPLE, headline, percent, relative, sentences
from .views import ModelView, choose_history

LONG = {
    "model": "This model",
    "separate": "Separate: a model of its own for each task",
    "pooled": "Pooled: one model for all tasks",
    "mean": "Mean: the same guess for every row",
}
HOW = "model.report(&quot;report.html&quot;, X, y, task=task)"


def section(name: str, title: str, body: str, lead: str = "") -> str:
    """One part of the page; nothing where there is no body."""
    if not body:
        return ""
    intro = f'<p class="lead">{lead}</p>' if lead else ""
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">'
        f'<h2 id="{name}-title">{title}</h2>{intro}{body}</section>'
    )


def summary(comparison: Comparison | None) -> str:
    """Whether multitask learning helps here."""
    if comparison is None:
        body = (
            '<div class="verdict none"><p class="headline">Not compared yet</p>'
            "<p>This page shows the weights alone. To see whether learning the tasks together "
            f"helps, hand over the rows: <code>{HOW}</code>. The model is then compared, on "
            "rows held out, with separate models, with one pooled model and with the mean.</p>"
            "</div>"
        )
        return section("summary", "Does multitask learning help here?", body)
    lines = "".join(f"<li>{escape(text)}</li>" for text in sentences(comparison))
    body = (
        f'<div class="verdict {comparison.verdict.kind}">'
        f'<p class="headline">{escape(headline(comparison))}</p>'
        f"<ul>{lines}</ul>{_movers(comparison)}</div>"
    )
    lead = "Significant is what a two-sided test on held-out rows finds so at the level of 5 %."
    return section("summary", "Does multitask learning help here?", body, lead)


def _movers(comparison: Comparison, most: int = 5) -> str:
    """Tasks that are significantly better or worse than with separate models, by size."""
    signs, gain = comparison.task_signs("separate"), comparison.loss_reduction["separate"]
    parts = []
    for sign, word in ((1, "Gain most"), (-1, "Lose most")):
        own = np.flatnonzero(signs == sign)
        own = own[np.argsort(-np.abs(gain[own]), kind="stable")][:most]
        if own.size:
            names = ", ".join(escape(str(comparison.tasks[task])) for task in own.tolist())
            parts.append(f"<dt>{word} against separate models</dt><dd>{names}</dd>")
    return f'<dl class="movers">{"".join(parts)}</dl>' if parts else ""


def notes_part(notes: Sequence[str]) -> str:
    """What was noticed in the data."""
    items = "".join(f"<li>{escape(str(note))}</li>" for note in notes)
    body = f'<ul class="notes">{items}</ul>' if items else ""
    return section("notes", "Notes on the data", body)


def score_part(comparison: Comparison | None) -> str:
    """Errors of the model and of the reference models, and of each task."""
    if comparison is None:
        return ""
    head = ["Model", escape(comparison.metric)]
    if comparison.accuracy is not None:
        head.append("Accuracy")
    head.append("This model’s error is")
    rows = []
    for name in ("model", *SIMPLE, *(n for n in NAMES if n not in ("model", *SIMPLE))):
        cells = [f"{comparison.overall[name]:#.4g}".rstrip(".")]
        if comparison.accuracy is not None:
            cells.append(percent(comparison.accuracy[name]))
        share = None if name == "model" else relative(comparison, name)
        word = "lower" if (share or 0.0) >= 0 else "higher"
        cells.append("–" if share is None else f"{percent(abs(share))} {word}")
        title = f'<th scope="row">{LONG[name]}</th>'
        rows.append("<tr>" + title + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    table = table_of(head, rows)
    names = [str(label) for label in comparison.tasks.tolist()]
    figures = []
    for name in SIMPLE:
        own, other = comparison.errors["model"], comparison.errors[name]
        drawn = scatter(names, own, other, comparison.task_signs(name), name)
        figures.append(f"<figure>{drawn}</figure>")
    key = (
        '<p class="key"><span><i class="swatch gain"></i>significantly better</span>'
        '<span><i class="swatch loss"></i>significantly worse</span>'
        '<span><i class="swatch level"></i>not significant</span></p>'
    )
    lead = (
        f"Errors on held-out rows ({escape(comparison.metric)}, lower is better). One dot a task; "
        "below the line this model is better."
    )
    return section(
        "scores", "Scores", table + f'<div class="pair">{"".join(figures)}</div>{key}', lead
    )


def table_of(head: Sequence[str], rows: Sequence[str], texts: Sequence[str] = ()) -> str:
    """Table that scrolls within itself on narrow screens; columns of text are set to the left."""
    kinds = {title: ' class="text"' if title in texts else "" for title in head}
    titles = "".join(f'<th scope="col"{kinds[title]}>{title}</th>' for title in head)
    return (
        f'<div class="scroll"><table><thead><tr>{titles}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def interval_part(comparison: Comparison | None) -> str:
    """Whether intervals hold what they promise."""
    if comparison is None or comparison.nominal is None or comparison.coverage is None:
        return ""
    levels, covered = comparison.nominal, comparison.coverage
    rows = [
        f'<tr><th scope="row">{percent(level, 0)}</th><td>{percent(share)}</td></tr>'
        for level, share in zip(levels.tolist(), covered.tolist(), strict=True)
    ]
    table = table_of(["Asked for", "Found inside"], rows)
    gap = float(np.abs(covered - levels).max())
    lead = (
        "Share of held-out targets that lie in the prediction intervals. "
        "On the dashed line they hold what they promise; here they are at most "
        f"{100 * gap:.1f} points off."
    )
    body = f'<div class="pair"><figure>{calibration(levels, covered)}</figure>{table}</div>'
    return section("intervals", "Do the intervals hold?", body, lead)


def choose_members(model: TaskModel) -> dict[str, tuple[str, float]]:
    """Kind and weight of each member of a stack; none for other models."""
    if not isinstance(model, MultitaskModel):
        return {}
    return {
        name: (type(member).__name__, model.weights_[name])
        for name, member in model.members_.items()
    }


def member_part(model: TaskModel) -> str:
    """Members of a stacked model and their weights."""
    members = sorted(choose_members(model).items(), key=lambda item: -item[1][1])
    most = max((share for _, (_, share) in members), default=1.0)
    rows = [
        f'<tr><th scope="row">{escape(name)}</th><td class="text">{kind}</td><td>{share:.3f}</td>'
        f'<td><div class="share"><i style="width:{100 * share / most:.1f}%"></i></div></td></tr>'
        for name, (kind, share) in members
    ]
    body = table_of(["Member", "Kind", "Weight", ""], rows, ("Kind",)) if rows else ""
    lead = "The model is a sum of these, weighted by what suits held-out rows best."
    return section("members", "What the stack is made of", body, lead)


def fit_part(model: TaskModel) -> str:
    """History of the fit, and the parameters."""
    found = choose_history(model)
    body = ""
    if found is not None:
        label, values = found
        ended = (
            "converged" if getattr(model, "converged_", False) else "stopped before it converged"
        )
        step = "sweep" if label == "objective" else "step"
        done = count_noun(int(model.n_iter_), step)
        text = f"The fit {ended} after {done}; its {label} is {values[-1]:.6g}."
        body = f"<p>{text}</p><figure>{history(values, label)}</figure>"
    rows = [
        f'<tr><th scope="row"><code>{escape(name)}</code></th>'
        f'<td class="text long"><code>{escape(repr(value))}</code></td></tr>'
        for name, value in model.get_params(deep=False).items()
    ]
    parameters = table_of(["Parameter", "Value"], rows, ("Value",))
    body += f"<details><summary>Parameters</summary>{parameters}</details>"
    return section("fit", "The fit", body)


def tiles(view: ModelView, model: TaskModel, comparison: Comparison | None) -> str:
    """The sizes in a row of numbers."""
    found: list[tuple[str, Any]] = [
        ("tasks", f"{len(view.tasks):,}"),
        ("features", f"{len(view.features):,}"),
    ]
    if comparison is not None:
        found.append(("rows", f"{int(comparison.train_rows.sum()):,}"))
    if model._known_classes is not None:
        found.append(("classes", len(model._known_classes)))
    found.append(("clusters of tasks", len(np.unique(view.task_clusters))))
    found.append(("clusters of features", len(np.unique(view.feature_clusters))))
    items = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in found)
    return f'<dl class="tiles">{items}</dl>'
