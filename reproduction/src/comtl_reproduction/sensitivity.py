"""The paper's sensitivity figures: λ2, K and K1 × K2 on syn5, school and sentiment.

λ2 varies at λ1 = 0.1 and K = 2; K, or K1 and K2, at λ1 = λ2 = 0.1. The sentiment experiment is II.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from comtl.datasets import make_syn5
from comtl.rows.fit_input import FitInput

from .cells import Cell, Row
from .experiment import Experiment, Options
from .figures import Panel, draw_heat, draw_lines, save
from .loaders import load_school, load_sentiment
from .methods import GRIDS, METHODS
from .metrics import macro_f, rmse
from .tables import Table, tabulate

NAMES = ("GO-MTL", "BiFactor", "TriFactor")
SETS: dict[str, Callable[..., Any]] = {
    "syn5": make_syn5,
    "school": partial(load_school, train_share=0.2),
    "sentiment": partial(load_sentiment, "II"),
}
METRICS = {"syn5": "RMSE", "school": "RMSE", "sentiment": "macro-F"}
RANKS, FEW = GRIDS["ranks"], (2, 5, 10, 15)
"""Columns; those of a quick run, and of text for K1 and K2."""
KEYS = ("part", "data", "method", "alpha_task", "K1", "K2", "repeat")


def work(data: str, method: str, alpha: float, K1: int, K2: int, seed: int) -> dict[str, Any]:
    """Test error of one setting."""
    kind, text = METHODS[method], data == "sentiment"
    ranks = dict(zip(kind.ranks, (K1, K2), strict=False))
    model = kind.model(text=text, alpha_task=alpha, **ranks)
    rows = SETS[data](random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model._fit_quietly(FitInput(rows.X, rows.y, rows.task))
    guess = model.predict(rows.X_test, task=rows.task_test)
    if text:
        return {"value": macro_f(rows.y_test > 0, guess > 0, rows.task_test)["f"]}
    return {"value": rmse(rows.y_test, guess, rows.task_test)["rmse"]}


def cells(options: Options) -> list[Cell]:
    """Cells of the figures; a quick run has syn5 and few settings."""
    settings: list[tuple[Any, ...]] = []
    for data in list(SETS)[:1] if options.quick else SETS:
        for method in filter(options.wants, NAMES):
            settings += [("lambda2", data, method, alpha, 2, 2) for alpha in GRIDS["decades"]]
            pairs = [(K, K) for K in (FEW if options.quick else RANKS)]
            if method == "TriFactor":
                both = FEW if options.quick or data == "sentiment" else RANKS
                pairs = [(K1, K2) for K1 in both for K2 in both]
            settings += [("ranks", data, method, 0.1, *pair) for pair in pairs]
    names = ("data", "method", "alpha", "K1", "K2", "seed")
    return [
        Cell(
            dict(zip(KEYS, (*setting, seed), strict=True)),
            work,
            dict(zip(names, (*setting[1:], seed), strict=True)),
        )
        for setting in settings
        for seed in options.seeds()
    ]


def _parts(rows: Sequence[Row], data: str) -> tuple[list[Row], list[Row], list[Row]]:
    """Rows of a set where λ2 varies, where one K does, and where K1 and K2 do."""
    own = [row for row in rows if row["data"] == data]
    ranks = [row for row in own if row["part"] == "ranks"]
    equal = [row for row in ranks if row["K1"] == row["K2"]]
    both = [row for row in ranks if row["method"] == "TriFactor"]
    return [row for row in own if row["part"] == "lambda2"], equal, both


def summary(rows: Sequence[Row]) -> list[Table]:
    """Figures against λ2 and against K, a table for each set."""
    form: dict[str, Any] = {"row_order": NAMES, "lower_is_better": None, "digits": 3}
    return [
        tabulate(part, "value", title=f"{data}: {metric} by {name}", column=column, **form)
        for data, metric in METRICS.items()
        for part, column, name in zip(
            _parts(rows, data), ("alpha_task", "K1"), ("λ2, K = 2", "K"), strict=False
        )
        if part
    ]


def figures(rows: Sequence[Row], stem: Path) -> list[Path]:
    """One figure for each set: lines over λ2 and K, and a map over K1 × K2."""
    written = []
    for data, metric in METRICS.items():
        strengths, ranks, both = _parts(rows, data)
        if not (strengths or ranks):
            continue
        lines = partial(draw_lines, value="value", order=NAMES)
        by_strength: dict[str, Any] = {"x": "alpha_task", "labels": ("λ2", metric), "scales": "x"}
        by_rank: dict[str, Any] = {"x": "K1", "labels": ("K (K1 = K2 for TriFactor)", metric)}
        map_of: dict[str, Any] = {"value": "value", "x": "K1", "y": "K2", "label": metric}
        panels: list[Panel] = [
            partial(lines, rows=strengths, title=f"{data}, K = 2", **by_strength),
            partial(lines, rows=ranks, title=f"{data}, λ2 = 0.1", **by_rank),
        ]
        if both:
            title = f"{data}, TriFactor, λ2 = 0.1"
            panels.append(partial(draw_heat, rows=both, title=title, **map_of))
        written += save(panels, stem.with_name(f"{stem.name}-{data}"), columns=3)
    return written


SENSITIVITY = Experiment(
    "sensitivity",
    "Sensitivity to λ2, K, K1 and K2",
    NAMES,
    KEYS,
    ("value",),
    cells,
    summary,
    figures,
    files=lambda options: () if options.quick else ("school", "stars"),
)
