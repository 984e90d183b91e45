"""Demonstration on a simulated data set: ``make demo``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import Bunch

from comtl import BiFactorRegressorCV, MultitaskRegressor, TriFactorRegressorCV
from comtl.datasets import make_coclusters
from comtl.evaluation import compare
from comtl.show.page import write_report

PENALTIES = np.logspace(-2, 3, 11)
PAGE = "comtl-demo.html"


def task_rmse(truth: np.ndarray, guess: np.ndarray, task: np.ndarray) -> float:
    """Root mean squared error of each task, averaged over tasks."""
    _, codes = np.unique(task, return_inverse=True)
    squares = np.bincount(codes, (truth - guess) ** 2) / np.bincount(codes)
    return float(np.sqrt(squares).mean())


def separate_ridge(data: Bunch) -> np.ndarray:
    """Predict with one ridge model per task."""
    guess = np.empty_like(data.y_test)
    for task in np.unique(data.task):
        model = RidgeCV(PENALTIES).fit(data.X[data.task == task], data.y[data.task == task])
        guess[data.task_test == task] = model.predict(data.X_test[data.task_test == task])
    return guess


def pooled_ridge(data: Bunch) -> np.ndarray:
    """Predict with one ridge model for all rows."""
    return RidgeCV(PENALTIES).fit(data.X, data.y).predict(data.X_test)


def main(write: Callable[[str], object] = sys.stdout.write) -> None:
    """Fit, compare on held-out rows, print the estimated clusters, and write the report."""
    data = make_coclusters(random_state=0)
    tasks, features = data.coef.shape
    write(
        f"{tasks} tasks with {len(data.y) // tasks} rows each on {features} features; the weights "
        f"have {len(np.unique(data.task_clusters))} clusters of tasks and "
        f"{len(np.unique(data.feature_clusters))} of features.\n\n"
    )
    search: dict[str, Any] = {"alphas": (0.01, 0.1, 1.0, 10.0), "cv": 3, "random_state": 0}
    tri = TriFactorRegressorCV(4, 3, **search).fit(data.X, data.y, task=data.task)
    bi = BiFactorRegressorCV(3, **search).fit(data.X, data.y, task=data.task)
    stack = MultitaskRegressor().fit(data.X, data.y, task=data.task)
    rows = {
        "Multitask": stack.predict(data.X_test, task=data.task_test),
        "TriFactor": tri.predict(data.X_test, task=data.task_test),
        "BiFactor": bi.predict(data.X_test, task=data.task_test),
        "separate ridge": separate_ridge(data),
        "pooled ridge": pooled_ridge(data),
        "the noise itself": np.einsum("ij,ij->i", data.X_test, data.coef[data.task_test]),
    }
    write(f"{'held-out rows':<18}{'RMSE':>8}\n")
    for name, guess in rows.items():
        write(f"{name:<18}{task_rmse(data.y_test, guess, data.task_test):>8.3f}\n")
    for side in ("task", "feature"):
        found, true = getattr(tri, f"{side}_clusters_"), data[f"{side}_clusters"]
        write(f"\n{side} clusters of TriFactor")
        write(f" (adjusted Rand index {adjusted_rand_score(true, found):.2f}):\n")
        for cluster in np.unique(found):
            members = " ".join(str(i) for i in np.flatnonzero(found == cluster))
            write(f"  {cluster}: {members}\n")
    comparison = compare(tri, data.X, data.y, data.task, folds=3)
    page = write_report(PAGE, tri, comparison=comparison, title="Simulated co-clusters")
    write(f"\nReport: {page}\n")


if __name__ == "__main__":
    main()
