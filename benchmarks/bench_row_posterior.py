"""The posterior of all tasks by their Grams and by their rows: where is the break-even?

``python benchmarks/bench_row_posterior.py`` prints CPU times of one step of evidence.
"""

import time

import numpy as np

from comtl.datafits.gram import GramDatafit
from comtl.design import Design
from comtl.hierarchical.posterior import Prior, infer
from comtl.hierarchical.row_posterior import TaskRows, infer_rows
from comtl.hierarchical.structures import Factor


def seconds(work, *args, repeats=5):
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work(*args)
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    print("# Posterior by Grams and by rows\n")
    print("12 tasks; milliseconds of CPU for one posterior, the better of five.\n")
    print("| features | rows a task | features / rows | by Grams | by rows | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    rng = np.random.default_rng(0)
    for P in (60, 120, 240, 480):
        for share in (0.75, 1.0, 1.5, 2.0, 4.0, 8.0):
            n, tasks = max(int(P / share), 2), 12
            X, y = rng.normal(size=(tasks * n, P)), rng.normal(size=tasks * n)
            offsets, weights = n * np.arange(tasks + 1), np.ones(tasks * n)
            grams = GramDatafit.of_cells(Design.plain(X), y, weights, offsets)
            rows = TaskRows.of(np.column_stack([X, weights]), y, weights, offsets)
            prior = Prior(Factor.isotropic(0.5, 0.5, P), np.ones(tasks), 1.0, 1.0)
            one = 1e3 * seconds(infer, grams, prior)
            other = 1e3 * seconds(infer_rows, rows, prior)
            print(f"| {P} | {n} | {share:g} | {one:.1f} | {other:.1f} | {one / other:.1f} |")


if __name__ == "__main__":
    main()
