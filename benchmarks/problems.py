"""Development problems of the benchmarks: synthetic ones, and the real ones where COMTL_DATA is."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from comtl.datasets import SYNTHETIC, make_coclusters


def low_rank(seed, n_features=40, n_tasks=30, rows=30, rank=3):
    """Rank-3 weights, the acceptance problem of the foundation."""
    rng = np.random.default_rng(seed)
    coef = rng.standard_normal((n_tasks, rank)) @ rng.standard_normal((rank, n_features))
    parts = {}
    for count, end in ((rows, ""), (100, "_test")):
        task = np.repeat(np.arange(n_tasks), count)
        X = rng.standard_normal((len(task), n_features))
        y = (X * coef[task]).sum(axis=1) + rng.standard_normal(len(task))
        parts |= {f"X{end}": X, f"y{end}": y, f"task{end}": task}
    return Bunch(**parts)


def _table(path, task, target, drop, share, seed):
    folder = os.environ.get("COMTL_DATA")
    if not folder:
        return None
    frame = pd.read_parquet(Path(folder) / path).drop(columns=list(drop))
    y = frame.pop(target).to_numpy(float)
    labels = pd.factorize(frame.pop(task))[0]
    X = pd.get_dummies(frame, drop_first=True).to_numpy(float)
    chance = np.random.default_rng(seed).random(len(y))
    # The given share of every task's rows trains, at least one row.
    rank = pd.Series(chance).groupby(labels).rank().to_numpy() - 1
    size = np.bincount(labels)[labels]
    train = rank < np.maximum(np.round(share * size), 1)
    return Bunch(
        X=X[train],
        y=y[train],
        task=labels[train],
        X_test=X[~train],
        y_test=y[~train],
        task_test=labels[~train],
    )


REAL = {
    "school 20%": ("school/school.parquet", "task", "y", (), 0.2),
    "computer_survey": ("computer_survey/computer_survey.parquet", "task", "y", ("profile",), 0.5),
    "exam": ("hierarchical/exam.parquet", "school", "normexam", ("student",), 0.2),
    "hsb82": ("hierarchical/hsb82.parquet", "school", "mAch", (), 0.2),
    "radon": ("hierarchical/radon.parquet", "county", "log.radon", ("county.name",), 0.5),
    "sleepstudy": ("hierarchical/sleepstudy.parquet", "Subject", "Reaction", (), 0.5),
}


def development_problems(seed=0):
    """Name -> problem; real ones are left out where COMTL_DATA is not set."""
    problems = {"rank 3": low_rank(seed), "co-clusters": make_coclusters(random_state=seed)}
    for name, make in SYNTHETIC.items():
        problems[name] = make(random_state=seed)
    for name, setting in REAL.items():
        table = _table(*setting, seed)
        if table is not None:
            problems[name] = table
    return problems


def task_rmse(truth: np.ndarray, guess: np.ndarray, task: np.ndarray) -> float:
    """Root mean squared error of each task, averaged over tasks."""
    _, codes = np.unique(task, return_inverse=True)
    squares = np.bincount(codes, (truth - guess) ** 2) / np.bincount(codes)
    return float(np.sqrt(squares).mean())
