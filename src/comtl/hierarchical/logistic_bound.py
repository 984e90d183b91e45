r"""How rows of two classes bear on tasks' effects: by the odds of the score.

The logistic likelihood is bounded from below by a quadratic for each row (Jaakkola and Jordan),
exact at the score ``ξ`` that the row is given:

.. math:: \log σ(s) \ge \log σ(ξ) + \tfrac12 (s - ξ) - λ(ξ)(s^2 - ξ^2), \quad
    λ(ξ) = \tanh(ξ/2) / 4ξ
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
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
from .likelihoods import Likelihood
from .posterior import Posterior, Prior, estimable_directions, infer
from .row_posterior import TaskRows, infer_rows, laid_out


class JaakkolaJordanBound(Likelihood):
    """Abstract likelihood of two classes by the odds of the score, through a quadratic bound."""

    directions: np.ndarray
    """Directions of common weights that the rows tell of, wherever the bound is exact."""

    @property
    @abstractmethod
    def constant(self) -> float:
        """What the bound has beside its quadratic part."""

    def log_prior(self, prior: Prior) -> float:
        return 0.0

    @property
    def start_noise(self) -> float:
        return 1.0

    def _bound(self, posterior: Posterior, counts: np.ndarray, energy: float) -> Posterior:
        """Posterior as of normal values with these sums, and the bound for its evidence."""
        # Of the normal likelihood only what depends on the effects is meant.
        normal = 0.5 * (np.log(2.0 * np.pi) * float(counts.sum()) + energy)
        return replace(posterior, log_evidence=posterior.log_evidence + normal + self.constant)


class SummedBound(JaakkolaJordanBound):
    """Abstract bound as a quadratic of the tasks' weights."""

    data: GramDatafit

    def infer(self, prior: Prior) -> Posterior:
        posterior = infer(self.data, prior, self.directions)
        return self._bound(posterior, self.data.gram[:, -1, -1], 0.0)


@dataclass(frozen=True, eq=False)
class Bernoulli(SummedBound):
    """Two classes of rows in memory.

    Parameters
    ----------
    rows : ndarray of shape (n, P + 1)
        Standardised rows with a last column of ones, those of a task next to each other.
    signs, weights : ndarrays of shape (n,)
        Classes as -1 and +1, and weights.
    offsets : ndarray of shape (T + 1,)
        Where tasks begin and end.
    xi : ndarray of shape (n,)
        Scores at which the bound is exact.
    """

    rows: np.ndarray
    signs: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray
    xi: np.ndarray
    data: GramDatafit
    directions: np.ndarray

    @classmethod
    def of(
        cls, rows: np.ndarray, signs: np.ndarray, weights: np.ndarray, offsets: np.ndarray
    ) -> Bernoulli:
        """Bound that is exact at scores of zero."""
        xi = namespace(rows).zeros_like(signs) if on_device(rows) else np.zeros(len(signs))
        gram = _bound_gram(rows, weights, xi, offsets)
        moment = to_numpy(segment_sum(rows * (0.5 * weights * signs)[:, None], offsets))
        # The rows stay where they lie; what is inferred from their sums is a matter of the host.
        sums = GramDatafit(gram, moment, np.zeros(len(offsets) - 1))
        directions = estimable_directions(gram.sum(axis=0))
        return cls(rows, signs, weights, offsets, xi, sums, directions)

    @cached_property
    def constant(self) -> float:
        value = bound_constant(self.weights, self.xi)
        return float(namespace(value).sum(value))

    def updated(self, prior: Prior, posterior: Posterior, gain: float) -> tuple[Likelihood, Prior]:
        dtype = self.rows.dtype if on_device(self.rows) else None
        weights = asarray_like(posterior.weights, self.rows, dtype)
        covariances = asarray_like(self.covariances(prior, posterior), self.rows, dtype)
        xi = bound_xi(self.rows, weights, covariances, self.offsets)
        gram = _bound_gram(self.rows, self.weights, xi, self.offsets)
        data = GramDatafit(gram, self.data.moment, self.data.energy)
        return replace(self, xi=xi, data=data), prior

    @property
    def n_rows(self) -> float:
        return float(namespace(self.weights).sum(self.weights))


@dataclass(frozen=True, eq=False)
class BernoulliRows(JaakkolaJordanBound):
    """Two classes of rows of tasks with fewer of them than features.

    A row bears on the effects as a value ``± 1 / 4λ`` with noise of variance ``1 / 2λ``.

    Parameters
    ----------
    table : ndarray of shape (T, m, P + 1)
        Standardised rows of every task with the intercept's ones last, filled up with zeros.
    signs, weights, xi : ndarrays of shape (T, m)
        Classes as -1 and +1, weights, and scores at which the bound is exact.
    """

    table: np.ndarray
    signs: np.ndarray
    weights: np.ndarray
    xi: np.ndarray
    directions: np.ndarray

    @classmethod
    def of(
        cls, rows: np.ndarray, signs: np.ndarray, weights: np.ndarray, offsets: np.ndarray
    ) -> BernoulliRows:
        """Bound that is exact at scores of zero."""
        table, signs, weights = (laid_out(part, offsets) for part in (rows, signs, weights))
        start = cls(table, signs, weights, np.zeros_like(signs), np.zeros((0, 0)))
        return replace(start, directions=start.data.directions)

    @property
    def _curvature(self) -> np.ndarray:
        return 2.0 * self.weights * bound_curvature(self.xi)

    @cached_property
    def data(self) -> TaskRows:
        """Rows and values that bear on the effects as the bound does."""
        root = np.sqrt(self._curvature)
        known = root > 0.0
        targets = 0.5 * self.weights * self.signs / np.where(known, root, 1.0)
        return TaskRows(root[:, :, None] * self.table, np.where(known, targets, 0.0))

    def infer(self, prior: Prior) -> Posterior:
        posterior = infer_rows(self.data, prior, self.directions)
        return self._bound(posterior, self.data.counts, self.data.energy)

    @cached_property
    def constant(self) -> float:
        return float(bound_constant(self.weights, self.xi).sum())

    def updated(self, prior: Prior, posterior: Posterior, gain: float) -> tuple[Likelihood, Prior]:
        assert posterior.spreads is not None
        scores = (self.table @ posterior.weights[:, :, None])[:, :, 0]
        curvature = self._curvature
        spread = np.maximum(posterior.spreads, 0.0) / np.where(curvature > 0.0, curvature, 1.0)
        return replace(self, xi=np.sqrt(scores**2 + spread)), prior

    @property
    def n_rows(self) -> float:
        return float(self.weights.sum())


def _bound_gram(rows: Array, weights: Array, xi: Array, offsets: np.ndarray) -> np.ndarray:
    """Quadratic part of the bound of each task's rows."""
    return to_numpy(segment_gram(rows, 2.0 * weights * bound_curvature(xi), offsets))


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
