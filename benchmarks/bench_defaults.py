"""Which λ and which smoothing to take where the user says nothing.

Held-out RMSE over the development problems for every pair, as a ratio to the problem's best
pair; the geometric mean over problems decides. `make bench` writes the result beside this file.
"""

import sys
import warnings

import numpy as np
from problems import development_problems, task_rmse

from comtl import BiFactorRegressor, TriFactorRegressor

ALPHAS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
SMOOTHINGS = (0.1, 0.03, 0.01, 1e-3, 1e-4)


def table(make, problems, title):
    rows = {}
    for smoothing in SMOOTHINGS:
        for alpha in ALPHAS:
            for name, data in problems.items():
                model = make(smoothing, alpha).fit(data.X, data.y, task=data.task)
                guess = model.predict(data.X_test, task=data.task_test)
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


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    seeds = [int(a) for a in sys.argv[1:]] or [0]
    for seed in seeds:
        problems = development_problems(seed)
        for shared in (False, True):
            table(
                lambda e, a, s=shared: BiFactorRegressor(
                    5, smoothing=e, alpha_task=a, shared=s, random_state=0
                ),
                problems,
                f"BiFactor, K=5, shared={shared}, seed {seed}",
            )
        for core in (0.01, 0.1, 1.0):
            table(
                lambda e, a, c=core: TriFactorRegressor(
                    6, 4, smoothing=e, alpha_task=a, alpha_core=c, random_state=0
                ),
                problems,
                f"TriFactor, K=(6, 4), alpha_core={core}, seed {seed}",
            )
