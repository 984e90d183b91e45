"""How many held-out rows lie within intervals of 90 %: pooled, and as a mean over tasks.

`make bench` writes the result beside this file; needs COMTL_DATA.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "leaderboard"))
from problems import PROBLEMS

from comtl import HierarchicalRegressor, MultitaskRegressor

SETS, LEVEL, SEEDS = ("school 20%", "hsb82", "computer_survey"), 0.9, 2


def coverage(model, split):
    low, high = model.predict_interval(split.X_test, LEVEL, task=split.task_test)
    inside = (low <= split.y_test) & (split.y_test <= high)
    _, codes = np.unique(split.task_test, return_inverse=True)
    each = np.bincount(codes, inside) / np.bincount(codes)
    return inside.mean(), each.mean()


def noisy(rows, seed):
    """Rows of 40 tasks with three features, a quarter of the tasks with ten times the noise."""
    rng = np.random.default_rng(seed)
    spread = np.where(np.arange(40) % 4 == 0, 10.0**0.5, 1.0)
    slopes = 1.0 + 0.3 * rng.standard_normal((40, 3))

    def draw(count):
        task = np.repeat(np.arange(40), count)
        X = rng.standard_normal((len(task), 3))
        noise = spread[task] * rng.standard_normal(len(task))
        return X, np.einsum("np,np->n", X, slopes[task]) + noise, task

    return *draw(rows), *draw(200), spread


def by_noise(model, rows):
    """Share of new rows inside, of noisy and of quiet tasks."""
    found = []
    for seed in range(5):
        X, y, task, X_test, y_test, task_test, spread = noisy(rows, seed)
        low, high = model.fit(X, y, task=task).predict_interval(X_test, LEVEL, task=task_test)
        inside = (low <= y_test) & (y_test <= high)
        loud = spread[task_test] > 1.0
        found.append((inside[loud].mean(), inside[~loud].mean()))
    return "{:.3f}, {:.3f}".format(*np.mean(found, axis=0))


def main():
    warnings.simplefilter("ignore")
    print("# 90 % prediction intervals\n")
    print("Written by `python benchmarks/bench_intervals.py`: share of")
    print(f"held-out rows covered, pooled and as a mean over tasks; mean of {SEEDS} seeds.\n")
    print("| | " + " | ".join(SETS) + " |\n|" + " --- |" * (len(SETS) + 1))
    for name, model in (
        ("MultitaskRegressor", MultitaskRegressor()),
        ('HierarchicalRegressor("full")', HierarchicalRegressor()),
    ):
        line = []
        for data in SETS:
            found = []
            for seed in range(SEEDS):
                split = PROBLEMS[data].split(seed)
                model.fit(split.X, split.y, task=split.task)
                found.append(coverage(model, split))
            pooled, each = np.mean(found, axis=0)
            line.append(f"{pooled:.3f}, {each:.3f}")
        print(f"| {name} | " + " | ".join(line) + " |")
    sizes = (10, 25, 60)
    print(
        "\nDrawn: 40 tasks, a quarter of them with ten times the noise; rows of noisy and of quiet"
    )
    print("tasks inside, mean of five draws.\n")
    print("| rows a task | " + " | ".join(map(str, sizes)) + " |\n|" + " --- |" * (len(sizes) + 1))
    for name, model in (
        ("MultitaskRegressor", MultitaskRegressor()),
        ('HierarchicalRegressor(noise="task")', HierarchicalRegressor(noise="task")),
        ("HierarchicalRegressor()", HierarchicalRegressor()),
    ):
        print(f"| {name} | " + " | ".join(by_noise(model, rows) for rows in sizes) + " |")


if __name__ == "__main__":
    main()
