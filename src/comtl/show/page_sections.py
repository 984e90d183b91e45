"""The parts of the page that need no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from ..evaluation.comparison import Comparison
from ..models.task_model import TaskModel
from ..phrases import count_noun
from ..stacking.multitask import MultitaskModel
from .page_charts import calibration, history, scatter
from .page_text import MODEL_PHRASES, SIMPLE, headline, lower, percent, relative, sentences
from .views import ModelView, choose_history

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
            "<p>This page shows the weights only. To see whether multitask learning helps, pass "
            f"the rows: <code>{HOW}</code>. The model is then compared on held-out rows with "
            "separate models, with one pooled model and with the mean.</p></div>"
        )
        return section("summary", "Does multitask learning help here?", body)
    lines = "".join(f"<li>{escape(text)}</li>" for text in sentences(comparison))
    body = (
        f'<div class="verdict {comparison.verdict.kind}">'
        f'<p class="headline">{escape(headline(comparison))}</p>'
        f"<ul>{lines}</ul>{_movers(comparison)}</div>"
    )
    lead = "Significant: by a two-sided test on held-out rows at the level of 5 %."
    return section("summary", "Does multitask learning help here?", body, lead)


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


def notes_part(notes: Sequence[str]) -> str:
    """Notes on the data."""
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
    pair = "".join(f"<figure>{drawn}</figure>" for drawn in figures)
    key = (
        '<p class="key"><span><i class="swatch gain"></i>significantly better</span>'
        '<span><i class="swatch loss"></i>significantly worse</span>'
        '<span><i class="swatch level"></i>not significant</span></p>'
    )
    lead = (
        f"Errors on held-out rows ({escape(comparison.metric)}, lower is better). One dot a task; "
        "below the line this model is better."
    )
    body = f'{table_of(head, rows, {})}<div class="pair">{pair}</div>{key}'
    return section("scores", "Scores", body, lead)


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


def interval_part(comparison: Comparison | None) -> str:
    """Coverage of the prediction intervals."""
    if comparison is None or comparison.nominal is None or comparison.coverage is None:
        return ""
    nominal, coverage = comparison.nominal, comparison.coverage
    pairs = zip(nominal.tolist(), coverage.tolist(), strict=True)
    rows = [(percent(level, 0), percent(share)) for level, share in pairs]
    table = table_of(["Nominal coverage", "Observed coverage"], rows, {})
    gap = float(np.abs(coverage - nominal).max())
    lead = (
        "Share of held-out targets that lie in the prediction intervals. "
        "On the dashed line it is the nominal one; here it is at most "
        f"{100 * gap:.1f} percentage points off."
    )
    body = f'<div class="pair"><figure>{calibration(nominal, coverage)}</figure>{table}</div>'
    return section("intervals", "Coverage of the intervals", body, lead)


def member_part(model: TaskModel) -> str:
    """Members of a stacked model and their weights."""
    if not isinstance(model, MultitaskModel):
        return ""
    rows, most = [], max(model.weights_.values())
    for name, share in sorted(model.weights_.items(), key=lambda item: -item[1]):
        bar = f'<div class="share"><i style="width:{100 * share / most:.1f}%"></i></div>'
        rows.append((escape(name), type(model.members_[name]).__name__, f"{share:.3f}", bar))
    body = table_of(("Member", "Kind", "Weight", ""), rows, {"Kind": "text"})
    lead = "The prediction is a weighted sum of these; the weights are fitted to held-out rows."
    return section("members", "Members of the stack", body, lead)


def fit_part(model: TaskModel) -> str:
    """History of the fit, and the parameters."""
    past = choose_history(model)
    body = ""
    if past is not None:
        done = count_noun(int(getattr(model, "n_iter_", 0)), past.step)
        text = f"The fit {past.ended} after {done}; its {past.label} is {past.values[-1]:.6g}."
        body = f"<p>{text}</p><figure>{history(past)}</figure>"
    rows = [
        (f"<code>{escape(name)}</code>", f"<code>{escape(repr(value))}</code>")
        for name, value in model.get_params(deep=False).items()
    ]
    parameters = table_of(("Parameter", "Value"), rows, {"Value": "text long"})
    body += f"<details><summary>Parameters</summary>{parameters}</details>"
    return section("fit", "The fit", body)


def tiles(view: ModelView, model: TaskModel, comparison: Comparison | None) -> str:
    """Sizes of the model and its data."""
    sizes: list[tuple[str, Any]] = [
        ("tasks", f"{len(view.tasks):,}"),
        ("features", f"{len(view.features):,}"),
    ]
    if comparison is not None:
        sizes.append(("rows", f"{int(comparison.train_rows.sum()):,}"))
    if model._linear.classes is not None:
        sizes.append(("classes", len(model._linear.classes)))
    sizes.append(("clusters of tasks", len(np.unique(view.task_clusters))))
    sizes.append(("clusters of features", len(np.unique(view.feature_clusters))))
    items = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in sizes)
    return f'<dl class="tiles">{items}</dl>'
