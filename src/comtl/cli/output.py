"""Tables of columns, scores and weights for the terminal, and the same facts for JSON."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..evaluation.comparison import Comparison
from ..phrases import count_noun, visible
from ..show.page_text import MODEL_PHRASES
from ..tables import Column, TableModel

LEAST_WIDTH = 100
"""Characters in a line where standard output is not a terminal."""
SHOWN = 12
"""Rows of a long list that are shown."""
VERDICTS = {
    "helps": (
        "{who} helps here: on held-out rows its {metric} is {own:.4g}, {change:.2g} % below that "
        "of the best reference model, {reference} ({other:.4g}). It is significantly lower than "
        "that of every reference model."
    ),
    "unclear": (
        "{who} makes no clear difference here: on held-out rows its {metric} is {own:.4g}, not "
        "significantly different from that of the reference model {reference} ({other:.4g})."
    ),
    "harms": (
        "{who} does harm here: on held-out rows its {metric} is {own:.4g}, {change:.2g} % above "
        "that of the reference model {reference} ({other:.4g}), a significant difference."
    ),
}
"""What is said of each kind of verdict."""


FORMS = {
    "linear": "Its members are linear: straight lines in each feature.",
    "hinges": "It kept hinges: lines whose slope changes at the knots of a feature.",
    "trees": "It kept boosted trees, which add curves and interactions to straight lines.",
    "hinges and trees": "It kept hinges, lines whose slope changes at the knots of a feature, and "
    "boosted trees, which add curves and interactions.",
}
"""What is said of each form of a stack."""
LOGARITHMS = " It fits logarithms of the target: effects multiply, and features change logarithms."


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, floats to three digits; columns of numbers are right-aligned."""
    table = Table(box=SIMPLE_HEAD)
    lines = [
        [f"{one:.3g}" if isinstance(one, float) else visible(str(one)) for one in row]
        for row in rows
    ]
    for column, name in enumerate(header):
        numbers = all(not line[column].strip("0123456789.,+-e% ") for line in lines)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for line in lines:
        # Text, so that names in square brackets are not read as markup.
        table.add_row(*map(Text, line))
    out = Console()
    if not out.is_terminal:
        out = Console(width=max(out.width, LEAST_WIDTH))
    out.print(Text(title, style="bold"))
    out.print(table)


def show_columns(columns: Sequence[Column]) -> None:
    """Print name, kind, missing values and details of columns."""
    rows = []
    for column in columns:
        detail = f"median {column.middle}"
        if column.kind == "category":
            some = ", ".join(column.levels[:5]) + (", …" if len(column.levels) > 5 else "")
            detail = f"{len(column.levels):,} levels: {some}"
        elif column.kind == "date":
            detail += f" ({column.order}); used: {', '.join(column.levels)}"
        elif column.kind == "yes/no":
            detail = f"{column.levels[1]} is 1, {column.levels[0]} is 0"
        missing = f"{column.missing:,}" if column.missing else ""
        rows.append([column.name, column.kind, missing, detail])
    show("Columns", ["name", "kind", "missing", "detail"], rows)


def show_scores(comparison: Comparison) -> None:
    """Print the held-out scores of a model and of the reference models."""
    accuracy = comparison.accuracy
    header = ["", comparison.metric, *(["accuracy"] if accuracy else []), "what it is"]
    phrases = MODEL_PHRASES | ({"mean": "shares of the classes"} if accuracy else {})
    rows = []
    for name, error in comparison.overall.items():
        share = [f"{100 * accuracy[name]:.1f} %"] if accuracy else []
        rows.append([name, f"{error:.4g}", *share, phrases[name]])
    count = int(comparison.test_rows.sum())
    show(f"Scores on {count:,} held-out rows ({comparison.metric}, lower is better)", header, rows)


def verdict(comparison: Comparison, model: str = "auto") -> str:
    """One sentence on the comparison of a model, named as on the command line."""
    judged = comparison.verdict
    own, other = comparison.overall["model"], comparison.overall[judged.reference]
    simple = model in ("pooled", "separate")
    text = VERDICTS[judged.kind].format(
        who="This model" if simple or len(comparison.tasks) == 1 else "Multitask learning",
        metric=comparison.metric,
        own=own,
        change=100 * abs(own / other - 1.0) if other > 0 else 0.0,
        reference=judged.reference,
        other=other,
    )
    return text + (" Multitask learning is fitted with --model auto." if simple else "")


def facts(model: TableModel) -> dict[str, Any]:
    """What a model is, for JSON."""
    comparison = model.comparison
    return {
        "kind": model.kind,
        "model": model.model,
        "estimator": type(model.estimator).__name__,
        "form": vars(model.estimator).get("form_"),
        "loss": vars(model.estimator).get("loss_"),
        "rows": model.rows,
        "tasks": len(model.estimator.tasks_),
        "task": model.task,
        "target": model.target,
        "classes": model.classes,
        "features": len(model.encoder.names),
        "hinges": model.features[len(model.encoder.names) :],
        "columns": [
            {"name": c.name, "kind": c.kind, "missing": c.missing, "levels": c.levels}
            for c in model.encoder.columns
        ],
        "metric": None if comparison is None else comparison.metric,
        "scores": None if comparison is None else comparison.overall,
        "accuracy": None if comparison is None else comparison.accuracy,
        "held_out_rows": None if comparison is None else int(comparison.test_rows.sum()),
        "verdict": None if comparison is None else verdict(comparison, model.model),
        "verdict_kind": None if comparison is None else comparison.verdict.kind,
        "verdict_reference": None if comparison is None else comparison.verdict.reference,
        "notes": model.notes,
        "versions": model.versions,
    }


def headline(model: TableModel) -> str:
    """One line on what a model is, and one on its form if it has one."""
    tasks = len(model.estimator.tasks_)
    hinges = len(model.features) - len(model.encoder.names)
    return (
        f"{type(model.estimator).__name__} of {model.target!r}: {count_noun(model.rows, 'row')}, "
        f"{count_noun(tasks, 'task')} ({model.task!r}), "
        f"{count_noun(len(model.encoder.names), 'feature')}"
        + (f" and {count_noun(hinges, 'hinge')} of them." if hinges else ".")
        + (f"\n{FORMS[form]}" if (form := vars(model.estimator).get("form_")) else "")
        + (LOGARITHMS if vars(model.estimator).get("loss_") == "log" else "")
    )


def effects(model: TableModel) -> np.ndarray:
    """Weights (tasks × features) for one standard deviation; beyond two classes the largest."""
    weights = model.estimator.coef_
    if weights.ndim == 3:
        weights = np.abs(weights).max(axis=1)
    return weights * model.spreads
