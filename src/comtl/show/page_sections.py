"""The parts of the page that need no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from ..evaluation.compare_models import NAMES
from ..evaluation.comparison import Comparison
from ..models.task_model import TaskModel
from ..phrases import count_noun
from ..stacking.multitask import MultitaskModel
from .page_charts import calibration, history, scatter
from .page_text import MODEL_PHRASES, SIMPLE, headline, percent, relative, sentences
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
    for name in ("model", *SIMPLE, *(n for n in NAMES if n not in ("model", *SIMPLE))):
        cells = [f"{comparison.overall[name]:#.4g}".rstrip(".")]
        if comparison.accuracy is not None:
            cells.append(percent(comparison.accuracy[name]))
        share = None if name == "model" else relative(comparison, name)
        word = "lower" if (share or 0.0) >= 0 else "higher"
        cells.append("–" if share is None else f"{percent(abs(share))} {word}")
        kind = "" if name == "model" else f"{name.capitalize()}: "
        title = f'<th scope="row">{kind}{MODEL_PHRASES[name]}</th>'
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
    """Coverage of the prediction intervals."""
    if comparison is None or comparison.nominal is None or comparison.coverage is None:
        return ""
    nominal, coverage = comparison.nominal, comparison.coverage
    rows = [
        f'<tr><th scope="row">{percent(level, 0)}</th><td>{percent(share)}</td></tr>'
        for level, share in zip(nominal.tolist(), coverage.tolist(), strict=True)
    ]
    table = table_of(["Nominal coverage", "Observed coverage"], rows)
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
    weights = model.weights_ if isinstance(model, MultitaskModel) else {}
    most, rows = max(weights.values(), default=1.0), []
    for name, share in sorted(weights.items(), key=lambda item: -item[1]):
        rows.append(
            f'<tr><th scope="row">{escape(name)}</th>'
            f'<td class="text">{type(model.members_[name]).__name__}</td><td>{share:.3f}</td>'
            f'<td><div class="share"><i style="width:{100 * share / most:.1f}%"></i></div></td>'
            "</tr>"
        )
    body = table_of(["Member", "Kind", "Weight", ""], rows, ("Kind",)) if rows else ""
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
        f'<tr><th scope="row"><code>{escape(name)}</code></th>'
        f'<td class="text long"><code>{escape(repr(value))}</code></td></tr>'
        for name, value in model.get_params(deep=False).items()
    ]
    parameters = table_of(["Parameter", "Value"], rows, ("Value",))
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
    if model._known_classes is not None:
        sizes.append(("classes", len(model._known_classes)))
    sizes.append(("clusters of tasks", len(np.unique(view.task_clusters))))
    sizes.append(("clusters of features", len(np.unique(view.feature_clusters))))
    items = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in sizes)
    return f'<dl class="tiles">{items}</dl>'
