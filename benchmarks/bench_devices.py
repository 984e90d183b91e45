"""Time products of rows and a whole fit on a GPU: ``python benchmarks/bench_devices.py products``.

``fit`` takes rows, columns, tasks and rank: ``... fit 2000000 1000 20000 16 torch``.
"""

import sys
import time
from collections.abc import Callable

import numpy as np


def milliseconds(work: Callable[[], object], done: Callable[[], object], repeats: int = 3) -> float:
    """Mean time of some runs after one to warm up."""
    work()
    done()
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    done()
    return (time.perf_counter() - start) / repeats * 1e3


def products(rows: int = 2_000_000, columns: int = 1_000) -> None:
    """Both products of a step, plain and in batches."""
    import torch

    from comtl import blocks

    for dtype in (torch.float64, torch.float32):
        X = torch.empty(rows, columns, dtype=dtype, device="cuda")
        for start in range(0, rows, 100_000):
            X[start : start + 100_000].normal_()
        for width in (1, 16, 17):
            V = torch.randn(columns, width, dtype=dtype, device="cuda")
            R = torch.randn(rows, width, dtype=dtype, device="cuda")
            for size in (None, 500, 2_000, 10_000, 50_000):
                blocks.DEVICE_ROWS = size
                wait = torch.cuda.synchronize
                forth = milliseconds(lambda X=X, V=V: blocks.device_forward(X, V), wait)
                back = milliseconds(lambda X=X, R=R: blocks.device_backward(X, R), wait)
                print(dtype, width, size, f"{forth:.1f} {back:.1f}", flush=True)
        del X


def fit(rows: int, columns: int, tasks: int, rank: int, library: str, sweeps: int = 3) -> None:
    """Time of a fit, sweep by sweep, and the most memory it took."""
    from comtl import BiFactorRegressor

    if library == "torch":
        import torch

        torch.manual_seed(0)
        X = torch.empty(rows, columns, dtype=torch.float64, device="cuda")
        for start in range(0, rows, 100_000):
            X[start : start + 100_000].normal_()
        task = np.sort(np.random.default_rng(0).integers(0, tasks, rows))
        W = torch.randn(columns, rank, dtype=torch.float64, device="cuda")
        mix = torch.randn(tasks, rank, dtype=torch.float64, device="cuda")
        y = ((X @ W) * mix[torch.asarray(task, device="cuda")]).sum(1)
        y += y.std() * torch.randn(rows, dtype=torch.float64, device="cuda")
        wait, peak = torch.cuda.synchronize, lambda: torch.cuda.max_memory_allocated() / 1e9
        torch.cuda.reset_peak_memory_stats()
    else:
        import cupy

        rng = cupy.random.default_rng(0)
        X = rng.standard_normal((rows, columns))
        task = np.sort(np.random.default_rng(0).integers(0, tasks, rows))
        W, mix = rng.standard_normal((columns, rank)), rng.standard_normal((tasks, rank))
        y = ((X @ W) * mix[cupy.asarray(task)]).sum(1)
        y += y.std() * rng.standard_normal(rows)
        wait = cupy.cuda.get_current_stream().synchronize
        peak = lambda: cupy.get_default_memory_pool().total_bytes() / 1e9  # noqa: E731
    for most in range(1, sweeps + 1):
        model = BiFactorRegressor(rank, max_iter=most, tol=0.0)
        start = time.perf_counter()
        model.fit(X, y, task=task)
        wait()
        print(f"{most} sweeps: {time.perf_counter() - start:.2f} s", flush=True)
    start = time.perf_counter()
    score = model.score(X, y, task=task)
    print(f"score {score:.4f} in {time.perf_counter() - start:.2f} s; peak {peak():.1f} GB")


if __name__ == "__main__":
    if sys.argv[1] == "products":
        products()
    else:
        fit(*map(int, sys.argv[2:6]), sys.argv[6])
