"""One feature: members that learn how slope and level go together, or none.

`make bench` writes the result beside this file.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator

import numpy as np

from comtl import MultitaskRegressor
from comtl.stacking import default_members as library
from small_tables import SEEDS, Split, error, grouped, split, tables

ALL = library._structures


def without_full(n_features: int, n_tasks: int) -> list[str]:
    """Structures but for those with a covariance of slope and level."""
    return [name for name in ALL(n_features, n_tasks) if "full" not in name]


def stack(one: Split, structures) -> float:
    """RMSE of a stack on the rows that do not train."""
    X, y, task, train = one
    library._structures = structures
    try:
        model = MultitaskRegressor().fit(X[train], y[train], task=task[train])
    finally:
        library._structures = ALL
    return error(model.predict(X[~train], task=task[~train]), one)


def drawn(rows: int, correlation: float, tasks: int = 40) -> Iterator[Split]:
    """Tasks with correlated slopes and intercepts; noise of the same variance."""
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        spread = np.linalg.cholesky([[1.0, correlation], [correlation, 1.0]])
        level, slope = spread @ rng.standard_normal((2, tasks))
        task = np.repeat(np.arange(tasks), rows + 50)
        x = rng.uniform(0.0, 2.0, len(task))
        y = 3.0 + level[task] + slope[task] * (x - 1.0) + rng.standard_normal(len(task))
        train = np.tile(np.arange(rows + 50) < rows, tasks)
        yield x[:, None], y, task, train


def one_column(splits: Iterable[Split]) -> Iterator[Split]:
    """The same rows with the one column that goes with the target most."""
    for X, y, task, train in splits:
        told = [abs(np.corrcoef(column, y)[0, 1]) for column in X.T]
        yield X[:, [np.argmax(told)]], y, task, train


def sets() -> Iterator[tuple[str, Iterable[Split]]]:
    """Simulated tasks, and tables with one of their columns."""
    for rows in (3, 10):
        for correlation in (0.0, 0.5, 0.9):
            yield f"simulated, {rows} rows, correlation {correlation}", drawn(rows, correlation)
    yield "sleepstudy, 50%", split(grouped("sleepstudy", "Subject", "Reaction"), 0.5)
    for name, _, splits in tables():
        yield name, one_column(splits)


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    print("# One feature\n")
    print("Test RMSE of `MultitaskRegressor` without and with its members `full`, which")
    print("estimate the correlation of slopes and intercepts; mean of five draws or splits, in")
    print("brackets the standard error of the difference. Tables have the one column that goes")
    print("with the target most.\n")
    print("| set | without | with | difference |")
    print("| --- | --- | --- | --- |")
    for name, splits in sets():
        found = np.array([[stack(it, way) for way in (without_full, ALL)] for it in splits])
        before, after = found.mean(axis=0)
        gaps = found[:, 1] - found[:, 0]
        spread = gaps.std(ddof=1) / SEEDS**0.5
        gap = f"{gaps.mean():+.2g} ({spread:.2g})"
        print(f"| {name} | {before:.4g} | {after:.4g} | {gap} |", flush=True)


if __name__ == "__main__":
    main()
