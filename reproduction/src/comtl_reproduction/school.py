"""The school table of the paper: exam scores, with a part of every school for training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import paper
from .cells import Cell, Row
from .experiment import Experiment, Options
from .loaders import load_school
from .methods import METHODS
from .synthetic import COLUMNS, fit_and_score, table_cells
from .tables import Table, tabulate

SHARES = {"20%": 0.2, "30%": 0.3, "40%": 0.4}


def work(name: str, method: str, seed: int) -> dict[str, Any]:
    """Figures of one cell."""
    return fit_and_score(load_school(train_share=SHARES[name], random_state=seed), method)


def cells(options: Options) -> list[Cell]:
    """Cells of the table; a quick run has 20 % only.

    Examples
    --------
    >>> from comtl_reproduction.experiment import Options
    >>> from comtl_reproduction.school import cells
    >>> len(cells(Options(repeats=5, methods=("ITL",))))
    15
    """
    return table_cells(work, ("20%",) if options.quick else tuple(SHARES), options)


def summary(rows: Sequence[Row]) -> list[Table]:
    """Mean over schools beside the paper's figures, then pooled.

    Examples
    --------
    >>> from comtl_reproduction.school import summary
    >>> len(summary([]))
    2
    """
    names = tuple(METHODS)
    return [
        tabulate(
            rows,
            "rmse",
            title="RMSE, mean over schools",
            row_order=names,
            column_order=paper.SCHOOL_COLUMNS,
            paper=paper.SCHOOL,
        ),
        tabulate(rows, "rmse_pooled", title="RMSE, pooled over pupils", row_order=names),
    ]


SCHOOL = Experiment(
    "school",
    "School: exam scores of 139 schools",
    tuple(METHODS),
    ("data", "method", "repeat"),
    COLUMNS,
    cells,
    summary,
)
