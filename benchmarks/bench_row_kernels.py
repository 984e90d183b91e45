"""The feature step by the rows' inner products, against conjugate gradients by pooled covariance.

``python benchmarks/bench_row_kernels.py``; ratios are within one run.
"""

import time
import warnings
from unittest import mock

import numpy as np
from bench_operator import csr
from sklearn.exceptions import ConvergenceWarning

from comtl import BiFactorRegressor
from comtl.baselines import GroupOverlapRegressor
from comtl.datafits import dual_ridge as row_kernels
from comtl.datafits.dual_ridge import dual_is_cheaper
from comtl.engine import feature_step as systems

TASKS, COMMON, SWEEPS = 20, 30, 40


def table(rows: int, features: int, filled: int | None):
    """Rows with a common part, dense, or sparse with so many entries each; and new ones."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(TASKS), rows // TASKS)
    if filled is not None:
        X = csr(2 * len(task), features, filled)
        X.data /= np.sqrt(filled)
    else:
        common = rng.standard_normal((2 * len(task), COMMON))
        X = 0.5 * common @ rng.standard_normal((COMMON, features))
        X += rng.standard_normal(X.shape)
    W = rng.standard_normal((features, 3)) @ rng.standard_normal((3, TASKS))
    truth = np.asarray((X @ W)[np.arange(2 * len(task)), np.tile(task, 2)])
    truth /= truth.std()
    y = truth[: len(task)] + 0.5 * rng.standard_normal(len(task))
    return X[: len(task)], y, task, X[len(task) :], truth[len(task) :]


def timed(model, X, y, task, passes: float) -> float:
    """CPU seconds with or without the products of all rows."""
    most = mock.patch.object(row_kernels, "MOST_CELLS", 10**6)
    with most, mock.patch.object(systems, "PASSES_PER_EFOLD", passes), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.process_time()
        model.fit(X, y, task=task)
        return time.process_time() - start


def fits() -> None:
    print("CPU seconds of up to 40 sweeps, five columns; the error is that of new rows. Conjugate")
    print("gradients stop at a residual of 0.3 in BiFactor and of 0.01 in GO-MTL.\n")
    print("| model | rows | columns | nonzeros | covariance | products | ratio | chosen | error |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    sizes = [
        (200, 2_000, None),
        (800, 1_600, None),
        (800, 2_000, None),
        (1_500, 2_000, None),
        (1_000, 6_000, None),
        (2_500, 3_000, None),
        (400, 5_000, 40),
        (1_500, 5_000, 40),
        (2_240, 5_000, 40),
    ]
    for rows, features, filled in sizes:
        X, y, task, X_new, truth = table(rows, features, filled)
        for kind, tol in ((BiFactorRegressor, 0.3), (GroupOverlapRegressor, 0.01)):
            chosen = dual_is_cheaper(X, len(y), 5, -systems.PASSES_PER_EFOLD * np.log(tol))
            model = kind(n_components=5, max_iter=SWEEPS)
            seconds, errors = [], []
            for passes in (0.0, 1e9):
                seconds.append(timed(model, X, y, task, passes))
                gap = model.predict(X_new, task=task) - truth
                errors.append(f"{np.sqrt(np.mean(gap**2)):.3f}")
            sparse, ratio = "all" if filled is None else filled, seconds[0] / seconds[1]
            print(
                f"| {kind.__name__} | {len(y):,} | {features:,} | {sparse} | {seconds[0]:.2f} | "
                f"{seconds[1]:.2f} | {ratio:.1f} | {'products' if chosen else 'covariance'} | "
                f"{errors[0]}, {errors[1]} |",
                flush=True,
            )


if __name__ == "__main__":
    print("# The feature step in the dual\n")
    fits()
