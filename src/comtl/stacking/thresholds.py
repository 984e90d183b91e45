"""The threshold between two classes that suits a metric best."""

import numpy as np

from .blending import row_counts
from .intervals import quantiles

METRICS = ("accuracy", "balanced_accuracy", "f1", "macro_f1")
N_THRESHOLDS = 201
SHARES = (0.0, 0.5, 1.0)
"""Candidates for the threshold, and for how far it follows the mean score of a task."""


def best_thresholds(
    metric: str,
    scores: np.ndarray,
    chance: np.ndarray,
    weights: np.ndarray,
    task: np.ndarray,
    n_tasks: int,
) -> np.ndarray:
    """Score of each task above which to say the second class, as suits the mean over tasks best.

    ``chance`` is how likely each row is of the second class: odds rather than known classes, which
    make thresholds of noise (``benchmarks/bench_thresholds.md``). The threshold of a task is
    ``share · mean score + common``, two numbers for all tasks: one of each task's own would follow
    the noise of a few dozen rows. A task without rows counts with the mean over the others.
    """
    weights = row_counts(weights)
    total = np.bincount(task, weights, minlength=n_tasks)
    means = _ratio(np.bincount(task, weights * scores, minlength=n_tasks), total)
    means[total == 0.0] = means[total > 0.0].mean()
    best, thresholds = -np.inf, means
    for share in SHARES:
        rows = scores - share * means[task], chance, weights, task
        value, common = _common_threshold(metric, *rows)
        # Among equals the simplest: the data do not ask for more.
        if value > best + 1e-12:
            best, thresholds = value, share * means + common
    return thresholds


def _common_threshold(
    metric: str, scores: np.ndarray, chance: np.ndarray, weights: np.ndarray, task: np.ndarray
) -> tuple[float, float]:
    """What one threshold for all tasks reaches, and the threshold; of equals the middle one."""
    ordered = np.unique(quantiles(scores, weights, np.linspace(0.0, 1.0, N_THRESHOLDS)))
    thresholds = 0.5 * (ordered[1:] + ordered[:-1]) if len(ordered) > 1 else ordered
    # For every task and threshold, the weight of rows above it.
    tasks, codes = np.unique(task, return_inverse=True)
    place = codes * (len(thresholds) + 1) + np.searchsorted(thresholds, scores)
    size = len(tasks) * (len(thresholds) + 1)

    def above(share: np.ndarray) -> np.ndarray:
        table = np.bincount(place, weights * share, minlength=size).reshape(len(tasks), -1)
        return table[:, ::-1].cumsum(axis=1)[:, ::-1]

    hits, alarms = above(chance), above(1.0 - chance)
    value = _value(metric, hits[:, 1:], alarms[:, 1:], hits[:, :1], alarms[:, :1]).mean(axis=0)
    best = np.flatnonzero(value >= value.max() - 1e-12)
    return float(value.max()), float(thresholds[best[len(best) // 2]])


def _value(
    metric: str, hits: np.ndarray, alarms: np.ndarray, positive: np.ndarray, negative: np.ndarray
) -> np.ndarray:
    """Metric of each task and threshold, from the weights of its rows by class and decision."""
    missed, quiet = positive - hits, negative - alarms
    if metric == "accuracy":
        return _ratio(hits + quiet, positive + negative)
    if metric == "balanced_accuracy":
        return 0.5 * (_ratio(hits, positive) + _ratio(quiet, negative))
    second = _ratio(2.0 * hits, 2.0 * hits + alarms + missed)
    if metric == "f1":
        return second
    return 0.5 * (second + _ratio(2.0 * quiet, 2.0 * quiet + missed + alarms))


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Part over whole, zero where there is nothing."""
    return np.where(whole > 0.0, part / np.where(whole > 0.0, whole, 1.0), 0.0)
