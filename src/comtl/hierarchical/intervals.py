"""Errors on rows that were not seen, as a measure of errors to come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

COMMON_ROWS = 8.0
"""Rows that the spread of all tasks counts for in that of each."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """Spread of each task's errors, and the errors of all in units of it.

    Parameters
    ----------
    scales : ndarray of shape (T + 1,)
        Standard deviation of the errors of each task, and last of a task that was never seen.
    ratios, weights : ndarrays of shape (n,)
        Errors over the scale of their task, in rising order, and their weights.
    """

    scales: np.ndarray
    ratios: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, errors: np.ndarray, weights: np.ndarray, task: np.ndarray) -> Residuals:
        """Take errors apart by task; those of few rows lean on the spread of all.

        Examples
        --------
        >>> import numpy as np
        >>> from comtl.hierarchical.intervals import Residuals
        >>> Residuals.of(np.array([1.0, -1.0]), np.ones(2), np.zeros(2, dtype=int)).scales
        array([1., 1.])
        """
        level = float(np.average(errors**2, weights=weights))
        squares = np.bincount(task, weights * errors**2)
        counts = np.bincount(task, weights)
        own = (squares + COMMON_ROWS * level) / (counts + COMMON_ROWS)
        scales = np.sqrt(np.append(own, level))
        # Each error is told from a spread that it had no part in.
        others = squares[task] - weights * errors**2 + COMMON_ROWS * level
        spread = np.sqrt(others / np.maximum(counts[task] - weights + COMMON_ROWS, 1e-12))
        ratios = errors / np.where(spread > 0.0, spread, 1.0)
        order = np.argsort(ratios, kind="stable")
        return cls(scales, ratios[order], weights[order])

    def quantiles(self, level: float) -> tuple[float, float]:
        """Ratios between which a share ``level`` of the errors lies."""
        total = np.cumsum(self.weights)
        # One more error than there are, as in conformal prediction.
        ends = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level]) * (total[-1] + 1.0) - [1.0, 0.0]
        places = np.clip(np.searchsorted(total, ends), 0, len(total) - 1)
        return float(self.ratios[places[0]]), float(self.ratios[places[1]])
