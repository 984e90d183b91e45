"""How many held-out rows lie within intervals of 90 %: pooled, and as a mean over tasks.

`make bench` writes the result beside this file; needs COMTL_DATA.
"""

import sys
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


def main():
    print("# Intervals of 90 %\n\nWritten by `python benchmarks/bench_intervals.py`: share of")
    print(f"held-out rows inside, pooled and as a mean over tasks; mean of {SEEDS} seeds.\n")
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


if __name__ == "__main__":
    main()
