r"""The bound of Jaakkola and Jordan of the logistic likelihood, a quadratic for each row.

It is exact at the score ``ξ`` that the row is given:

.. math:: \log σ(s) \ge \log σ(ξ) + \tfrac12 (s - ξ) - λ(ξ)(s^2 - ξ^2), \quad
    λ(ξ) = \tanh(ξ/2) / 4ξ
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import (
    Array,
    asarray_like,
    namespace,
    on_device,
    row_dots,
    segment_codes,
    segment_forms,
    segment_gram,
    segment_sum,
    to_numpy,
)
from ..datafits.gram_datafit import GramDatafit
from .likelihoods import Bound
from .posterior import Posterior
from .task_data import TaskGrams, TaskRows, padded


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Rows of two classes in memory, task by task, bounded by second moments of each task."""

    rows: Array
    """Standardised, with a last column of ones."""
    signs: Array
    weights: Array
    offsets: np.ndarray

    def bound(self, posterior: Posterior | None) -> Bound:
        """Bound that suits a posterior best; without one it is exact at scores of zero."""
        rows, xp = self.rows, namespace(self.rows)
        dtype = rows.dtype if on_device(rows) else None
        xi = asarray_like(np.zeros(self.signs.shape), rows, dtype)
        if posterior is not None:
            weights = asarray_like(posterior.weights, rows, dtype)
            covariances = asarray_like(posterior.covariances, rows, dtype)
            xi = bound_xi(rows, weights, covariances, self.offsets)
        # The rows stay where they lie; inference from their sums is a matter of the host.
        gram = segment_gram(rows, 2.0 * self.weights * bound_curvature(xi), self.offsets)
        sums = GramDatafit(to_numpy(gram), self._moment, np.zeros(len(self.offsets) - 1))
        constant = float(xp.sum(bound_constant(self.weights, xi)))
        return Bound(TaskGrams(sums), constant, float(xp.sum(self.weights)))

    @cached_property
    def _moment(self) -> np.ndarray:
        share = 0.5 * self.weights * self.signs
        return to_numpy(segment_sum(self.rows * share[:, None], self.offsets))


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Rows of two classes of tasks with fewer rows than features.

    A row counts as a value ``± 1 / 4λ`` with noise of variance ``1 / 2λ``.
    """

    table: np.ndarray
    """Standardised, with a last column of ones, ``(T, m, P + 1)``, padded with zeros."""
    signs: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls, rows: np.ndarray, signs: np.ndarray, weights: np.ndarray, offsets: np.ndarray
    ) -> ClassTable:
        """Pad rows that come task by task."""
        return cls(*(padded(part, offsets) for part in (rows, signs, weights)))

    def bound(self, posterior: Posterior | None) -> Bound:
        """Bound that suits a posterior best; without one it is exact at scores of zero."""
        xi = np.zeros_like(self.signs)
        if posterior is not None:
            assert posterior.score_variances is not None
            scores = (self.table @ posterior.weights[:, :, None])[:, :, 0]
            xi = np.sqrt(scores**2 + posterior.score_variances)
        root = np.sqrt(2.0 * self.weights * bound_curvature(xi))
        known = root > 0.0
        targets = 0.5 * self.weights * self.signs / np.where(known, root, 1.0)
        data = TaskRows(root[:, :, None] * self.table, np.where(known, targets, 0.0))
        constant = float(bound_constant(self.weights, xi).sum())
        return Bound(data, constant, float(self.weights.sum()))


def bound_xi(rows: Array, weights: Array, covariances: Array, offsets: np.ndarray) -> Array:
    """Scores at which the bound is best exact, given the weights of the tasks of the rows."""
    xp = namespace(rows)
    scores = row_dots(rows, xp.take(weights, segment_codes(offsets, rows), axis=0))
    spread = segment_forms(rows, covariances, offsets)
    return xp.sqrt(scores**2 + xp.clip(spread, min=0.0))


def bound_constant(weights: Array, xi: Array) -> Array:
    """What the bound of each row has beside its quadratic part."""
    xp = namespace(xi)
    value = -xp.logaddexp(xp.zeros_like(xi), -xi) - 0.5 * xi
    return weights * (value + bound_curvature(xi) * xi**2)


def bound_curvature(xi: Array) -> Array:
    """``λ(ξ)``, 1/8 at zero."""
    xp = namespace(xi)
    large = xp.abs(xi) > 1e-4
    safe = xp.where(large, xi, xp.ones_like(xi))
    return xp.where(large, xp.tanh(0.5 * safe) / (4.0 * safe), xp.full_like(xi, 0.125))
