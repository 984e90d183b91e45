"""The transfer table of the paper: ten pairs of newsgroups, each in turn the new task.

The factors are learned on the nine other tasks; a tenth of the new task's rows then set its
weights: within the span of the factors, as the paper does, or with a residual beyond it. "ridge"
knows the new task's rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from comtl.models.task_model import TaskModel
from comtl.rows.fit_input import FitInput

from .cells import Cell, Row
from .experiment import KEYS, Experiment, Options, table_cells
from .loaders import load_newsgroups
from .methods import METHODS
from .metrics import choose_cut
from .paper import PAPER
from .tables import Table, printed, tabulate
from .text import FOLDS, held_out_scores, scored
from .tuning import setting_text, tune

NAMES = ("ridge", "GO-MTL", "FMTL", "BiFactor", "TriFactor")
QUICK = ("ridge", "BiFactor")
TASKS = tuple(PAPER["newsgroups"]["pairs"])
COLUMNS = ("f", "f_cut", "f_residual", "f_cut_residual", "setting")
ROWS = ("ridge", *NAMES[1:], *(f"{name} + residual" for name in NAMES[1:]))
"""Rows of the tables."""


def work(data: str, method: str, repeat: int) -> dict[str, Any]:
    """Figures of one cell: within the span of the factors, and with a residual beyond it."""
    posts = load_newsgroups(1 + TASKS.index(data), random_state=repeat)
    new = FitInput(posts.X_target, posts.y_target, posts.task_target)
    test = FitInput(posts.X_test, posts.y_test, posts.task_test)
    if method == "ridge":
        tuned = tune(METHODS["ITL"], new, text=True)
        models = {"": (tuned.model, held_out_scores(tuned.model, new))}
    else:
        tuned = tune(METHODS[method], FitInput(posts.X, posts.y, posts.task), text=True)
        endings = {"": False, "_residual": True}
        models = {end: _adapted(tuned.model, new, residual=own) for end, own in endings.items()}
    found: dict[str, Any] = {**dict.fromkeys(COLUMNS, ""), "setting": setting_text(tuned.setting)}
    for ending, (told, held) in models.items():
        # The cut is chosen where no row is scored by a model that has seen it.
        _, cuts = choose_cut(np.asarray(new.y) > 0, held, np.asarray(new.task))
        figures = scored(test, told.decision_function(test.X, task=test.task), cuts)
        found |= {f"f{ending}": figures["f"], f"f_cut{ending}": figures["f_cut"]}
    return found


def _adapted(model: TaskModel, new: FitInput, *, residual: bool) -> tuple[TaskModel, np.ndarray]:
    """Model that knows the new task, and scores of its rows by models adapted without them."""
    scores = np.zeros(len(new.y))
    for train, test in new.splits(model, FOLDS):
        part, rest = new.take(train), new.take(test)
        told = model.adapt(part.X, part.y, task=part.task, residual=residual)
        scores[test] = told.decision_function(rest.X, task=rest.task)
    return model.adapt(new.X, new.y, task=new.task, residual=residual), scores


def cells(options: Options) -> list[Cell]:
    """Cells of the table; a quick run has one new task and one repeat."""
    return table_cells(
        work,
        ("repeat", "data", "method"),
        data=TASKS[: 1 if options.quick else None],
        method=filter(options.wants, QUICK if options.quick else NAMES),
        repeat=options.seeds(),
    )


def summary(rows: Sequence[Row]) -> list[Table]:
    """Macro-F of each new task, and the mean over them."""
    settings: dict[str, Any] = {"row_order": ROWS, "lower_is_better": False}
    titles = {"f": "threshold zero", "f_cut": "threshold chosen on the new task's training rows"}
    tables = []
    for value, title in titles.items():
        told, title = _told(rows, value), f"Macro-F, {title}"
        beside: dict[str, Any] = {"column_order": TASKS, "paper": printed("newsgroups")}
        tables.append(tabulate(told, "f", title=title, **beside, **settings))
        tables.append(tabulate(_means(told), "f", title=f"{title}, means", digits=3, **settings))
    return tables


def _told(rows: Sequence[Row], value: str) -> list[Row]:
    """A row for each method within the span and with a residual."""
    return [
        {**row, "method": row["method"] + name, "f": row[value + ending]}
        for ending, name in (("", ""), ("_residual", " + residual"))
        for row in rows
        if row[value + ending] != ""
    ]


def _means(rows: Sequence[Row]) -> list[Row]:
    """Mean over the first six and over all new tasks, for each repeat that has them."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        found.setdefault((row["method"], row["repeat"]), {})[row["data"]] = float(row["f"])
    groups = {"tasks 1-6": TASKS[:6], "all tasks": TASKS}
    return [
        {
            "data": name,
            "method": method,
            "repeat": repeat,
            "f": float(np.mean([figures[column] for column in columns])),
        }
        for (method, repeat), figures in found.items()
        for name, columns in groups.items()
        if all(column in figures for column in columns)
    ]


NEWSGROUPS = Experiment(
    "newsgroups",
    "Transfer to a new pair of newsgroups",
    NAMES,
    KEYS,
    COLUMNS,
    cells,
    summary,
    files=lambda options: ("newsgroups",),
)
