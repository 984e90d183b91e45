"""Tables of columns, scores and weights for the terminal, and the same facts for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..phrases import count_noun

if TYPE_CHECKING:
    from ..evaluation.compare_models import Comparison
    from ..tables import Column, TableModel

LEAST_WIDTH = 100
"""Letters in a line where standard output is no terminal."""
SHOWN = 12
"""Rows of a long list that are shown."""


def console() -> Console:
    """Standard output.

    Examples
    --------
    >>> from comtl.cli.output import console
    >>> console().stderr
    False
    """
    plain = Console()
    return plain if plain.is_terminal else Console(width=max(plain.width, LEAST_WIDTH))


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; columns whose cells are all numbers or empty are set to the right.

    Examples
    --------
    >>> from comtl.cli.output import show
    >>> show("Scores", ["name", "RMSE"], [["model", "0.5"]])
    Scores
    <BLANKLINE>
      name    RMSE
     ──────────────
      model    0.5
    <BLANKLINE>
    """
    table = Table(box=SIMPLE_HEAD)
    for place, name in enumerate(header):
        numbers = all(_is_number(row[place]) for row in rows)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        # Names in square brackets are no markup.
        table.add_row(*(Text(cell) for cell in row))
    out = console()
    out.print(Text(title, style="bold"))
    out.print(table)


def _is_number(cell: str) -> bool:
    return not cell.strip("0123456789.,+-e% ")


def column_rows(columns: Sequence[Column]) -> list[list[str]]:
    """Name, kind, missing values and details of columns.

    Examples
    --------
    >>> from comtl.cli.output import column_rows
    >>> from comtl.tables import Column
    >>> column_rows([Column("sex", "category", levels=("f", "m"))])
    [['sex', 'category', '', '2 levels: f, m']]
    """
    rows = []
    for column in columns:
        detail = f"median {column.fill:g}"
        if column.kind == "category":
            some = ", ".join(column.levels[:5]) + (", …" if len(column.levels) > 5 else "")
            detail = f"{len(column.levels):,} levels: {some}"
        elif column.kind == "yes/no":
            detail = f"{column.levels[1]} is 1, {column.levels[0]} is 0"
        rows.append(
            [column.name, column.kind, f"{column.missing:,}" * bool(column.missing), detail]
        )
    return rows


MEANING = {
    "model": "this model",
    "pooled": "one model for all tasks",
    "separate": "a model for each task",
    "mean": "the mean of the target",
}


def score_rows(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the held-out scores.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import PooledRegressor
    >>> from comtl.cli.output import score_rows
    >>> from comtl.evaluation import compare
    >>> score_rows(compare(PooledRegressor(), np.arange(20.0)[:, None], np.arange(20.0)))[0]
    ['', 'RMSE', 'what it is']
    """
    accuracy = comparison.accuracy
    header = ["", comparison.metric, *(["accuracy"] if accuracy else []), "what it is"]
    mean = "shares of the classes" if accuracy else MEANING["mean"]
    rows = []
    for name, error in comparison.overall.items():
        share = [f"{100 * accuracy[name]:.1f} %"] if accuracy else []
        rows.append([name, f"{error:.4g}", *share, mean if name == "mean" else MEANING[name]])
    return header, rows


def score_title(comparison: Comparison) -> str:
    """Heading of the held-out scores.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import PooledRegressor
    >>> from comtl.cli.output import score_title
    >>> from comtl.evaluation import compare
    >>> score_title(compare(PooledRegressor(), np.arange(20.0)[:, None], np.arange(20.0)))
    'On 20 held-out rows (RMSE: lower is better)'
    """
    rows = int(comparison.test_rows.sum())
    return f"On {rows:,} held-out rows ({comparison.metric}: lower is better)"


def facts(model: TableModel) -> dict[str, Any]:
    """What a model is, for JSON.

    Examples
    --------
    >>> import pandas as pd
    >>> from comtl.cli.output import facts
    >>> from comtl.tables import fit_table
    >>> frame = pd.DataFrame({"school": ["a", "b"] * 10, "age": range(20), "score": range(20)})
    >>> model = fit_table(frame, task="school", target="score", model="pooled", score=False)
    >>> facts(model)["tasks"]
    2
    """
    from ..tables.verdict import verdict

    found = model.comparison
    return {
        "kind": model.kind,
        "model": model.model,
        "estimator": type(model.estimator).__name__,
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
        "metric": None if found is None else found.metric,
        "scores": None if found is None else found.overall,
        "accuracy": None if found is None else found.accuracy,
        "held_out_rows": None if found is None else int(found.test_rows.sum()),
        "verdict": None if found is None else verdict(found, model.model),
        "verdict_kind": None if found is None else found.verdict.kind,
        "verdict_reference": None if found is None else found.verdict.reference,
        "notes": model.notes,
        "versions": model.versions,
    }


def headline(model: TableModel) -> str:
    """One line on what a model is.

    Examples
    --------
    >>> import pandas as pd
    >>> from comtl.cli.output import headline
    >>> from comtl.tables import fit_table
    >>> frame = pd.DataFrame({"school": ["a", "b"] * 10, "age": range(20), "score": range(20)})
    >>> model = fit_table(frame, task="school", target="score", model="pooled", score=False)
    >>> headline(model)
    "PooledRegressor of 'score': 20 rows, 2 tasks ('school'), 1 feature."
    """
    tasks = len(model.estimator.tasks_)
    bends = len(model.features) - len(model.encoder.names)
    return (
        f"{type(model.estimator).__name__} of {model.target!r}: {count_noun(model.rows, 'row')}, "
        f"{count_noun(tasks, 'task')} ({model.task!r}), "
        f"{count_noun(len(model.encoder.names), 'feature')}"
        + (f" and {count_noun(bends, 'hinge')} of them." if bends else ".")
    )


def effects(model: TableModel) -> np.ndarray:
    """Weights of all tasks (tasks × features), for one standard deviation of each feature.

    Beyond two classes the largest over the classes, without a sign.

    Examples
    --------
    >>> import pandas as pd
    >>> from comtl.cli.output import effects
    >>> from comtl.tables import fit_table
    >>> frame = pd.DataFrame({"school": ["a", "b"] * 10, "age": range(20), "score": range(20)})
    >>> model = fit_table(frame, task="school", target="score", model="pooled", score=False)
    >>> effects(model).shape
    (2, 1)
    """
    weights = model.estimator.coef_
    if weights.ndim == 3:
        weights = np.abs(weights).max(axis=1)
    return weights * model.spreads
