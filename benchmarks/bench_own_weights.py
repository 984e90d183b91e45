"""Weights of each task's own on wide, sparse rows: products with own columns, ridge by kernels.

``python benchmarks/bench_own_weights.py``; ratios are within one run.
"""

import time
from unittest import mock

import numpy as np
from bench_operator import best, csr

from comtl.baselines import IndependentRegressor, MeanRegularizedRegressor
from comtl.datafits import rows as rows_module
from comtl.datafits.rows import RowsDatafit
from comtl.datafits.task_kernels import MOST_ROWS
from comtl.design import Design
from comtl.losses import Squared

ROWS, COLUMNS, FILLED = 3_360, 5_000, 40
"""Sizes of an experiment on sentiment."""


def products() -> None:
    print("## One product forth and back\n")
    print("| tasks | all columns ms | own columns ms | ratio |\n| --- | --- | --- | --- |")
    X = csr(ROWS, COLUMNS, FILLED)
    for tasks in (14, 28, 56, 126, 500):
        offsets = np.linspace(0, ROWS, tasks + 1).astype(int)
        design = Design.plain(X)
        datafit = RowsDatafit(design, np.ones(ROWS), np.ones(ROWS), offsets, Squared())
        F, mixing, none = np.ones((COLUMNS, tasks)), np.eye(tasks), np.zeros(tasks)

        def work(fewest, args=(F, mixing, none), datafit=datafit):
            with mock.patch.object(rows_module, "FEWEST", fewest):
                datafit.run(*args, lambda cells, score: score, args[1])

        full, own = best(lambda: work(10**9), lambda: work(1))
        print(f"| {tasks} | {1e3 * full:.1f} | {1e3 * own:.1f} | {full / own:.1f} |", flush=True)


ROUGH = {"standardize": False, "tol": 1e-4}


def fit_time(model, X, y, task, most: int) -> float:
    """CPU seconds of a fit with kernels of tasks of so many rows at most."""
    with mock.patch("comtl.datafits.task_kernels.MOST_ROWS", most):
        start = time.process_time()
        model.fit(X, y, task=task)
        return time.process_time() - start


def fits() -> None:
    print("\n## A fit with 28 tasks\n\nCPU seconds; `tol=1e-4`, columns as they are.\n")
    print("| model | α | Sylvester preconditioner | kernels of the tasks | ratio |")
    print("| --- | --- | --- | --- | --- |")
    rng = np.random.default_rng(0)
    X, task = csr(ROWS, COLUMNS, FILLED), np.repeat(np.arange(28), ROWS // 28)
    X.data /= np.sqrt(FILLED)
    y = X @ rng.standard_normal(COLUMNS) + 0.5 * rng.standard_normal(ROWS)
    for kind in (IndependentRegressor, MeanRegularizedRegressor):
        for alpha in (0.01, 1.0, 100.0):
            one, other = (
                fit_time(kind(alpha, **ROUGH), X, y, task, most) for most in (0, MOST_ROWS)
            )
            line = f"{kind.__name__} | {alpha:g} | {one:.1f} | {other:.2f} | {one / other:.0f}"
            print(f"| {line} |", flush=True)


def sizes() -> None:
    print("\n## A fit by the rows of a task\n\nIndependentRegressor, CPU seconds; as above.\n")
    print("| rows a task | α | Sylvester preconditioner | kernels of the tasks | ratio |")
    print("| --- | --- | --- | --- | --- |")
    rng = np.random.default_rng(0)
    X, y = csr(ROWS, COLUMNS, FILLED), rng.standard_normal(ROWS)
    X.data /= np.sqrt(FILLED)
    for rows in (60, 240, 480, 840, 1680):
        task = np.repeat(np.arange(ROWS // rows), rows)
        for alpha in (0.1, 10.0):
            model = IndependentRegressor(alpha, **ROUGH)
            one, other = (fit_time(model, X, y, task, most) for most in (0, 10**9))
            line = f"{rows} | {alpha:g} | {one:.2f} | {other:.2f} | {one / other:.1f}"
            print(f"| {line} |", flush=True)


if __name__ == "__main__":
    print("# Weights of each task's own on wide rows\n")
    print("Written by `python benchmarks/bench_own_weights.py`: 3,360 rows of 40 among 5,000")
    print("columns, as in the experiments on sentiment.\n")
    products()
    fits()
    sizes()
