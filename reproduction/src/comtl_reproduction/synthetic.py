"""Table 1 of the paper: the five synthetic sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from comtl.datasets import SYNTHETIC as MAKERS
from comtl.rows.fit_input import FitInput

from . import paper
from .cells import Cell, Row
from .experiment import Experiment, Options
from .methods import METHODS
from .metrics import rmse
from .tables import Table, tabulate
from .tuning import setting_text, tune

QUICK = ("STL", "ITL", "MTFL", "mean-regularised", "BiFactor")
COLUMNS = ("rmse", "rmse_pooled", "cv_loss", "setting")


def fit_and_score(data: Any, method: str) -> dict[str, Any]:
    """Tune a method on the training rows of a regression and measure it on the others."""
    tuned = tune(METHODS[method], FitInput(data.X, data.y, data.task))
    guess = tuned.model.predict(data.X_test, task=data.task_test)
    errors = rmse(data.y_test, guess, data.task_test)
    return {**errors, "cv_loss": tuned.loss, "setting": setting_text(tuned.setting)}


def work(name: str, method: str, seed: int) -> dict[str, Any]:
    """Figures of one cell.

    Examples
    --------
    >>> from comtl_reproduction.synthetic import work
    >>> work("syn1", "ITL", 0)["rmse"] < 3.0
    True
    """
    return fit_and_score(MAKERS[name](random_state=seed), method)


def table_cells(
    work: Callable[..., dict[str, Any]], names: Sequence[str], options: Options
) -> list[Cell]:
    """Cells of a table of regressions; a quick run has five methods and one repeat.

    Examples
    --------
    >>> from comtl_reproduction.experiment import Options
    >>> from comtl_reproduction.synthetic import table_cells
    >>> len(table_cells(dict, ("a", "b"), Options(repeats=3, methods=("ITL",))))
    6
    """
    return [
        Cell(
            {"data": name, "method": method, "repeat": seed},
            work,
            {"name": name, "method": method, "seed": seed},
        )
        for method in (QUICK if options.quick else METHODS)
        if options.wants(method)
        for name in names
        for seed in range(1 if options.quick else options.repeats)
    ]


def cells(options: Options) -> list[Cell]:
    """Cells of the table.

    Examples
    --------
    >>> from comtl_reproduction.experiment import Options
    >>> from comtl_reproduction.synthetic import cells
    >>> len(cells(Options(repeats=5, methods=("ITL",))))
    25
    """
    return table_cells(work, paper.SYNTHETIC_COLUMNS, options)


def summary(rows: Sequence[Row]) -> list[Table]:
    """Mean over tasks beside the paper's figures, then pooled.

    Examples
    --------
    >>> from comtl_reproduction.synthetic import summary
    >>> len(summary([]))
    2
    """
    names = tuple(METHODS)
    return [
        tabulate(
            rows,
            "rmse",
            title="RMSE, mean over tasks",
            row_order=names,
            paper=paper.SYNTHETIC,
            note="The paper does not state the scales of its sets: compare columns, not figures.",
        ),
        tabulate(rows, "rmse_pooled", title="RMSE, pooled over rows", row_order=names),
    ]


SYNTHETIC = Experiment(
    "synthetic",
    "Table 1: synthetic data",
    tuple(METHODS),
    ("data", "method", "repeat"),
    COLUMNS,
    cells,
    summary,
)
