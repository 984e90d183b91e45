"""Errors of many tasks: the unweighted mean over tasks, as the paper has it, and pooled."""

from __future__ import annotations

import numpy as np


def rmse(truth: np.ndarray, guess: np.ndarray, task: np.ndarray) -> dict[str, float]:
    """Root mean squared error: mean over tasks, and of all rows."""
    _, codes = np.unique(task, return_inverse=True)
    squares = (truth - guess) ** 2
    each = np.sqrt(np.bincount(codes, squares) / np.bincount(codes))
    return {"rmse": float(each.mean()), "rmse_pooled": float(np.sqrt(squares.mean()))}


def f_by_group(truth: np.ndarray, guess: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """F-measure of both classes, averaged, for each group; a class that never occurs is zero."""
    scores = []
    for label in (True, False):
        one, other = truth == label, guess == label
        hits = np.bincount(codes, one & other)
        total = np.bincount(codes, one) + np.bincount(codes, other)
        scores.append(2.0 * hits / np.maximum(total, 1.0))
    return (scores[0] + scores[1]) / 2.0


def macro_f(truth: np.ndarray, guess: np.ndarray, task: np.ndarray) -> dict[str, float]:
    """F-measure over both classes: mean over tasks, and of all rows."""
    _, codes = np.unique(task, return_inverse=True)
    each = f_by_group(truth, guess, codes)
    pooled = f_by_group(truth, guess, np.zeros(len(truth), dtype=np.intp))
    return {"f": float(each.mean()), "f_pooled": float(pooled[0])}


CUTS = np.linspace(-1.0, 1.0, 81)
"""Candidates for the cut of the scores, which lie about the labels -1 and +1."""
SHARES = (0.0, 0.5, 1.0)
"""Candidates for how far the cut follows a task's mean score."""


def choose_cut(
    truth: np.ndarray, scores: np.ndarray, task: np.ndarray
) -> tuple[float, dict[object, float]]:
    """Cut of each task, ``share · mean score + common``, with the best macro-F on these rows.

    Two numbers are chosen for all tasks together; a cut of each task's own would follow the noise
    of a few dozen rows. Returns the macro-F reached and the cut by task.
    """
    labels, codes = np.unique(task, return_inverse=True)
    means = np.bincount(codes, scores) / np.bincount(codes)
    best, cuts = -1.0, means
    for share in SHARES:
        for cut in CUTS:
            own = share * means + cut
            found = float(f_by_group(truth, scores > own[codes], codes).mean())
            # Among equals the cut nearest to zero: the data do not ask for more.
            if found > best + 1e-12:
                best, cuts = found, own
    return best, dict(zip(labels.tolist(), cuts.tolist(), strict=True))
