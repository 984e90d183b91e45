"""Errors on rows that were not seen, as a measure of errors to come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..saving.registry import saved

COMMON_ROWS = 8.0
"""Rows that the spread of all tasks counts for in that of each."""


@saved
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
    def of(
        cls, errors: np.ndarray, weights: np.ndarray, task: np.ndarray, tasks: int, between: float
    ) -> Residuals:
        """Take errors apart by task; those of few rows lean on the spread of all.

        ``between`` is the variance of what tasks say of a row around their mean: for a task that
        was never seen it adds to the errors.

        Examples
        --------
        >>> import numpy as np
        >>> from comtl.hierarchical.intervals import Residuals
        >>> task = np.zeros(2, dtype=int)
        >>> Residuals.of(np.array([1.0, -1.0]), np.ones(2), task, 1, between=3.0).scales
        array([1., 2.])
        """
        level = float(np.average(errors**2, weights=weights))
        squares = np.bincount(task, weights * errors**2, minlength=tasks)
        counts = np.bincount(task, weights, minlength=tasks)
        own = (squares + COMMON_ROWS * level) / (counts + COMMON_ROWS)
        scales = np.sqrt(np.append(own, level + between))
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
