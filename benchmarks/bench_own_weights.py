"""Sparse rows times the coefficients of their task: block-diagonal products, dual ridge.

``python benchmarks/bench_own_weights.py``; ratios are within one run.
"""

import time
from unittest import mock

import numpy as np
from bench_operator import best, csr

from comtl.baselines import IndependentRegressor, MeanRegularizedRegressor
from comtl.datafits import rows_datafit as rows_module
from comtl.datafits.dual_ridge import MAX_OBSERVATIONS
from comtl.datafits.rows_datafit import RowsDatafit
from comtl.losses import Squared
from comtl.rows.design import Design

ROWS, COLUMNS, FILLED = 3_360, 5_000, 40
"""Sizes of an experiment on sentiment."""


SHAPES = (
    (ROWS, COLUMNS, (14, 42, 126, 500), 5),
    (ROWS, COLUMNS, (14, 42, 126, 500), None),
    (17_000, 500, (10,), 2),
    (17_000, 500, (10,), 5),
    (17_000, 500, (10,), None),
    (100_000, 5_000, (100,), 2),
    (100_000, 5_000, (100,), 10),
)
"""Rows, features, tasks and columns of F; None for one a task."""


def products() -> None:
    print("## One product and its transpose\n")
    print("`any`: general G; `own`: G fixed at the identity. Milliseconds.\n")
    print("| rows | features | tasks | columns | G | all columns | task columns | ratio | used |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    rng = np.random.default_rng(0)
    for rows, features, counts, width in SHAPES:
        X = csr(rows, features, FILLED)
        for tasks in counts:
            columns = width or tasks
            mixings = {"any": rng.standard_normal((tasks, columns))}
            if width is None:
                mixings["own"] = np.eye(tasks)
            for name, loadings in mixings.items():
                full, own, taken = product_times(X, tasks, loadings)
                line = f"{rows} | {features} | {tasks} | {columns} | {name} | {1e3 * full:.1f}"
                line += f" | {1e3 * own:.1f} | {full / own:.1f} | {'own' if taken else 'all'}"
                print(f"| {line} |", flush=True)


def product_times(X, tasks: int, loadings: np.ndarray) -> tuple[float, float, bool]:
    """Seconds by all columns and by those of the task, and whether the latter are used."""
    offsets = np.linspace(0, X.shape[0], tasks + 1).astype(int)
    ones = np.ones(X.shape[0])
    design = Design(X, np.zeros(X.shape[1]), np.ones(X.shape[1]))
    datafit = RowsDatafit(design, ones, ones, offsets, Squared())
    F, none = np.ones((X.shape[1], loadings.shape[1])), np.zeros(tasks)

    def work(own: bool) -> None:
        with mock.patch.object(rows_module, "blocks_are_cheaper", lambda *_, plain: own):
            datafit.run(F, loadings, none, lambda cells, score: score, loadings)

    full, own = best(lambda: work(False), lambda: work(True))
    return full, own, datafit._apart(loadings, loadings)


ROUGH = {"standardize": False, "tol": 1e-4}


def fit_time(model, X, y, task, most: int) -> float:
    """CPU seconds of a fit with kernels of tasks of so many rows at most."""
    with mock.patch("comtl.datafits.dual_ridge.MAX_OBSERVATIONS", most):
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
                fit_time(kind(alpha, **ROUGH), X, y, task, most) for most in (0, MAX_OBSERVATIONS)
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
    print("# Coefficients by task on wide rows\n")
    print("Written by `python benchmarks/bench_own_weights.py`: rows of 40 entries; where nothing")
    print("else is said 3,360 of 5,000 columns, as in the experiments on sentiment.\n")
    products()
    fits()
    sizes()
