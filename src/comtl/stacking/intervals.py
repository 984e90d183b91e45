r"""Errors on rows that were not seen, as a measure of errors to come.

Variances of tasks are draws ``σ_t² ∼ d s² / χ²_d`` (empirical Bayes), so that errors to come follow
t distributions; departures from these are read off the errors of all tasks together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln
from scipy.stats import norm, t

from ..saving.registry import saved
from .blending import row_counts

PRIOR_ROWS, LOG_PRIOR_ROWS_SD = 8.0, 1.5
"""Rows that the common variance counts for where tasks are few, and the spread of its logarithm."""
LEAST, MOST = 1.0, 1e3
"""Bounds of it."""
MAX_NORMAL_SCORE, OUTLIER = 3.0, 3.0
"""Deviations beyond which distributions are not believed, and errors are outliers."""


@saved
@dataclass(frozen=True, eq=False)
class ErrorModel:
    """Spread of each task's errors, and the errors of all as scores of a normal distribution."""

    scales: np.ndarray  # spread of the errors of each task, last of a task that was never seen
    df: np.ndarray  # degrees of freedom of errors to come over it
    deviations: np.ndarray  # standard deviations of the same errors
    scores: np.ndarray  # errors over the spread of their task as normal scores, in rising order
    weights: np.ndarray  # weights of the scores

    @classmethod
    def of(
        cls, errors: np.ndarray, weights: np.ndarray, task: np.ndarray, tasks: int, between: float
    ) -> ErrorModel:
        """Take errors apart by task; ``between``, the variance of tasks, adds to a new one."""
        usual = _outlier_bound(errors, weights, task)
        tame = np.clip(errors, -usual, usual)
        level = float(np.average(tame**2, weights=weights))
        ratios = weights * tame**2 / (level or 1.0)
        squares = np.bincount(task, ratios, minlength=tasks)
        counts = np.bincount(task, weights, minlength=tasks)
        common, count = common_variance(squares, counts)
        own = (squares + count * common) / (counts + count)
        # Each error is measured by a spread that it had no part in; of a row given twice, one.
        own_part = np.minimum(weights, 1.0)
        others = squares[task] - own_part * tame**2 / (level or 1.0) + count * common
        left = np.maximum(counts[task] - own_part, 0.0) + count
        spread = np.sqrt(level * np.maximum(others, 0.0) / left)
        scores = _as_normal(errors / np.where(spread > 0.0, spread, 1.0), left)
        order = np.argsort(scores, kind="stable")
        whole = float(np.average(errors**2, weights=weights))
        sums = np.bincount(task, weights * errors**2, minlength=tasks)
        each = (sums + count * common * whole) / (counts + count)
        scales = np.sqrt(np.append(level * own, level * common + between))
        deviations = np.sqrt(np.append(each, whole + between))
        return cls(
            scales, np.append(counts, 0.0) + count, deviations, scores[order], weights[order]
        )

    def in_units(self, units: np.ndarray) -> ErrorModel:
        """Return the same where each task's errors are in units of its own."""
        return replace(self, scales=self.scales * units, deviations=self.deviations * units)

    def joined(
        self,
        errors: np.ndarray,
        weights: np.ndarray,
        task: np.ndarray,
        rows: np.ndarray,
        units: tuple[np.ndarray, np.ndarray],
    ) -> ErrorModel:
        """Append tasks of so many rows for each effect, by errors of rows that were held out.

        ``units`` are those of targets, of the known tasks and of the new ones, as ``errors`` have
        them. Beside errors a task has the spread of one never seen, less what its rows tell of it:
        of a variance ``b`` between tasks and ``σ²`` within them, ``b σ² / (σ² + rows b)`` is left.
        """
        old, new = units
        weights, count = row_counts(weights), self.df[-1]
        counts = np.bincount(task, weights, minlength=len(new))
        sums = np.bincount(task, weights * errors**2, minlength=len(new))

        def spread(known: np.ndarray) -> np.ndarray:
            within = float(np.mean((known[:-1] / old) ** 2))
            between = max(float((known[-1] / old.mean()) ** 2) - within, 0.0)
            left = between / (1.0 + rows * between / within) if within > 0.0 else between
            squares = sums + count * (within + left)
            return np.concatenate(
                [known[:-1], new * np.sqrt(squares / (counts + count)), known[-1:]]
            )

        df = np.concatenate([self.df[:-1], counts + count, self.df[-1:]])
        scales, deviations = spread(self.scales), spread(self.deviations)
        return replace(self, scales=scales, df=df, deviations=deviations)

    def bounds(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of errors to come of each task, between which a share ``level`` lies."""
        low, high = (self._quantile(share) for share in (0.5 - 0.5 * level, 0.5 + 0.5 * level))
        return self.scales * _as_t(low, self.df), self.scales * _as_t(high, self.df)

    def _quantile(self, share: float) -> float:
        """Normal score below which a share of errors lies."""
        total = np.cumsum(self.weights)
        # One more error than there are, as in conformal prediction.
        whole = total[-1] + 1.0
        end = share * whole - (1.0 if share < 0.5 else 0.0)
        place = min(max(int(np.searchsorted(total, end)), 0), len(total) - 1)
        score = float(self.scores[place])
        edge = self.weights[0] / whole if share < 0.5 else total[-1] / whole
        outside = share < edge if share < 0.5 else share > edge
        if outside and 0.0 < edge < 1.0:
            # Beyond the errors, as many more deviations as a normal distribution has.
            score += float(norm.ppf(share) - norm.ppf(edge))
        return score


def common_variance(squares: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Most likely variance in common, and how many rows it counts for in that of each task."""
    known = counts > 0.0
    counts = counts[known]
    # A task without any error would have a distribution of its own.
    squares = np.maximum(squares[known], 1e-8 * counts)

    def unlikely(point: np.ndarray) -> float:
        common, count = np.exp(point)
        total, rows = count * common + squares, counts + count
        value = 0.5 * rows * np.log(total) - 0.5 * count * np.log(count * common)
        value += gammaln(0.5 * count) - gammaln(0.5 * rows)
        doubt = (point[1] - np.log(PRIOR_ROWS)) / LOG_PRIOR_ROWS_SD
        return float(value.sum()) + 0.5 * doubt**2

    start = np.log([squares.sum() / counts.sum(), PRIOR_ROWS])
    bounds = [(None, None), (np.log(LEAST), np.log(MOST))]
    common, count = np.exp(minimize(unlikely, start, method="L-BFGS-B", bounds=bounds).x)
    return float(common), float(count)


def _outlier_bound(errors: np.ndarray, weights: np.ndarray, task: np.ndarray) -> np.ndarray:
    """Size of each error beyond which it is an outlier, and no measure of spread."""
    sizes = np.abs(errors)
    order = np.lexsort((sizes, task))
    _, first, place = np.unique(task[order], return_index=True, return_inverse=True)
    own = weights[order]
    reached, whole = np.cumsum(own), np.bincount(place, own)
    below = reached - (reached - own)[first][place] <= 0.5 * whole[place]
    # Beside heavy tasks a light one may have no weight after rounding.
    halfway = np.minimum(np.bincount(place, below), np.bincount(place) - 1).astype(np.intp)
    middle = np.empty_like(sizes)
    middle[order] = sizes[order][first + halfway][place]
    usual = np.maximum(middle, quantiles(sizes, weights, np.array(0.5))) / norm.ppf(0.75)
    return np.where(usual > 0.0, OUTLIER * usual, np.inf)


def _as_normal(ratios: np.ndarray, df: np.ndarray) -> np.ndarray:
    """Normal scores of what follows t distributions; in proportion beyond ``MAX_NORMAL_SCORE``."""
    sizes, end = np.abs(ratios), t.isf(norm.sf(MAX_NORMAL_SCORE), df)
    inside = -norm.ppf(t.sf(np.minimum(sizes, end), df))
    return np.sign(ratios) * np.where(sizes > end, MAX_NORMAL_SCORE * sizes / end, inside)


def _as_t(score: float, df: np.ndarray) -> np.ndarray:
    """What follows t distributions where a normal distribution has a score: the way back."""
    size = abs(score)
    inside = t.isf(norm.sf(min(size, MAX_NORMAL_SCORE)), df)
    return np.sign(score) * max(size / MAX_NORMAL_SCORE, 1.0) * inside


def quantiles(values: np.ndarray, weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Values below which shares of the rows lie, in proportion between two rows."""
    order = np.argsort(values, kind="stable")
    values, reached = values[order], np.cumsum(weights[order])
    place = shares * max(reached[-1] - 1.0, 0.0)
    low, high = (
        values[np.minimum(np.searchsorted(reached, end, side="right"), len(values) - 1)]
        for end in (np.floor(place), np.ceil(place))
    )
    return low + (place - np.floor(place)) * (high - low)
