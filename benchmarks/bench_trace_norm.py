"""Sweeps of FeatureLearningRegressor (MTFL): extrapolation, smoothing's floor, side, solver.

Without intercepts, one thread; `gap` is how far the objective with the exact trace norm lies above
that of accelerated proximal gradients. School: a fifth of the rows, where COMTL_DATA is set.
`make bench` writes the result beside this file.
"""

import os
import platform
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
from scipy import sparse
from threadpoolctl import threadpool_limits

from comtl import TaskStratifiedKFold
from comtl.baselines import FeatureLearningRegressor
from comtl.baselines import direct as whole
from comtl.datasets import SYNTHETIC
from comtl.engine import feature_step as systems

ALPHAS = (0.001, 0.01, 0.1, 1.0, 10.0)
STRONG, WEAK = (10.0, 100.0, 1_000.0), (0.1, 0.01, 0.001)
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


def wide_problems():
    for tasks, features in ((12, 1_500), (60, 1_500), (12, 6_000)):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((600, 300)) @ rng.standard_normal((300, features))
        X += 10.0 * rng.standard_normal(X.shape)
        W = rng.standard_normal((features, 2)) @ rng.standard_normal((2, tasks))
        task = np.arange(600) % tasks
        signal = np.sum(X * W.T[task], axis=1)
        y = signal / signal.std() + rng.standard_normal(600)
        yield "wide", X, y, task


def sparse_problem(rows=2_240, features=5_000, tasks=56):
    """Rows of 40 entries of length one in all, as in the experiments on sentiment."""
    rng = np.random.default_rng(0)
    popular = np.arange(1, features + 1) ** -0.8
    places = rng.choice(features, (rows, 40), p=popular / popular.sum())
    values = rng.random((rows, 40))
    values /= np.linalg.norm(values, axis=1)[:, None]
    ends = 40 * np.arange(rows + 1)
    X = sparse.csr_array((values.ravel(), places.ravel(), ends), shape=(rows, features))
    W, task = rng.standard_normal((features, 3)), np.arange(rows) % tasks
    signal = np.sum((X @ W) * rng.standard_normal((tasks, 3))[task], axis=1)
    return X, np.sign(signal + rng.standard_normal(rows)), task


def by_passes():
    """Print sweeps and seconds where inner products of rows stand for more or fewer passes."""
    print("| set (P, T, rows) | alpha | 24 passes | 8 passes | none |")
    print("| --- " * 5 + "|")
    dense = [problem[1:] for problem in wide_problems()]
    for (X, y, task), alphas in [(each, STRONG) for each in dense] + [(sparse_problem(), WEAK)]:
        size = f"{'sparse' if sparse.issparse(X) else 'wide'} ({X.shape[1]}, {task.max() + 1}"
        for alpha in alphas:
            row = []
            for systems.TURNED_PASSES in (24.0, 8.0, 0.0):
                model, seconds = fitted(
                    alpha, X, y, task, tol=1e-4, standardize=not sparse.issparse(X)
                )
                row.append(f"{model.n_iter_}, {seconds:.2f}")
            print(f"| {size}, {len(y)}) | {alpha:g} | " + " | ".join(row) + " |", flush=True)


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


def fitted(alpha, X, y, task, *, smoothing=1e-7, step_length=True, tol=1e-6, standardize=True):
    params = {"standardize": standardize, "fit_intercept": False, "max_iter": 2_000, "tol": tol}
    model = FeatureLearningRegressor(alpha, **params)
    model.smoothing = smoothing
    schedule = replace(model._algorithm.schedule(), extrapolate=step_length)
    model._schedule = lambda: schedule
    began = time.process_time()
    model.fit(X, y, task=task)
    return model, time.process_time() - began


def table(names, problems, fits, alphas=ALPHAS, steps=1_500):
    """Print sweeps, seconds and gaps, a column for each way to fit."""
    print("| set (P, T, rows) | alpha | " + " | ".join(names) + " |")
    print("| --- " * (2 + len(names)) + "|")
    for name, X, y, task in problems:
        cells = standardized(X, y, task)
        size = f"{name} ({X.shape[1]}, {cells[2].max() + 1}, {len(y)})"
        for alpha in alphas:
            found = [fit(alpha, X, y, task) for fit in fits]
            values = [objective(m._state.factors.coef, alpha, *cells) for m, _ in found]
            best = min(optimum(alpha, *cells, steps=steps), *values)
            row = [
                f"{m.n_iter_}, {seconds:.2f}, {value / best - 1.0:.0e}"
                for (m, seconds), value in zip(found, values, strict=True)
            ]
            print(f"| {size} | {alpha:g} | " + " | ".join(row) + " |", flush=True)


class LongerSide:
    """Stands in for the relation of columns: that of rows, of which the weights have more."""

    @staticmethod
    def of(between):
        return between


def longer(*problem, **rest):
    """Fit with the relation learned on the longer side of the weights."""
    kept, whole.AcrossColumns = whole.AcrossColumns, LongerSide
    try:
        return fitted(*problem, **rest)
    finally:
        whole.AcrossColumns = kept


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print("# MTFL: sweeps\n\nWritten by `python benchmarks/bench_trace_norm.py`.\n")
    versions = f"NumPy {np.__version__}, SciPy {scipy.__version__}"
    print(f"Python {platform.python_version()}, {versions}, one core.")
    print("Entries: sweeps, CPU seconds, gap.\n\n## Extrapolation and floor, tol=1e-6\n")
    names = [f"floor {s:g}, {'with' if r else 'without'} extrapolation" for s, r in VARIANTS]
    ways = [partial(fitted, smoothing=s, step_length=r) for s, r in VARIANTS]
    sides = "longer", "shorter"
    with threadpool_limits(1):
        table(names, problems(), ways)
        print("\n## Side of the weights that the relation is learned on, tol=1e-6\n")
        table(sides, problems(), [longer, fitted])
        print("\n## The same on wide rows, tol=1e-4\n")
        ways = [partial(longer, tol=1e-4), partial(fitted, tol=1e-4)]
        table(sides, wide_problems(), ways, alphas=STRONG, steps=400)
        print("\n## Dual solution compared with conjugate gradients, tol=1e-4\n")
        print("`TURNED_PASSES` of `systems.py`; entries: sweeps, CPU seconds.\n")
        by_passes()
