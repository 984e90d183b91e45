"""What the variance of predictions is made of: linear parts, in common and of tasks, and the rest.

Hinges and trees may themselves follow a line. Each hinge counts as the least-squares line through
it over the rows, and so do trees, in the columns of X and in the tasks' own linear part; what they
have beyond is the rest, which trees leave uncorrelated with the linear parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..linear import LinearTasks
from .fitted_stack import FittedStack, targets_of
from .members import MemberRows

PARTS = ("common linear", "own linear", "nonlinear")


@dataclass(frozen=True, eq=False)
class VarianceShares:
    """A fitted stack, and how many hinges stand behind the columns of X."""

    linear: LinearTasks
    stack: FittedStack | None
    n_hinges: int

    def __call__(self, X: Any, codes: np.ndarray) -> dict[str, float]:
        """Share of each part in the scores of rows; beyond two classes of those of all classes."""
        parts, places = np.zeros(len(PARTS)), self.linear.columns.places
        width = X.shape[1] - self.n_hinges
        lines = X
        if not sparse.issparse(X):
            trend = np.column_stack([X[:, :width], np.ones(len(X))]) @ trends(X[:, :width], X)
            lines = np.concatenate([X[:, :width], trend[:, width:]], axis=1)
        for number, columns in enumerate(places[codes].T):
            kept = np.flatnonzero(columns >= 0)
            if len(kept):
                means = np.full(len(kept), places[-1, number])
                parts += self._variances(X[kept], lines[kept], columns[kept], means)
        total = float(parts.sum())
        shares = parts / total if total > 0.0 else parts
        return dict(zip(PARTS, shares.tolist(), strict=True))

    def _variances(self, X: Any, lines: Any, columns: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Variance of each part; of what the linear ones share each has half."""
        straight, common = (self.linear.extended.scores(lines, each) for each in (columns, means))
        own, rest = straight - common, self._scores(X, columns) - straight
        if self.stack is not None:
            seen = np.column_stack([X[:, : X.shape[1] - self.n_hinges], own])
            *slopes, along, level = trends(seen, rest)
            common = common + seen[:, :-1] @ np.array(slopes) + level
            rest = rest - (seen @ np.array([*slopes, along]) + level)
            own = (1.0 + along) * own
        both = float(np.mean((common - common.mean()) * (own - own.mean())))
        return np.array([np.var(common) + both, np.var(own) + both, np.var(rest)])

    def _scores(self, X: Any, columns: np.ndarray) -> np.ndarray:
        """Score of each row."""
        scores: np.ndarray = self.linear.extended.scores(X, columns)
        if self.stack is None:
            return scores
        task, label = (one[columns] for one in targets_of(self.linear))
        scale, none = self.stack.scale, np.zeros(len(columns))
        rows = MemberRows(X, None, task, label, self.linear.tasks, none, none)
        predicted, weights = self.stack.predicted(rows), self.stack.blends[-1].weights
        curved = [name for name in weights if predicted[name].table is None]
        units = np.append(scale, scale.mean())[task]
        return scores + units * sum(weights[name] * predicted[name].score for name in curved)


def trends(X: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Least-squares coefficients of values by columns, the intercept last."""
    X, values = np.asarray(X, dtype=np.float64), np.asarray(values, dtype=np.float64)
    center = X.mean(axis=0)
    size = np.sqrt(np.mean((X - center) ** 2, axis=0))
    inverse = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    level = values.mean(axis=0)
    slopes = np.linalg.lstsq((X - center) * inverse, values - level, rcond=1e-10)[0]
    slopes = (slopes.T * inverse).T
    return np.concatenate([slopes, (level - center @ slopes)[None]])
