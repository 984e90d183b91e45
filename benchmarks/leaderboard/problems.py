"""The development sets of the leaderboard: loaders, splits and what is measured."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comtl.datasets import SYNTHETIC
from comtl_reproduction.loaders import load_newsgroups, load_school, load_sentiment
from comtl_reproduction.loaders.splits import share_of_each
from comtl_reproduction.metrics import macro_f, rmse


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows of one repeat.

    ``y`` is two-dimensional, with ``task`` None, where all tasks share their rows.
    """

    X: Any
    y: np.ndarray
    task: Any
    X_test: Any
    y_test: np.ndarray
    task_test: Any


@dataclass(frozen=True)
class Problem:
    """A data set with its splits and its measure.

    ``kind`` is "values", "classes" or "text" (classes of many sparse columns).
    """

    name: str
    kind: str
    split: Callable[[int], Split]
    metric: Callable[[Split, np.ndarray], float]
    lower: bool = True


def _grouped(
    file: str, task: str, target: str, drop: tuple[str, ...], share: float, seed: int
) -> Split:
    folder = Path(os.environ["COMTL_DATA"])
    table = pd.read_parquet(folder / f"{file}.parquet").drop(columns=list(drop))
    labels = table.pop(task).to_numpy().astype(np.int64)
    y = table.pop(target).to_numpy().astype(float)
    X = pd.get_dummies(table, drop_first=True).to_numpy().astype(float)
    train = share_of_each(labels, share, np.random.default_rng(seed))
    return Split(X[train], y[train], labels[train], X[~train], y[~train], labels[~train])


def _bunch(load: Callable[..., Any], seed: int) -> Split:
    data = load(random_state=seed)
    return Split(data.X, data.y, data.task, data.X_test, data.y_test, data.task_test)


def _sarcos(seed: int) -> Split:
    table = pd.read_parquet(Path(os.environ["COMTL_DATA"]) / "sarcos_test/sarcos_test.parquet")
    Y = table.filter(like="torque").to_numpy().astype(float)
    X = table.drop(columns=table.filter(like="torque").columns).to_numpy().astype(float)
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:500], order[500:]
    return Split(X[train], Y[train], None, X[test], Y[test], None)


def _digits(seed: int) -> Split:
    table = pd.read_parquet(Path(os.environ["COMTL_DATA"]) / "mnist_mtl/mnist_mtl.parquet")
    X = table.filter(regex="^x").to_numpy().astype(float)
    Y = np.where(table.digit.to_numpy()[:, None] == np.arange(1, 11), 1, -1)
    part = table.split.to_numpy()
    if seed == 0:
        train, test = part == "train", part == "test"
    else:
        chosen = np.random.default_rng(seed).permutation(len(X))
        train, test = (
            np.isin(np.arange(len(X)), chosen[:1000]),
            np.isin(np.arange(len(X)), chosen[1500:]),
        )
    return Split(X[train], Y[train], None, X[test], Y[test], None)


def _newsgroups(target: int, seed: int) -> Split:
    from scipy import sparse

    data = load_newsgroups(target, random_state=seed)
    return Split(
        sparse.csr_array(sparse.vstack([data.X, data.X_target])),
        np.concatenate([data.y, data.y_target]),
        np.concatenate([data.task, data.task_target]),
        data.X_test,
        data.y_test,
        data.task_test,
    )


def _by_task(split: Split, guess: np.ndarray) -> float:
    return rmse(split.y_test, guess, split.task_test)["rmse"]


def _pooled(split: Split, guess: np.ndarray) -> float:
    return rmse(split.y_test, guess, split.task_test)["rmse_pooled"]


def _columns(split: Split, guess: np.ndarray) -> float:
    """Mean over targets of the error over the spread of the target."""
    error = np.sqrt(np.mean((split.y_test - guess) ** 2, axis=0))
    return float(np.mean(error / split.y_test.std(axis=0)))


def _argmax_error(split: Split, scores: np.ndarray) -> float:
    return float(np.mean(scores.argmax(axis=1) != split.y_test.argmax(axis=1)))


def _macro(split: Split, scores: np.ndarray) -> float:
    return macro_f(split.y_test > 0, scores > 0, split.task_test)["f"]


def _all() -> list[Problem]:
    problems = [
        Problem(name, "values", partial(_bunch, load), _by_task) for name, load in SYNTHETIC.items()
    ]
    for share in (0.2, 0.3, 0.4):
        load = partial(load_school, train_share=share)
        problems.append(Problem(f"school {share:.0%}", "values", partial(_bunch, load), _by_task))
    for name, file, task, target, drop, share in (
        ("computer_survey", "computer_survey/computer_survey", "task", "y", ("profile",), 0.5),
        ("exam", "hierarchical/exam", "school", "normexam", ("student",), 0.2),
        ("hsb82", "hierarchical/hsb82", "school", "mAch", (), 0.2),
        ("radon", "hierarchical/radon", "county", "log.radon", ("county.name",), 0.5),
        ("sleepstudy", "hierarchical/sleepstudy", "Subject", "Reaction", (), 0.5),
    ):
        split = partial(_grouped, file, task, target, drop, share)
        problems.append(Problem(name, "values", split, _pooled))
    problems.append(Problem("sarcos_test", "values", _sarcos, _columns))
    problems.append(Problem("mnist_mtl", "classes", _digits, _argmax_error))
    for name in ("II", "V"):
        split = partial(_bunch, partial(load_sentiment, name))
        problems.append(Problem(f"sentiment {name}", "text", split, _macro, lower=False))
    for target in range(1, 7):
        split = partial(_newsgroups, target)
        problems.append(Problem(f"newsgroups {target}", "text", split, _macro, lower=False))
    return problems


PROBLEMS = {problem.name: problem for problem in _all()}
