"""The paper's sensitivity figures: λ2, K and K1 × K2 on syn5, school and sentiment.

λ2 varies at λ1 = 0.1 and K = 2; K, or K1 and K2, at λ1 = λ2 = 0.1. The sentiment experiment is II.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from comtl.datasets import make_syn5
from comtl.rows.fit_input import FitInput

from .cells import Cell, Row
from .experiment import Experiment, Options
from .figures import Lines, Panel, compose, heat, save, series
from .loaders import load_school, load_sentiment
from .methods import DECADES, METHODS, RANKS
from .metrics import macro_f, rmse
from .tables import Table, tabulate

NAMES = ("GO-MTL", "BiFactor", "TriFactor")
SETS = ("syn5", "school", "sentiment")
METRICS = {"syn5": "RMSE", "school": "RMSE", "sentiment": "macro-F"}
FEW = (2, 5, 10, 15)
"""Columns of a quick run, and of text for K1 and K2."""


def work(data: str, method: str, alpha: float, K1: int, K2: int, seed: int) -> dict[str, Any]:
    """Test error of one setting.

    Examples
    --------
    >>> from comtl_reproduction.sensitivity import work
    >>> work("syn5", "BiFactor", 0.1, 5, 5, 0)["value"] < 5.0
    True
    """
    kind, text = METHODS[method], data == "sentiment"
    ranks = dict(zip(kind.ranks, (K1, K2), strict=False))
    model = kind.model(text=text, alpha_task=alpha, **ranks)
    rows = _load(data, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model._fit_quietly(FitInput(rows.X, rows.y, rows.task))
    guess = model.predict(rows.X_test, task=rows.task_test)
    if text:
        return {"value": macro_f(rows.y_test > 0, guess > 0, rows.task_test)["f"]}
    return {"value": rmse(rows.y_test, guess, rows.task_test)["rmse"]}


def _load(data: str, seed: int) -> Any:
    if data == "syn5":
        return make_syn5(random_state=seed)
    if data == "school":
        return load_school(train_share=0.2, random_state=seed)
    return load_sentiment("II", random_state=seed)


def cells(options: Options) -> list[Cell]:
    """Cells of the figures; a quick run has syn5 and few settings.

    Examples
    --------
    >>> from comtl_reproduction.experiment import Options
    >>> from comtl_reproduction.sensitivity import cells
    >>> len(cells(Options(quick=True, methods=("BiFactor",))))
    11
    """
    count = 1 if options.quick else options.repeats
    settings = []
    for data in SETS[:1] if options.quick else SETS:
        for method in filter(options.wants, NAMES):
            settings += [("lambda2", data, method, alpha, 2, 2) for alpha in DECADES]
            ranks = FEW if options.quick else RANKS
            both = FEW if options.quick or data == "sentiment" else RANKS
            pairs = [(K, K) for K in ranks]
            if method == "TriFactor":
                pairs = [(K1, K2) for K1 in both for K2 in both]
            settings += [("ranks", data, method, 0.1, *pair) for pair in pairs]
    return [
        Cell(
            {
                "part": part,
                "data": data,
                "method": method,
                "alpha_task": alpha,
                "K1": K1,
                "K2": K2,
                "repeat": seed,
            },
            work,
            {"data": data, "method": method, "alpha": alpha, "K1": K1, "K2": K2, "seed": seed},
        )
        for part, data, method, alpha, K1, K2 in settings
        for seed in range(count)
    ]


def summary(rows: Sequence[Row]) -> list[Table]:
    """Figures against λ2 and against K, a table for each set.

    Examples
    --------
    >>> from comtl_reproduction.sensitivity import summary
    >>> summary([])
    []
    """
    tables = []
    for data in SETS:
        own = [row for row in rows if row["data"] == data]
        for part, column, name in (("lambda2", "alpha_task", "λ2, K = 2"), ("ranks", "K1", "K")):
            chosen = [row for row in own if row["part"] == part and row["K1"] == row["K2"]]
            if chosen:
                tables.append(
                    tabulate(
                        chosen,
                        "value",
                        title=f"{data}: {METRICS[data]} by {name}",
                        row="method",
                        column=column,
                        row_order=NAMES,
                        lower_is_better=None,
                        digits=3,
                    )
                )
    return tables


def figures(rows: Sequence[Row], stem: Path) -> list[Path]:
    """One figure for each set: lines over λ2 and K, and a map over K1 × K2."""
    written = []
    for data in SETS:
        own = [row for row in rows if row["data"] == data]
        if not own:
            continue
        metric, panels = METRICS[data], list[Panel]()
        chosen = [row for row in own if row["part"] == "lambda2"]
        lines = series(chosen, "value", x="alpha_task", order=NAMES)
        panels.append(Lines(f"{data}, K = 2", "λ2", metric, lines, log_x=True))
        chosen = [row for row in own if row["part"] == "ranks" and row["K1"] == row["K2"]]
        lines = series(chosen, "value", x="K1", order=NAMES)
        panels.append(Lines(f"{data}, λ2 = 0.1", "K (K1 = K2 for TriFactor)", metric, lines))
        chosen = [row for row in own if row["part"] == "ranks" and row["method"] == "TriFactor"]
        if chosen:
            panels.append(
                heat(
                    chosen,
                    "value",
                    x="K1",
                    y="K2",
                    title=f"{data}, TriFactor, λ2 = 0.1",
                    x_label="K1",
                    y_label="K2",
                    value_label=metric,
                )
            )
        written += save(compose(panels, columns=3), stem, f"-{data}")
    return written


SENSITIVITY = Experiment(
    "sensitivity",
    "Sensitivity to λ2, K, K1 and K2",
    NAMES,
    ("part", "data", "method", "alpha_task", "K1", "K2", "repeat"),
    ("value",),
    cells,
    summary,
    figures,
)
