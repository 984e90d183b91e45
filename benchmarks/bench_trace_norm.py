"""Sweeps of FeatureLearningRegressor (MTFL): the step beyond a sweep, and the smoothing's floor.

Without intercepts, one thread; `gap` is how far the objective with the exact trace norm lies above
that of accelerated proximal gradients. School: a fifth of the rows, where COMTL_DATA is set.
`make bench` writes the result beside this file.
"""

import os
import platform
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
from threadpoolctl import threadpool_limits

from comtl import TaskStratifiedKFold
from comtl.baselines import FeatureLearningRegressor
from comtl.datasets import SYNTHETIC

ALPHAS = (0.001, 0.01, 0.1, 1.0, 10.0)
VARIANTS = ((1e-6, False), (1e-6, True), (1e-7, True), (1e-8, True))


def problems():
    for number in range(1, 6):
        data = SYNTHETIC[f"syn{number}"](random_state=0)
        yield f"syn{number}", data.X, data.y, data.task
    folder = os.environ.get("COMTL_DATA")
    if folder:
        table = pd.read_parquet(Path(folder) / "school" / "school.parquet")
        _, part = next(TaskStratifiedKFold(5).split(table, groups=table["task"]))
        table = table.iloc[part]
        X = table.drop(columns=["y", "task"]).to_numpy(float)
        yield "school", X, table["y"].to_numpy(float), table["task"].to_numpy()


def standardized(X, y, task):
    """Rows and target as the model sees them without intercepts, and codes of the tasks."""
    scale = np.sqrt(np.mean(X**2, axis=0))
    codes = np.unique(task, return_inverse=True)[1]
    return X / np.where(scale > 0.0, scale, 1.0), y / np.sqrt(np.mean(y**2)), codes


def objective(W, alpha, X, y, codes):
    loss = np.sum((np.sum(X * W.T[codes], axis=1) - y) ** 2)
    return loss + alpha * np.linalg.svd(W, compute_uv=False).sum() ** 2


def optimum(alpha, X, y, codes, steps=1_500):
    """Lowest objective by accelerated proximal gradients with restarts."""
    P, T = X.shape[1], codes.max() + 1
    bound = max(2.0 * np.linalg.norm(X[codes == t], 2) ** 2 for t in range(T))
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(T))
    W = ahead = np.zeros((P, T))
    momentum = 1.0
    for _ in range(steps):
        gap = np.sum(X * ahead.T[codes], axis=1) - y
        slope = np.add.reduceat((2.0 * gap[:, None] * X)[order], starts, axis=0).T
        U, d, Vt = np.linalg.svd(ahead - slope / bound, full_matrices=False)
        share = 2.0 * alpha / bound
        levels = share * np.cumsum(d) / (1.0 + share * np.arange(1, len(d) + 1))
        kept = max(int(np.sum(d > levels)), 1)
        fresh = (U * np.maximum(d - levels[kept - 1], 0.0)) @ Vt
        if np.sum((ahead - fresh) * (fresh - W)) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5)
        ahead = fresh + (momentum - 1.0) / following * (fresh - W)
        W, momentum = fresh, following
    return objective(W, alpha, X, y, codes)


def fitted(alpha, smoothing, reach, X, y, task):
    params = {"fit_intercept": False, "max_iter": 2_000, "random_state": 0}
    model = FeatureLearningRegressor(alpha, **params)
    model.smoothing = smoothing
    schedule = replace(model._schedule(), lengthen=reach)
    model._schedule = lambda: schedule
    began = time.process_time()
    model.fit(X, y, task=task)
    return model, time.process_time() - began


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print("# MTFL: sweeps to tol=1e-6\n\nWritten by `python benchmarks/bench_trace_norm.py`.\n")
    versions = f"NumPy {np.__version__}, SciPy {scipy.__version__}"
    print(f"Python {platform.python_version()}, {versions}, one core.")
    print("Cells: sweeps, CPU seconds, gap.\n")
    names = [f"floor {s:g}, {'with' if r else 'without'} step beyond" for s, r in VARIANTS]
    print("| set (P, T, rows) | alpha | " + " | ".join(names) + " |")
    print("| --- " * (2 + len(names)) + "|")
    with threadpool_limits(1):
        for name, X, y, task in problems():
            cells = standardized(X, y, task)
            size = f"{name} ({X.shape[1]}, {cells[2].max() + 1}, {len(y)})"
            for alpha in ALPHAS:
                found = [fitted(alpha, *variant, X, y, task) for variant in VARIANTS]
                values = [objective(m._state.factors.coef, alpha, *cells) for m, _ in found]
                best = min(optimum(alpha, *cells), *values)
                row = [
                    f"{m.n_iter_}, {seconds:.2f}, {value / best - 1.0:.0e}"
                    for (m, seconds), value in zip(found, values, strict=True)
                ]
                print(f"| {size} | {alpha:g} | " + " | ".join(row) + " |", flush=True)
