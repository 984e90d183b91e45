"""One GPU against the processor's cores: products, the operator of the feature step, whole fits.

``python benchmarks/devices.py products|operator|fit [--library torch|cupy]``; the grid of the
paper in one batch is ``bench_batch.py --library torch --device cuda``.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np


def milliseconds(
    work: Callable[[], object], done: Callable[[], object], repeats: int = 10
) -> float:
    """Mean time of a run among several handed to the GPU one after the other, the best of four."""
    found = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        done()
        found.append((time.perf_counter() - start) / repeats)
    return min(found[1:]) * 1e3  # the first is to warm up


def device_rows(library: str, rows: int, columns: int) -> tuple[Any, Callable[[], object]]:
    """Normal rows on the GPU, and how to wait for it."""
    if library == "torch":
        import torch

        torch.manual_seed(0)
        X = torch.empty(rows, columns, dtype=torch.float64, device="cuda")
        for start in range(0, rows, 100_000):
            X[start : start + 100_000].normal_()
        return X, torch.cuda.synchronize
    import cupy

    X = cupy.random.default_rng(0).standard_normal((rows, columns))
    return X, cupy.cuda.get_current_stream().synchronize


def products(library: str, rows: int = 2_000_000, columns: int = 1_000) -> None:
    """Both products of a step."""
    from comtl.arrays import namespace

    X, wait = device_rows(library, rows, columns)
    xp = namespace(X)
    print("| k | X @ V | X.T @ R |\n| --- | --- | --- |")
    for width in (1, 16, 17):
        V, R = xp.ones((columns, width), dtype=X.dtype), xp.ones((rows, width), dtype=X.dtype)
        forth = milliseconds(lambda V=V: X @ V, wait)
        back = milliseconds(lambda R=R: X.T @ R, wait)
        print(f"| {width} | {forth:.2f} ms | {back:.2f} ms |", flush=True)


def operator(library: str, rows: int = 1_000_000, columns: int = 1_000, width: int = 16) -> None:
    """Bytes a second of the operator of the feature step, against those of a copy."""
    from comtl.arrays import namespace
    from comtl.datafits.rows_datafit import RowsDatafit
    from comtl.factors import Factors
    from comtl.losses import Logistic, Squared
    from comtl.rows.design import Design

    X, wait = device_rows(library, rows, columns)
    xp = namespace(X)
    copy = milliseconds(lambda: xp.asarray(X, copy=True), wait)
    rate = 2 * X.nbytes / copy / 1e9
    print(f"Copy of {X.nbytes / 1e9:.0f} GB: {copy:.2f} ms, {rate:.2f} TB/s read and written.\n")
    print("| loss | tasks | operator | rows read twice | of the copy's rate |")
    print("| --- | --- | --- | --- | --- |")
    for loss in (Squared(), Logistic()):
        for tasks in (100, 20_000):
            offsets = np.linspace(0, rows, tasks + 1).astype(np.intp)
            y = xp.ones(rows, dtype=X.dtype)
            fit = RowsDatafit(Design.standardized(X, y), y, y, offsets, loss)
            F, G = xp.ones((columns, width), dtype=X.dtype), xp.ones((tasks, width), dtype=X.dtype)
            none = xp.zeros(tasks, dtype=X.dtype)
            point = Factors(F * 1e-3, None, G, xp.zeros(columns, dtype=X.dtype), 0.0, none)
            expansion = fit.quadratic_at(point)
            taken = milliseconds(lambda e=expansion, g=G, n=none: e.normal(F, g, n), wait)  # noqa: B023
            own = 2 * X.nbytes / taken / 1e9
            print(
                f"| {type(loss).__name__} | {tasks:,} | {taken:.2f} ms | {own:.2f} TB/s | "
                f"{100 * own / rate:.0f} % |",
                flush=True,
            )


def fit(library: str, rows: int, columns: int, tasks: int, rank: int, cpu: bool) -> None:
    """A whole fit on the GPU and, for comparison, on all cores of the processor."""
    from comtl import BiFactorRegressor
    from comtl.arrays import asarray_like, namespace, to_numpy

    X, wait = device_rows(library, rows, columns)
    xp = namespace(X)
    rng = np.random.default_rng(0)
    task = np.sort(rng.integers(0, tasks, rows))
    W, mix = (asarray_like(rng.normal(size=(n, rank)), X) for n in (columns, tasks))
    y = xp.sum((X @ W) * xp.take(mix, asarray_like(task, X), axis=0), axis=1)
    y = y / xp.std(y) + asarray_like(rng.normal(size=rows), X)
    model = BiFactorRegressor(rank, random_state=0)
    BiFactorRegressor(rank, max_iter=1).fit(X[:10_000], y[:10_000], task=task[:10_000])

    def timed(*data: Any) -> float:
        start = time.perf_counter()
        model.fit(data[0], data[1], task=task)
        wait()
        return time.perf_counter() - start

    print(
        f"{rows:,} × {columns:,} rows in float64, {tasks:,} tasks, K = {rank}; default settings.\n"
    )
    print("| where | seconds | sweeps | objective |\n| --- | --- | --- | --- |")
    times = []
    for _ in range(2):
        times.append(timed(X, y))
        objective = model.objective_history_[-1]
        print(f"| GPU | {times[-1]:.2f} | {model.n_iter_} | {objective:.10g} |", flush=True)
    if library == "torch":
        import torch

        print(f"\nMost memory on the GPU: {torch.cuda.max_memory_allocated() / 1e9:.1f} GB\n")
    if cpu:
        rows_here, y_here = to_numpy(X), to_numpy(y)
        here = timed(rows_here, y_here)
        objective = model.objective_history_[-1]
        print(f"| processor | {here:.1f} | {model.n_iter_} | {objective:.10g} |")
        print(f"\nRatio: {here / min(times):.1f}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("products", "operator", "fit"))
    parser.add_argument("--library", choices=("torch", "cupy"), default="torch")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--no-cpu", action="store_true")
    options = parser.parse_args()
    if options.what == "fit":
        fit(options.library, options.rows, 1_000, 20_000, 16, not options.no_cpu)
    else:
        getattr(sys.modules["__main__"], options.what)(options.library)
