"""CPU seconds of the stack on drawn tables: the default and ``form="linear"``, and their growth.

``python benchmarks/bench_stack_speed.py > benchmarks/bench_stack_speed.md`` takes three minutes.
"""

from __future__ import annotations

import platform
import time
import warnings
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from threadpoolctl import threadpool_limits

from comtl import MultitaskRegressor

TABLES = {
    "6,000 rows, 22 columns, 1,000 tasks": (1000, 6, 22),
    "100,000 rows, 5 columns, 50,000 tasks": (50000, 2, 5),
    "2,000 rows, 10 columns, 200 tasks": (200, 10, 10),
    "twice the rows of each task": (200, 20, 10),
    "twice the tasks": (400, 10, 10),
    "twice the columns": (200, 10, 20),
}


def draw(tasks: int, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights and a level of each task, and an interaction that all share."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(tasks), rows)
    X = rng.standard_normal((len(task), columns))
    weights = rng.standard_normal(columns) + 0.4 * rng.standard_normal((tasks, columns))
    y = rng.standard_normal(tasks)[task] + np.einsum("np,np->n", X, weights[task])
    return X, y + 2.0 * np.maximum(X[:, 0], 0.0) * X[:, 1] + rng.standard_normal(len(task)), task


def draw_wide() -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
    """A thousandth of a million columns has a value in each row; 200 columns and levels count."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((400, 1_000_000), density=1e-3, rng=rng, format="csr")
    task = rng.integers(0, 20, 400)
    y = X[:, :200] @ rng.standard_normal(200) + rng.standard_normal(20)[task]
    return X, y + 0.3 * rng.standard_normal(400), task


def seconds(form: str, table: tuple[Any, np.ndarray, np.ndarray]) -> tuple[float, str]:
    """CPU seconds of a fit, and the form that was kept."""
    X, y, task = table
    start = time.process_time()
    model = MultitaskRegressor(form=form).fit(X, y, task=task)
    return time.process_time() - start, model.form_


def main() -> None:
    warnings.simplefilter("ignore")
    print("# Speed of the stack\n")
    print(
        'CPU seconds of `MultitaskRegressor()` and of `form="linear"` on drawn tables, one thread.'
    )
    print("The last three lines each double one size of the line before them.\n")
    print("| table | default | kept | linear |\n| --- | --- | --- | --- |")
    with threadpool_limits(1):
        seconds("auto", draw(20, 10, 3))  # imports
        tables = {name: draw(*sizes) for name, sizes in TABLES.items()}
        wide = {"400 rows, 1,000,000 sparse columns, 20 tasks": draw_wide()}
        for name, table in (wide | tables).items():
            (own, kept), (linear, _) = (seconds(form, table) for form in ("auto", "linear"))
            print(f"| {name} | {own:.1f} | {kept} | {linear:.1f} |", flush=True)
    print(
        f"\nPython {platform.python_version()}, numpy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}."
    )


if __name__ == "__main__":
    main()
