"""Tables with few rows a task, for choices that only matter there: loaders and splits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from sklearn.datasets import load_diabetes

from comtl_reproduction.loaders.splits import share_of_each

SEEDS = 5
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Rows, targets, tasks, and which rows train."""


def grouped(file: str, task: str, target: str, *drop: str):
    """Rows, targets and tasks of a grouped table of the data folder."""
    folder = Path(os.environ["COMTL_DATA"]) / "hierarchical"
    table = pd.read_parquet(folder / f"{file}.parquet").drop(columns=list(drop))
    labels, y = table.pop(task).to_numpy(), table.pop(target).to_numpy()
    return pd.get_dummies(table, drop_first=True).to_numpy(), y, labels


def _fair():
    table = sm.datasets.fair.load_pandas().data
    columns = ["age", "yrs_married", "children", "religious", "educ"]
    return table[columns], table.rate_marriage, 10 * table.occupation + table.occupation_husb


def _anes():
    table = sm.datasets.anes96.load_pandas().data
    columns = ["popul", "TVnews", "ClinLR", "DoleLR", "age", "educ", "income"]
    return table[columns], table.selfLR, table.PID


def _grunfeld():
    table = sm.datasets.grunfeld.load_pandas().data
    return table[["value", "capital", "year"]], table.invest, table.firm


def _diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X[:, 2:], y, np.digitize(X[:, 0], np.quantile(X[:, 0], np.arange(0.1, 1.0, 0.1)))


SETS = {
    "anes96 by party": (_anes, (0.25, 0.5)),
    "fair by occupations": (_fair, (0.05, 0.1)),
    "grunfeld by firm": (_grunfeld, (0.25, 0.5)),
    "diabetes by age": (_diabetes, (0.25, 0.5)),
    "exam": (lambda: grouped("exam", "school", "normexam", "student"), (0.05, 0.2)),
    "hsb82": (lambda: grouped("hsb82", "school", "mAch"), (0.05, 0.2)),
    "radon": (lambda: grouped("radon", "county", "log.radon", "county.name"), (0.2, 0.5)),
}


def tables() -> Iterator[tuple[str, str, list[Split]]]:
    """Name and share, size, and splits of each table."""
    for name, (load, shares) in SETS.items():
        for share in shares:
            splits = list(split(load(), share))
            X, _, task, train = splits[0]
            size = f"{train.sum()}, {X.shape[1]}, {len(np.unique(task))}"
            yield f"{name}, {share:.0%}", size, splits


def split(table: tuple, share: float) -> Iterator[Split]:
    """Yield a table with a share of every task's rows to train."""
    X, y, task = (np.asarray(part) for part in table)
    X, y = X.astype(float), y.astype(float)
    for seed in range(SEEDS):
        yield X, y, task, share_of_each(task, share, np.random.default_rng(seed))


def error(guess: np.ndarray, split: Split) -> float:
    """RMSE of guesses of the rows that do not train."""
    _, y, _, train = split
    return float(np.sqrt(np.mean((y[~train] - guess) ** 2)))
