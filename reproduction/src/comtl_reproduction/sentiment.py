"""The sentiment table of the paper: Experiments I to VII on product reviews."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from comtl.rows.fit_input import FitInput

from . import paper
from .cells import Cell, Row
from .experiment import Experiment, Options
from .loaders import load_sentiment
from .methods import METHODS
from .tables import Table, tabulate
from .text import COLUMNS, fit_and_score

NAMES = (*paper.METHODS, "FMTL", "MTRL", "mean-regularised", "BiFactor-shared")
QUICK = ("STL", "BiFactor")


def work(experiment: str, method: str, seed: int) -> dict[str, Any]:
    """Figures of one cell."""
    data = load_sentiment(experiment, random_state=seed)
    train, test = (
        FitInput(data.X, data.y, data.task),
        FitInput(data.X_test, data.y_test, data.task_test),
    )
    return fit_and_score(METHODS[method], train, test)


def cells(options: Options) -> list[Cell]:
    """Cells of the table; a quick run has two methods on Experiment II and one repeat.

    Examples
    --------
    >>> from comtl_reproduction.experiment import Options
    >>> from comtl_reproduction.sentiment import cells
    >>> len(cells(Options(repeats=5, methods=("ITL",))))
    35
    """
    return [
        Cell(
            {"data": name, "method": method, "repeat": seed},
            work,
            {"experiment": name, "method": method, "seed": seed},
        )
        for seed in range(1 if options.quick else options.repeats)
        for name in (("II",) if options.quick else paper.SENTIMENT_COLUMNS)
        for method in (QUICK if options.quick else NAMES)
        if options.wants(method)
    ]


def summary(rows: Sequence[Row]) -> list[Table]:
    """Macro-F with the cut chosen on training rows, and cut at zero, then pooled.

    Examples
    --------
    >>> from comtl_reproduction.sentiment import summary
    >>> len(summary([]))
    3
    """
    titles = {
        "f_cut": "Macro-F, cut chosen on training rows, mean over tasks",
        "f": "Macro-F, cut at zero, mean over tasks",
        "f_cut_pooled": "Macro-F, cut chosen on training rows, pooled",
    }
    return [
        tabulate(
            rows,
            value,
            title=title,
            row_order=NAMES,
            column_order=paper.SENTIMENT_COLUMNS,
            paper=None if value.endswith("pooled") else paper.SENTIMENT,
            lower_is_better=False,
            digits=3,
        )
        for value, title in titles.items()
    ]


SENTIMENT = Experiment(
    "sentiment",
    "Sentiment of product reviews, Experiments I to VII",
    NAMES,
    ("data", "method", "repeat"),
    COLUMNS,
    cells,
    summary,
)
