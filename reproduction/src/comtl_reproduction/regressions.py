"""Table 1 of the paper, the five synthetic sets, and its table of school's exam scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from comtl.datasets import SYNTHETIC as MAKERS
from comtl.rows.fit_input import FitInput

from .cells import Cell, Row
from .experiment import KEYS, Experiment, Options, table_cells
from .loaders import load_school
from .methods import METHODS
from .metrics import rmse
from .paper import PAPER
from .tables import Table, printed, tabulate
from .tuning import setting_text, tune

QUICK = ("STL", "ITL", "MTFL", "mean-regularised", "BiFactor")
NAMES = tuple(METHODS)


def work(data: str, method: str, repeat: int) -> dict[str, Any]:
    """Figures of one cell: a method tuned on the training rows and measured on the others."""
    if data in MAKERS:
        rows = MAKERS[data](random_state=repeat)
    else:
        rows = load_school(train_share=float(data.rstrip("%")) / 100.0, random_state=repeat)
    tuned = tune(METHODS[method], FitInput(rows.X, rows.y, rows.task))
    guess = tuned.model.predict(rows.X_test, task=rows.task_test)
    errors = rmse(rows.y_test, guess, rows.task_test)
    return {**errors, "cv_loss": tuned.loss, "setting": setting_text(tuned.setting)}


def cells(sets: Sequence[str], quick: Sequence[str], options: Options) -> list[Cell]:
    """Cells of a table; a quick run has fewer sets, five methods and one repeat."""
    return table_cells(
        work,
        ("method", "data", "repeat"),
        data=quick if options.quick else sets,
        method=filter(options.wants, QUICK if options.quick else NAMES),
        repeat=options.seeds(),
    )


def summary(name: str, mean: str, pooled: str, note: str, rows: Sequence[Row]) -> list[Table]:
    """Mean over tasks beside the paper's figures, then pooled."""
    order: dict[str, Any] = {"row_order": NAMES, "column_order": PAPER[name]["columns"]}
    beside: dict[str, Any] = {"paper": printed(name), "note": note}
    return [
        tabulate(rows, "rmse", title=f"RMSE, mean over {mean}", **order, **beside),
        tabulate(rows, "rmse_pooled", title=f"RMSE, pooled over {pooled}", **order),
    ]


def files(names: Sequence[str], options: Options) -> Sequence[str]:
    """Data files of an experiment, quick or not."""
    return names


NOTE = "The paper does not state the scales of its sets: compare columns, not figures."
COLUMNS = ("rmse", "rmse_pooled", "cv_loss", "setting")
SYNTHETIC, SCHOOL = (
    Experiment(
        name,
        title,
        NAMES,
        KEYS,
        COLUMNS,
        partial(cells, PAPER[name]["columns"], PAPER[name]["columns"][:quick]),
        partial(summary, name, *words),
        files=partial(files, names),
    )
    for name, title, quick, words, names in (
        ("synthetic", "Table 1: synthetic data", 5, ("tasks", "rows", NOTE), ()),
        ("school", "School: exam scores of 139 schools", 1, ("schools", "pupils", ""), ("school",)),
    )
)
