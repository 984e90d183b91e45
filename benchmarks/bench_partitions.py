"""Partitions on two workers against one process with two threads, and growth with the rows.

The second part reads parquet files with less memory for the workers than the rows take up.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

from comtl import BiFactorClassifier, BiFactorRegressor

warnings.simplefilter("ignore")


def cluster(workers: int = 2, **options: object) -> LocalCluster:
    """Workers of one thread each."""
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address=":0",
        silence_logs=50,
        **options,
    )


def seconds(fit: Callable[..., object], *args: object, **options: object) -> float:
    """Time of a fit."""
    start = time.perf_counter()
    fit(*args, **options)
    return time.perf_counter() - start


def against_threads(rows: int, features: int, tasks: int, width: int) -> None:
    """The same fit by two workers and by two threads, rows in memory for both."""
    model = BiFactorRegressor(width, max_iter=5, tol=0.0, random_state=0)
    chunk = rows // 8
    X = da.random.default_rng(0).normal(size=(rows, features), chunks=(chunk, features))
    rng = np.random.default_rng(0)
    task = np.sort(rng.integers(0, tasks, rows))
    y = rng.normal(size=rows)
    print("## Two workers against two threads\n")
    print(f"{rows:,} rows, {features} features, {tasks:,} tasks, {width} columns; 5 sweeps.\n")
    print("| rows of a task | one process, two threads | two workers | ratio |")
    print("| --- | --- | --- | --- |")
    for order in ("next to each other", "anywhere"):
        labels = task if order == "next to each other" else rng.permutation(task)
        with cluster() as local, Client(local) as client:
            dX, dy, dt = client.persist(
                [X, da.from_array(y, chunks=chunk), da.from_array(labels, chunks=chunk)]
            )
            for one in (dX, dy, dt):
                one.sum().compute()
            there = seconds(model.fit, dX, dy, task=dt)
            coef = model.coef_
            table = dX.compute()
        with threadpool_limits(2):
            here = seconds(model.fit, table, y, task=labels)
        gap = np.abs(model.coef_ - coef).max() / np.abs(coef).max()
        assert gap < 1e-8, gap
        print(f"| {order} | {here:.1f} s | {there:.1f} s | {there / here:.2f} |", flush=True)


def messages() -> None:
    """What a step costs where the rows cost nothing."""
    from comtl.distributed.partitioned_datafit import PartitionedDatafit

    steps, run = [], PartitionedDatafit.run

    def timed(*args: object, **options: object) -> object:
        start = time.perf_counter()
        found = run(*args, **options)
        steps.append(time.perf_counter() - start)
        return found

    PartitionedDatafit.run = timed
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(800, 5)), np.repeat(np.arange(20), 40)
    dX, dy, dt = (
        da.from_array(a, chunks=(100,) + (-1,) * (a.ndim - 1)) for a in (X, X[:, 0] > 0, task)
    )
    with cluster() as local, Client(local):
        BiFactorClassifier(2, max_iter=5, random_state=0).fit(dX, dy, task=dt)
    PartitionedDatafit.run = run
    print("\n## Messages\n")
    print(f"A step on 8 partitions of 100 rows: {1e3 * np.median(steps):.0f} ms (median).")


def growth(sizes: list[int], features: int, tasks: int, limit: int) -> None:
    """Time against rows, read from parquet by workers with little memory."""
    print("\n## Scaling with the number of rows\n")
    print(
        f"{features} features in float32 and {tasks:,} tasks from parquet, two workers of "
        f"{limit / 2**20:.0f} MiB each; 2 sweeps.\n"
    )
    print("| rows | bytes of X over the workers' memory | seconds | seconds a million rows |")
    print("| --- | --- | --- | --- |")
    names = [f"x{i}" for i in range(features)]
    model = BiFactorRegressor(5, task_column="task", max_iter=2, tol=0.0, random_state=0)
    for rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            part = 125_000
            for number in range(rows // part):
                rng = np.random.default_rng(number)
                frame = pd.DataFrame(
                    rng.standard_normal((part, features), np.float32), columns=names
                )
                frame["task"] = rng.integers(0, tasks, part)
                frame["y"] = (frame["x0"] * (frame["task"] % 3 - 1)).astype(np.float32)
                frame.to_parquet(Path(folder) / f"{number:04}.parquet", compression=None)
            with cluster(memory_limit=limit) as local, Client(local):
                lazy = dd.read_parquet(folder)
                taken = seconds(model.fit, lazy.drop(columns="y"), lazy["y"])
        share = 4 * rows * features / (2 * limit)
        print(f"| {rows:,} | {share:.2f} | {taken:.1f} | {taken / rows * 1e6:.1f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true", help="a hundredth of the rows")
    small = parser.parse_args().small
    scale = 100 if small else 1
    print("# Rows in partitions\n")
    print("Written by `python benchmarks/bench_partitions.py`; ratios are within one run.\n")
    against_threads(1_000_000 // scale, 300, 20_000 // scale, 10)
    sizes = [500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000]
    messages()
    growth(sizes[: 1 if small else None], 100, 20_000, 5 * 2**28)
