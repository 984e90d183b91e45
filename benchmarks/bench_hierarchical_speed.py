"""Hierarchical models: CPU time by structure and size, growth, and lme4 on growth curves.

``python benchmarks/bench_hierarchical_speed.py`` prints the page, beside what the same fits took by
EM on the same machine (commit eed5a69). With Rscript and lme4 installed, random slopes of the
growth-curve tables are compared.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from comtl import HierarchicalRegressor

CASES = {
    (200, 50, 200, "isotropic"): "52.5 s, 168 steps, -12541.68",
    (200, 50, 200, "diagonal"): "24.7 s, 101 steps, -12223.32",
    (200, 50, 200, "factor"): "102.4 s, 155 steps, -8906.70",
    (200, 50, 200, "full"): "269.6 s, 500 steps without end, -8410.58",
    (100, 50, 100, "isotropic"): "6.6 s, 135 steps, -6055.19",
    (100, 50, 100, "full"): "53.0 s, 500 steps without end, -3817.98",
    (1100, 6, 22, "isotropic"): "3.3 s, 240 steps, -8293.49",
    (1100, 6, 22, "full"): "11.9 s, 500 steps without end, -6785.47",
    (50_000, 2, 5, "intercept"): "0.6 s, 11 steps, -139289.65",
    (50_000, 2, 5, "isotropic"): "22.3 s, 218 steps, -131729.98",
    (50_000, 2, 5, "full"): "38.5 s, 158 steps, -122020.89",
}
"""Tasks, rows of each, columns and structure; and what EM took."""
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
NOTE = """\
With a full covariance the prior counts too, about the isotropic fit, so that the likelihood
alone may end lower: 1,100 tasks about one center, objective -6327.68 by scoring and -6332.39 by
EM, which had not ended, likelihood -6785.93 and -6785.47. For 200 tasks this was not compared.
"""
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


def measured(case: tuple, most: int) -> tuple[float, int, float]:
    """CPU seconds, steps and log likelihood of one fit."""
    *sizes, structure = case
    X, y, task = table(*sizes)
    start = time.process_time()
    model = HierarchicalRegressor(structure, max_iter=most).fit(X, y, task=task)
    return time.process_time() - start, model.n_iter_, float(model.log_evidence_)


def line(case: tuple, *before: str, most: int = 500) -> None:
    """One line of a table."""
    seconds, steps, value = measured(case, most)
    told = f"{seconds:.2f} s, {steps} steps, {value:.2f}"
    print(f"| {' | '.join(map(str, (*case, *before, told)))} |", flush=True)


def growth_curves() -> None:
    """Random slopes by lme4 and by the structure "full" without a prior."""
    print("\n## lme4\n")
    print(f"`lmer(y ~ x + (1 + x | g))`, the mean of {REPEATS} fits each; x is centred.\n")
    print(
        "Estimates of lme4 and of comtl.\n\n| table | lme4 | comtl | ratio | slope "
        "| variance of slopes | of the noise |"
    )
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
    print("# Time of hierarchical models\n")
    print(f"CPU seconds, steps and log restricted likelihood; NumPy {np.__version__}, ", end="")
    print(f"{platform.machine()}, one thread.\n")
    print(NOTE)
    print("| tasks | rows of each | columns | structure | EM | scoring |")
    print("| --- " * 6 + "|")
    for case, before in CASES.items():
        line(case, before)
    for title, cases in (
        ("Columns, more than EM took; 20 steps at most", WIDE),
        ("Tasks and rows", GROWTH),
    ):
        print(f"\n## {title}\n\n| tasks | rows of each | columns | structure | scoring |")
        print("| --- " * 5 + "|")
        for case in cases:
            # Rows that are fewer than the columns can be met exactly: no end to the steps.
            line(case, most=20 if cases is WIDE else 500)
    if shutil.which("Rscript"):
        growth_curves()


if __name__ == "__main__":
    main()
