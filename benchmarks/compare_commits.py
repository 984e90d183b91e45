"""CPU seconds of the same fits by an earlier commit and by the working tree, in turns.

python benchmarks/compare_commits.py COMMIT

Machines are noisy, so only the ratios of one run count. Both sides run this file, each with its
own comtl first on the path; of several turns the shortest time of each fit counts.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from functools import partial
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).resolve().parent
TURNS, SECONDS = 5, 1.0
"""Processes of each side, and for how long each repeats a fit that is short."""


def rows(n_tasks, per_task, n_features, rank=3, seed=0):
    """Rows of tasks whose weights are of low rank, and labels of two classes for them."""
    import numpy as np

    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), per_task)
    X = rng.standard_normal((len(task), n_features))
    coef = rng.standard_normal((n_tasks, rank)) @ rng.standard_normal((rank, n_features))
    y = (X * coef[task]).sum(axis=1) + rng.standard_normal(len(task))
    return X, y, task, y > 0


def works():
    """Fits by name, of every kind of model; on real tables where COMTL_DATA is set."""
    from problems import REAL, _table

    import comtl
    from comtl import baselines

    X, y, task, label = rows(30, 30, 40)
    large, small = rows(100, 500, 200, 5), rows(30, 20, 6)
    fits = {
        "BiFactorRegressor": partial(comtl.BiFactorRegressor(random_state=0).fit, X, y, task),
        "BiFactorRegressor, rows": partial(comtl.BiFactorRegressor(random_state=0).fit, *large[:3]),
        "BiFactorClassifier": partial(comtl.BiFactorClassifier(random_state=0).fit, X, label, task),
        "TriFactorRegressor": partial(comtl.TriFactorRegressor(random_state=0).fit, X, y, task),
        "BiFactorRegressorCV": partial(
            comtl.BiFactorRegressorCV(random_state=0, alphas=(0.01, 0.1, 1.0)).fit, X, y, task
        ),
        "HierarchicalRegressor": partial(comtl.HierarchicalRegressor().fit, X, y, task),
        "HierarchicalClassifier": partial(comtl.HierarchicalClassifier().fit, X, label, task),
        "MultitaskRegressor": partial(comtl.MultitaskRegressor().fit, *small[:3]),
        "MultitaskClassifier": partial(
            comtl.MultitaskClassifier().fit, small[0], small[3], small[2]
        ),
    }
    for name in ("Pooled", "Independent", "FeatureLearning", "MeanRegularized", "RandomIntercept"):
        fits[f"{name}Regressor"] = partial(
            getattr(baselines, f"{name}Regressor")(random_state=0).fit, X, y, task
        )
    for name, told in REAL.items():
        if (data := _table(*told, seed=0)) is not None:
            fits[f"MultitaskRegressor, {name}"] = partial(
                comtl.MultitaskRegressor().fit, data.X, data.y, data.task
            )
    return fits


def measure():
    """Shortest CPU time of each fit in this process."""
    begun = time.process_time()
    import comtl

    found = {"import comtl": time.process_time() - begun}
    assert Path(comtl.__file__).is_relative_to(os.environ["PYTHONPATH"])
    warnings.simplefilter("ignore")
    for name, work in works().items():
        spent, end = [], time.perf_counter() + SECONDS
        while not spent or time.perf_counter() < end:
            begun = time.process_time()
            work()
            spent.append(time.process_time() - begun)
        found[name] = min(spent)
    return found


def main(commit):
    root = HERE.parent
    archive = subprocess.check_output(["git", "archive", commit, "src"], cwd=root)
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
        sides, best = [Path(folder) / "src", root / "src"], [{}, {}]
        for turn in range(TURNS):
            for place in (0, 1) if turn % 2 else (1, 0):
                command = [sys.executable, __file__, "--measure"]
                threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
                environment = {**os.environ, **threads, "PYTHONPATH": str(sides[place])}
                found = json.loads(subprocess.check_output(command, env=environment))
                best[place] = {n: min(s, best[place].get(n, s)) for n, s in found.items()}
    short = subprocess.check_output(["git", "rev-parse", "--short", commit], cwd=root, text=True)
    print(f"CPU seconds, the shortest of {TURNS} turns; one thread of BLAS.\n")
    print(f"| fit | {short.strip()} | now | ratio |\n| --- | --- | --- | --- |")
    for name, before in best[0].items():
        print(f"| {name} | {before:.3f} | {best[1][name]:.3f} | {best[1][name] / before:.2f} |")


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        print(json.dumps(measure()))
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        raise SystemExit(__doc__)
