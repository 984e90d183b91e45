"""When a stack chooses hinges: the gain of row losses relative to its standard error.

``COMTL_DATA=DIR python benchmarks/bench_hinges.py > benchmarks/bench_hinges.md``
"""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import scipy
import sklearn
from leaderboard.problems import PROBLEMS

from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.losses import Logistic
from comtl.stacking.blending import mean_and_se
from comtl.stacking.stack import Stack
from small_tables import error, tables

RULES = {"lower loss": 0.0, "0.5": 0.5, "1": 1.0, "2": 2.0}
"""Standard errors by which hinges must be better on held-out rows."""
SPLITS, LARGE_SPLITS, DRAWS = 3, 2, 8
TASKS, COLUMNS, TEST = 10, 4, 4000
SIZES, CLASS_SIZES = (100, 300, 1000, 3000), (300, 1000)
DEPTHS = {"linear": 0.0, "slightly nonlinear": 0.3, "nonlinear": 0.8}
"""Weight of the absolute value of the first column."""


class Kept:
    """Out-of-fold predictions."""

    def _keep(self, stack: Any, *told: Any) -> None:
        self.stack = stack
        super()._keep(stack, *told)  # type: ignore[misc]


class Values(Kept, MultitaskRegressor):
    """Regression of one form."""


class Classes(Kept, MultitaskClassifier):
    """Classification of one form."""


@dataclass(frozen=True)
class FormOutcome:
    """Test errors without and with hinges, and gain over its standard error."""

    linear: float
    hinges: float
    ratio: float

    def taken(self, least: float) -> bool:
        """Whether a rule chooses hinges."""
        return self.ratio > least

    def error(self, least: float) -> float:
        """Error of the form that a rule chooses."""
        return self.hinges if self.taken(least) else self.linear


def outcome(kind: Any, rows: tuple[Any, Any, Any], measure: Any) -> FormOutcome:
    """Fit both forms to the same rows; ``measure`` gives the error of a model."""
    X, y, task = rows
    with mock.patch.object(Stack, "beats", lambda *stacks: True):
        fits = [kind(form=form).fit(X, y, task=task) for form in ("linear", "hinges")]
    plain, hinges = (fit.stack for fit in fits)
    gain, spread = mean_and_se(plain.losses - hinges.losses, plain.held.weights)
    return FormOutcome(*map(measure, fits), gain / spread if gain else 0.0)


def small() -> Iterator[tuple[str, str, list[FormOutcome]]]:
    """Outcomes of the small tables."""
    for name, size, splits in tables():
        found = []
        for split in splits[:SPLITS]:
            X, y, task, train = split

            def measure(fit: Any, split: Any = split) -> float:
                X, _, task, train = split
                return error(fit.predict(X[~train], task=task[~train]), split)

            found.append(outcome(Values, (X[train], y[train], task[train]), measure))
        yield name, size, found


def sets() -> Iterator[tuple[str, str, list[FormOutcome]]]:
    """Outcomes of two sets of the leaderboard, in its measures."""
    for name, count in (("sleepstudy", DRAWS), ("sarcos_test", LARGE_SPLITS)):
        problem, found = PROBLEMS[name], []
        for seed in range(count):
            split = problem.split(seed)

            def measure(fit: Any, split: Any = split, problem: Any = problem) -> float:
                return problem.metric(split, fit.predict(split.X_test, task=split.task_test))

            found.append(outcome(Values, (split.X, split.y, split.task), measure))
        tasks = split.y.shape[1] if split.task is None else len(np.unique(split.task))
        yield name, f"{len(split.X)}, {split.X.shape[1]}, {tasks}", found


def drawn(rows: int, depth: float, seed: int, *, classes: bool) -> FormOutcome:
    """FormOutcome of one simulated table."""
    rng = np.random.default_rng([seed, rows])
    slopes = 0.5 + 0.3 * rng.standard_normal((TASKS, COLUMNS))
    levels, depths = rng.standard_normal(TASKS), depth * (1.0 + 0.3 * rng.standard_normal(TASKS))

    def draw(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        task = np.arange(count) % TASKS
        X = rng.standard_normal((count, COLUMNS))
        score = (X * slopes[task]).sum(axis=1) + levels[task] + depths[task] * np.abs(X[:, 0])
        noise = rng.logistic(size=count) if classes else rng.standard_normal(count)
        return X, (score + noise > 0) if classes else score + noise, task

    train, (X, y, task) = draw(rows), draw(TEST)

    def measure(fit: Any) -> float:
        if not classes:
            return float(np.sqrt(np.mean((y - fit.predict(X, task=task)) ** 2)))
        scores = fit.decision_function(X, task=task)
        return float(np.mean(Logistic().value(np.where(y, 1.0, -1.0), scores)))

    return outcome(Classes if classes else Values, train, measure)


def draws(*, classes: bool) -> Iterator[tuple[str, str, list[FormOutcome]]]:
    """Outcomes of simulated tables."""
    for name, depth in DEPTHS.items():
        for rows in CLASS_SIZES if classes else SIZES:
            found = [drawn(rows, depth, seed, classes=classes) for seed in range(DRAWS)]
            title = f"simulated, {name}" + (", classes" if classes else "")
            yield title, f"{rows}, {COLUMNS}, {TASKS}", found


def line(name: str, size: str, found: list[FormOutcome]) -> str:
    """One row of the page."""
    linear = np.array([one.linear for one in found])
    cells = []
    for least in (-np.inf, *RULES.values()):
        more = 100.0 * np.mean(np.array([one.error(least) for one in found]) / linear - 1.0)
        count = "" if least < 0 else f" ({sum(one.taken(least) for one in found)})"
        cells.append(f"{more:+.2f}{count}")
    ratios = " ".join(f"{one.ratio:.1f}" for one in found)
    return f"| {name} | {size} | {linear.mean():.4g} | {' | '.join(cells)} | {ratios} |"


HEAD = """# Choice between linear terms and hinges

Test error of the linear model (`form="linear"`; RMSE, for sarcos relative to the standard deviation
of each torque, for classes the log loss), and its change in per cent with hinges: always, where the
out-of-fold loss is lower at all, and where it is lower by more than 0.5, 1 or 2 standard errors of
the paired difference of row losses. In brackets how often hinges were chosen. The last column has
the gain of each split over its standard error. The same two fits are used for all rules."""


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    began = time.process_time()
    print(HEAD)
    print(
        f"\n{SPLITS} splits of each table, {LARGE_SPLITS} of sarcos, {DRAWS} of sleepstudy and of "
        "simulated tables; these have standard normal columns,\nnoise of variance one, and the "
        f"absolute value of the first column with weight {', '.join(map(str, DEPTHS.values()))}.\n"
    )
    print(f"| set | rows, features, tasks | linear | always | {' | '.join(RULES)} | gains |")
    print("| --- " * (5 + len(RULES)) + "|")
    everything: list[FormOutcome] = []
    for part in (small(), sets(), draws(classes=False), draws(classes=True)):
        for name, size, found in part:
            everything += found
            print(line(name, size, found), flush=True)
    # Errors of different tables have no mean, and their gains are listed above.
    cells = line("mean of all splits", "", everything).split("|")
    print("|".join([*cells[:3], " ", *cells[4:-2], " ", ""]))
    print(
        f"\nPython {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, {os.environ.get('OMP_NUM_THREADS', 'all')} thread of "
        f"BLAS; {(time.process_time() - began) / 60:.0f} minutes of one core."
    )


if __name__ == "__main__":
    main()
