"""Decision threshold between two classes, by classes of held-out rows or by probabilities.

`make bench` writes the result beside this file; needs COMTL_DATA.
"""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy
import sklearn
from scipy.special import expit

from comtl import MultitaskClassifier
from comtl.stacking.thresholds import _value, best_thresholds

METRICS = ("macro_f1", "f1", "balanced_accuracy", "accuracy")
TEXT = ("sentiment II", "sentiment V", *(f"newsgroups {number}" for number in range(1, 7)))
TEXT_SEEDS, DRAWN_SEEDS, TEST_ROWS = 2, 12, 20_000
DRAWN = ((1, 60), (1, 400), (3, 60), (3, 400), (40, 25))
SHARES = (0.5, 0.15)
SHARES_OF_ODDS = (0.0, 0.5, 0.8, 1.0)


@dataclass(frozen=True, eq=False)
class Told:
    """Log odds, classes and tasks (by number) of held-out rows."""

    scores: np.ndarray
    truth: np.ndarray
    task: np.ndarray


class Kept(MultitaskClassifier):
    """A stack without a threshold that keeps its out-of-fold scores."""

    def _keep(self, stack, *told):
        self.held = Told(stack.score, stack.held.y > 0, stack.held.task)
        super()._keep(stack, *told)


def fitted(X, y, task, X_test, y_test, task_test) -> tuple[Told, Told, int]:
    """Held-out training rows, test rows, and the number of tasks."""
    model = Kept().fit(X, y, task=task)
    scores = model.decision_function(X_test, task=task_test)
    test = Told(scores, y_test, np.searchsorted(model.tasks_, task_test))
    return model.held, test, len(model.tasks_)


def drawn(tasks: int, rows: int, share: float, seed: int):
    """Tasks around common slopes; `share` of the rows of all tasks is positive."""
    rng = np.random.default_rng(seed)
    slopes, levels = 1.0 + 0.7 * rng.standard_normal((tasks, 5)), 0.7 * rng.standard_normal(tasks)

    def some(task):
        X = rng.standard_normal((len(task), 5))
        score = np.einsum("np,np->n", X, slopes[task]) / 1.5 + levels[task]
        return X, score + 1.5 * rng.standard_normal(len(task)), task

    X_test, test, task_test = some(np.arange(TEST_ROWS) % tasks)
    X, y, task = some(np.repeat(np.arange(tasks), rows))
    quantile = np.quantile(test, 1.0 - share)
    return X, y > quantile, task, X_test, test > quantile, task_test


def problems() -> Iterator[tuple[str, list[tuple[Told, Told, int]]]]:
    """Name, and out-of-fold scores of the stacks of all splits."""
    sys.path.insert(0, str(Path(__file__).parent / "leaderboard"))
    from problems import PROBLEMS

    for name in TEXT:
        splits = [PROBLEMS[name].split(seed) for seed in range(TEXT_SEEDS)]
        yield (
            name,
            [
                fitted(one.X, one.y > 0, one.task, one.X_test, one.y_test > 0, one.task_test)
                for one in splits
            ],
        )
    for share in SHARES:
        for tasks, rows in DRAWN:
            name = f"simulated, {tasks} × {rows} rows, {share:.0%} positive"
            yield (
                name,
                [fitted(*drawn(tasks, rows, share, seed)) for seed in range(DRAWN_SEEDS)],
            )


def reached(metric: str, rows: Told, thresholds: np.ndarray) -> float:
    """Metric of rows, as a mean over tasks."""
    tasks, codes = np.unique(rows.task, return_inverse=True)
    kind = 4 * codes + 2 * rows.truth + (rows.scores > thresholds[rows.task])
    quiet, alarms, missed, hits = np.bincount(kind, minlength=4 * len(tasks)).reshape(-1, 4).T
    return float(_value(metric, hits, alarms, hits + missed, alarms + quiet).mean())


def outcomes(metric: str, held: Told, test: Told, n_tasks: int) -> list[float]:
    """Metric of the test rows without a threshold, and with thresholds by weighted targets."""
    found = [reached(metric, test, np.zeros(n_tasks))]
    for share in SHARES_OF_ODDS:
        chance = share * expit(held.scores) + (1.0 - share) * held.truth
        told = held.scores, chance, np.ones(len(held.task)), held.task
        found.append(reached(metric, test, best_thresholds(metric, *told, n_tasks)))
    return found


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    print("# Decision threshold between two classes\n")
    print("Metric of test rows, as a mean over tasks, in per cent: at probability one half, and")
    print("the gain in points by the best threshold on held-out rows: for their classes, for")
    print("probabilities (as in `MultitaskClassifier(threshold=...)`), and for weighted means of")
    print(f"both. Means over splits ({TEXT_SEEDS} of text, {DRAWN_SEEDS} of simulated tables, each")
    print(f"with {TEST_ROWS:,} test rows); ± is the standard error over splits of the difference")
    print("between probabilities and classes.\n")
    versions = (f"{one.__name__} {one.__version__}" for one in (np, scipy, sklearn))
    print(f"Python {platform.python_version()}, {', '.join(versions)}; one core.")
    found = list(problems())
    for metric in METRICS:
        print(f"\n## {metric}\n")
        print("| set | one half | classes | 50 % prob. | 80 % prob. | probabilities | ± |")
        print("| --- " * 7 + "|")
        for name, splits in found:
            table = 100.0 * np.array([outcomes(metric, *split) for split in splits])
            more = (table[:, 1:] - table[:, :1]).mean(axis=0)
            error = (table[:, -1] - table[:, 1]).std(ddof=1) / len(splits) ** 0.5
            cells = name, f"{table[:, 0].mean():.2f}", *(f"{value:+.2f}" for value in more)
            print(f"| {' | '.join(cells)} | {error:.2f} |", flush=True)


if __name__ == "__main__":
    main()
