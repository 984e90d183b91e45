"""Which λ and which smoothing to take where the user says nothing.

Held-out RMSE over the development problems for every pair, as a ratio to the problem's best
pair; the geometric mean over problems decides. `make bench` writes the result beside this file.
"""

import sys
import warnings

import numpy as np
from problems import development_problems, task_rmse

from comtl import BiFactorRegressor, TriFactorRegressor

HEADER = """# Defaults

Written by `python benchmarks/bench_defaults.py`: held-out RMSE (mean over tasks) of each pair, and
the geometric mean over problems of its ratio to the best pair. Chosen: alpha_task=0.5,
smoothing=0.01, alpha_core=1: near the best mean ratio for both models, while data with much noise
would take more and clean low-rank data less."""
ALPHAS = (0.01, 0.1, 0.3, 0.5, 1.0, 3.0, 10.0)
SMOOTHINGS = (0.1, 0.03, 0.01, 1e-3)


def table(make, problems, title):
    rows = {}
    for smoothing in SMOOTHINGS:
        for alpha in ALPHAS:
            for name, data in problems.items():
                model = make(smoothing=smoothing, alpha_task=alpha, random_state=0)
                guess = model.fit(data.X, data.y, task=data.task).predict(
                    data.X_test, task=data.task_test
                )
                rmse = task_rmse(data.y_test, guess, data.task_test)
                rows.setdefault((smoothing, alpha), {})[name] = rmse
    best = {name: min(row[name] for row in rows.values()) for name in problems}
    print(f"\n## {title}\n\n| smoothing | alpha | mean ratio | " + " | ".join(problems) + " |")
    print("| --- " * (3 + len(problems)) + "|")
    for (smoothing, alpha), row in rows.items():
        ratios = [row[name] / best[name] for name in problems]
        mean = np.exp(np.mean(np.log(ratios)))
        cells = " | ".join(f"{row[name]:.3f}" for name in problems)
        print(f"| {smoothing:g} | {alpha:g} | {mean:.4f} | {cells} |", flush=True)


def bi(shared):
    return lambda **kwargs: BiFactorRegressor(5, shared=shared, **kwargs)


def tri(core):
    return lambda **kwargs: TriFactorRegressor(6, 4, alpha_core=core, **kwargs)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(HEADER)
    for seed in [int(a) for a in sys.argv[1:]] or [0]:
        problems = development_problems(seed)
        for shared in (False, True):
            table(bi(shared), problems, f"BiFactor, K=5, shared={shared}, seed {seed}")
        for core in (0.1, 1.0):
            table(tri(core), problems, f"TriFactor, K=(6, 4), alpha_core={core}, seed {seed}")
