"""The sentiment table of the paper: Experiments I to VII on product reviews."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from comtl.rows.fit_input import FitInput

from .cells import Cell, Row
from .experiment import KEYS, Experiment, Options, table_cells
from .loaders import load_sentiment
from .methods import METHODS
from .paper import PAPER
from .tables import Table, printed, tabulate
from .text import COLUMNS, fit_and_score

NAMES = (
    *("STL", "ITL", "SHAMO", "CMTL", "MTFL", "GO-MTL", "BiFactor", "TriFactor"),
    *("FMTL", "MTRL", "mean-regularised", "BiFactor-shared"),
)
"""The paper's methods, and others."""
QUICK = ("STL", "BiFactor")
SETS = PAPER["sentiment"]["columns"]
TITLES = {
    "f_cut": "Macro-F, threshold chosen on training rows, mean over tasks",
    "f": "Macro-F, threshold zero, mean over tasks",
    "f_cut_pooled": "Macro-F, threshold chosen on training rows, pooled",
}


def work(data: str, method: str, repeat: int) -> dict[str, Any]:
    """Figures of one cell."""
    rows = load_sentiment(data, random_state=repeat)
    train, test = (
        FitInput(rows.X, rows.y, rows.task),
        FitInput(rows.X_test, rows.y_test, rows.task_test),
    )
    return fit_and_score(METHODS[method], train, test)


def cells(options: Options) -> list[Cell]:
    """Cells of the table; a quick run has two methods on Experiment II and one repeat."""
    return table_cells(
        work,
        ("repeat", "data", "method"),
        data=("II",) if options.quick else SETS,
        method=filter(options.wants, QUICK if options.quick else NAMES),
        repeat=options.seeds(),
    )


def summary(rows: Sequence[Row]) -> list[Table]:
    """Macro-F with the threshold chosen on training rows, and threshold zero, then pooled."""
    order: dict[str, Any] = {"row_order": NAMES, "column_order": SETS}
    form: dict[str, Any] = {"lower_is_better": False, "digits": 3}
    papers = (printed("sentiment"), printed("sentiment"), None)
    return [
        tabulate(rows, value, title=title, paper=paper, **order, **form)
        for (value, title), paper in zip(TITLES.items(), papers, strict=True)
    ]


SENTIMENT = Experiment(
    "sentiment",
    "Sentiment of product reviews, Experiments I to VII",
    NAMES,
    KEYS,
    COLUMNS,
    cells,
    summary,
    files=lambda options: ("stars",),
)
