"""Hierarchical models: CPU time by structure and size, growth, and lme4 on growth curves.

``python benchmarks/bench_hierarchical_speed.py`` prints the page. With ``COMTL_BEFORE``, a folder
``src`` of an earlier checkout, the same fits are timed there too; with Rscript and lme4 installed,
random slopes of the growth-curve tables are compared.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from comtl import HierarchicalRegressor

CASES = [
    (200, 50, 200, "isotropic"),
    (200, 50, 200, "diagonal"),
    (200, 50, 200, "factor"),
    (200, 50, 200, "full"),
    (1100, 6, 22, "isotropic"),
    (1100, 6, 22, "full"),
    (50_000, 2, 5, "isotropic"),
    (50_000, 2, 5, "full"),
]
"""Tasks, rows of each, columns, structure."""
WIDE = [(100, 10, P, s) for P in (625, 1250, 2500, 5000) for s in ("isotropic", "factor")]
GROWTH = [(T, 50, 50, "isotropic") for T in (200, 400, 800)]
GROWTH += [(T, 50, 50, "full") for T in (200, 400, 800)]
GROWTH += [(200, n, 50, "full") for n in (50, 100, 200)]
TABLES = {
    "sleepstudy": ("lme4::sleepstudy", "Reaction", "Days", "Subject"),
    "Orthodont": ("nlme::Orthodont", "distance", "age", "Subject"),
    "Oxboys": ("nlme::Oxboys", "height", "age", "Subject"),
    "ChickWeight": ("datasets::ChickWeight", "weight", "Time", "Chick"),
}
REPEATS = 20
SCRIPT = """
suppressMessages(library(lme4)); suppressMessages(library(nlme))
t <- as.data.frame({table})
d <- data.frame(y=t[["{y}"]], x=as.numeric(t[["{x}"]]), g=as.character(t[["{g}"]]))
d$x <- d$x - mean(d$x)
write.csv(d, "{file}", row.names=FALSE)
f <- function() suppressWarnings(suppressMessages(lmer(y ~ x + (1 + x | g), d)))
m <- f(); s <- proc.time(); for (i in 1:{repeats}) f(); e <- (proc.time() - s) / {repeats}
cat(e[["user.self"]] + e[["sys.self"]], fixef(m)[2], VarCorr(m)$g[2, 2], sigma(m)^2)
"""


def table(tasks: int, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Common slopes, three directions, independent random slopes, intercepts and noise."""
    rng = np.random.default_rng(0)
    common, rest = rng.normal(size=columns), 0.3 * rng.normal(size=(tasks, columns))
    W = common + rng.normal(size=(tasks, 3)) @ rng.normal(size=(3, columns)) + rest
    task = np.repeat(np.arange(tasks), rows)
    X = rng.normal(size=(len(task), columns))
    y = np.einsum("ij,ij->i", X, W[task]) / np.sqrt(columns) + rng.normal(size=tasks)[task]
    return X, y + 0.7 * rng.normal(size=len(task)), task


def measured(case: tuple) -> tuple[float, int, float]:
    """CPU seconds, steps and log likelihood of one fit."""
    *sizes, structure = case
    X, y, task = table(*sizes)
    start = time.process_time()
    model = HierarchicalRegressor(structure).fit(X, y, task=task)
    return time.process_time() - start, model.n_iter_, float(model.log_evidence_)


def earlier(case: tuple) -> str:
    """The same by an earlier checkout."""
    folder = os.environ.get("COMTL_BEFORE")
    if folder is None:
        return "| "
    environment = os.environ | {"PYTHONPATH": folder}
    command = [sys.executable, __file__, json.dumps(case)]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds, steps, value = json.loads(out.stdout)
    return f"| {seconds:.2f} s, {steps} steps, {value:.2f} "


def line(case: tuple, *, before: bool) -> None:
    """One line of a table."""
    seconds, steps, value = measured(case)
    sizes = " | ".join(map(str, case))
    past = earlier(case) if before else ""
    print(f"| {sizes} {past}| {seconds:.2f} s, {steps} steps, {value:.2f} |", flush=True)


def growth_curves() -> None:
    """Random slopes by lme4 and by the structure "full" without a prior."""
    print("\n## lme4\n")
    print(f"`lmer(y ~ x + (1 + x | g))`, the mean of {REPEATS} fits each; x is centred.\n")
    print("| table | lme4 | comtl | ratio | slope | variance of slopes | of the noise |")
    print("| --- " * 7 + "|")
    for name, (data, y, x, g) in TABLES.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "table.csv"
            script = SCRIPT.format(table=data, y=y, x=x, g=g, file=file, repeats=REPEATS)
            command = ["Rscript", "-e", script]
            out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            told = pd.read_csv(file)
        theirs, slope, between, noise = map(float, out.split())
        X, target, task = told[["x"]].to_numpy(float), told.y.to_numpy(), told.g.to_numpy()
        model = HierarchicalRegressor("full", prior_weight=0).fit(X, target, task=task)
        start = time.process_time()
        for _ in range(REPEATS):
            model.fit(X, target, task=task)
        ours = (time.process_time() - start) / REPEATS
        pairs = (
            (slope, model.shared_coef_[0]),
            (between, model.slope_covariance_[0, 0]),
            (noise, model.noise_variance_),
        )
        cells = " | ".join(f"{one:.5g}, {other:.5g}" for one, other in pairs)
        times = f"{1e3 * theirs:.1f} ms | {1e3 * ours:.1f} ms | {theirs / ours:.1f}"
        print(f"| {name} | {times} | {cells} |", flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1:
        print(json.dumps(measured(tuple(json.loads(sys.argv[1])))))
        return
    print("# Time of hierarchical models\n")
    print(f"CPU seconds, steps and log restricted likelihood; NumPy {np.__version__}, ", end="")
    print(f"{platform.machine()}, one thread.\n")
    print("| tasks | rows of each | columns | structure | EM, commit eed5a69 | scoring |")
    print("| --- " * 6 + "|")
    for case in CASES:
        line(case, before=True)
    for title, cases in (("Columns, where EM had no room", WIDE), ("Tasks and rows", GROWTH)):
        print(f"\n## {title}\n\n| tasks | rows of each | columns | structure | scoring |")
        print("| --- " * 5 + "|")
        for case in cases:
            line(case, before=False)
    if shutil.which("Rscript"):
        growth_curves()


if __name__ == "__main__":
    main()
