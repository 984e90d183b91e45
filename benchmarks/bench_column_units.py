"""Cost and gain of scaling each column of a two-dimensional y separately.

`make bench` writes the result beside this file.
"""

from __future__ import annotations

import warnings

import numpy as np

from comtl import MultitaskRegressor
from comtl.baselines import IndependentRegressor

SETTINGS = (
    # columns, features, rows, share of observed targets, spread of the logarithm of the units
    (30, 3, 200, 0.03, 0.0),
    (30, 3, 200, 0.1, 0.0),
    (10, 5, 30, 1.0, 0.0),
    (30, 3, 200, 0.1, 0.5),
    (30, 3, 200, 0.1, 3.0),
    (10, 5, 30, 1.0, 3.0),
)
SEEDS = range(3)


def draw(columns: int, features: int, rows: int, share: float, spread: float, seed: int):
    """Rows, targets with missing values, signal without noise, and the unit of each column."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features))
    unit = np.exp(spread * rng.standard_normal(columns))
    weights = 1.0 + 0.5 * rng.standard_normal((columns, features))
    truth = X @ weights.T + 2.0 * rng.standard_normal(columns)
    Y = truth + rng.standard_normal(truth.shape)
    known = rng.random(Y.shape) < share
    known[rng.integers(rows, size=columns), np.arange(columns)] = True
    return X, np.where(known, Y * unit, np.nan), truth, unit


def errors(setting: tuple, seed: int) -> list[float]:
    """Root mean squared errors of the signal, where every column has noise of one."""
    X, Y, truth, unit = draw(*setting, seed)
    task, row = np.nonzero(~np.isnan(Y.T))
    long = MultitaskRegressor().fit(X[row], Y[row, task], task=task)
    guesses = (
        MultitaskRegressor().fit(X, Y).predict(X),
        X @ long.coef_.T + long.intercept_,
        IndependentRegressor(1.0).fit(X, Y).predict(X),
    )
    return [float(np.sqrt(np.mean((guess / unit - truth) ** 2))) for guess in guesses]


def main() -> None:
    warnings.simplefilter("ignore")
    print(
        "# Units of the columns of y\n\nWritten by `python benchmarks/bench_column_units.py`: error"
    )
    print("of the signal where noise is one. `MultitaskRegressor` on the table (own units), on the")
    print("same data as rows with a task (one unit), `IndependentRegressor(1.0)` on the table;")
    print(f"mean of {len(SEEDS)} seeds. Logarithms of the units have the spread given.\n")
    print("| columns | observations per column | log units | own units | one unit | separate |")
    print("| --- | --- | --- | --- | --- | --- |")
    for setting in SETTINGS:
        columns, _, rows, share, spread = setting
        found = np.mean([errors(setting, seed) for seed in SEEDS], axis=0)
        figures = " | ".join(f"{value:.3f}" for value in found)
        print(f"| {columns} | {rows * share:.0f} | {spread:g} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
