r"""How rows bear on tasks' effects: noise around a value, or the odds of a class.

Squared loss needs each task's Gram only. The logistic likelihood is bounded from below by a
quadratic for each row (Jaakkola and Jordan), exact at the score ``ξ`` that the row is given:

.. math:: \log σ(s) \ge \log σ(ξ) + \tfrac12 (s - ξ) - λ(ξ)(s^2 - ξ^2), \quad
    λ(ξ) = \tanh(ξ/2) / 4ξ
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arrays import (
    Array,
    beside,
    namespace,
    on_device,
    row_dots,
    segment_codes,
    segment_forms,
    segment_gram,
    segment_sum,
    to_numpy,
)
from ..datafits.gram import GramDatafit
from .posterior import Posterior, Prior, infer, told_directions
from .row_posterior import TaskRows, infer_rows, row_covariances

NOISE_WEIGHT = 8.0
"""Rows that the common level of noise counts for where each task has its own."""
LEAST_NOISE = 1e-5
"""Smallest noise, over what the fit starts from: rows that can be met exactly have no bound."""


class Likelihood(ABC):
    """Rows of all tasks, as seen from their effects."""

    @abstractmethod
    def infer(self, prior: Prior) -> Posterior:
        """Posterior of the effects, with the evidence or its bound."""

    @abstractmethod
    def improved(self, prior: Prior, posterior: Posterior, gain: float) -> tuple[Likelihood, Prior]:
        """Noise, or place of the bound, that suits the posterior best.

        ``gain`` is what a change of the scales of effects takes off the squared errors.
        """

    def covariances(self, prior: Prior, posterior: Posterior) -> np.ndarray:
        """Covariances of the weights of every task, ``(T, q, q)``."""
        assert posterior.covariances is not None
        return posterior.covariances

    @abstractmethod
    def log_prior(self, prior: Prior) -> float:
        """Logarithm of the prior of the noise."""

    @property
    @abstractmethod
    def n_rows(self) -> float:
        """Weight of all rows."""

    @property
    @abstractmethod
    def start_noise(self) -> float:
        """Noise to start from."""


@dataclass(frozen=True, eq=False)
class NormalNoise(Likelihood):
    """Abstract likelihood of values with normal noise, of one variance or of one for each task."""

    own_noise: bool

    @property
    @abstractmethod
    def counts(self) -> np.ndarray:
        """Weight of each task's rows."""

    @property
    @abstractmethod
    def energy(self) -> float:
        """Weighted sum of squared targets."""

    def improved(self, prior: Prior, posterior: Posterior, gain: float) -> tuple[Likelihood, Prior]:
        counts, tasks = self.counts, len(self.counts)
        least = LEAST_NOISE * self.start_noise
        if not self.own_noise:
            # The gain counts in units of the noise.
            left = float(posterior.squares.sum()) - gain * prior.level
            level = max(left / float(counts.sum()), least)
            return self, replace(prior, noise=np.full(tasks, level), level=level)
        level = max(tasks / float((1.0 / prior.noise).sum()), least)
        noise = (posterior.squares + NOISE_WEIGHT * level) / (counts + NOISE_WEIGHT)
        return self, replace(prior, noise=np.maximum(noise, least), level=level)

    def log_prior(self, prior: Prior) -> float:
        if not self.own_noise:
            return 0.0
        ratio = prior.level / prior.noise
        return 0.5 * NOISE_WEIGHT * float((np.log(ratio) - ratio).sum())

    @property
    def n_rows(self) -> float:
        return float(self.counts.sum())

    @property
    def start_noise(self) -> float:
        return 0.5 * max(self.energy / self.n_rows, 1e-12)


@dataclass(frozen=True, eq=False)
class Gaussian(NormalNoise):
    """Normal noise around values, of which each task's Gram tells all.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.datafits.gram import GramDatafit
    >>> from comtl.hierarchical.likelihoods import Gaussian
    >>> Gaussian(False, GramDatafit(np.ones((1, 2, 2)), np.ones((1, 2)), np.ones(1))).n_rows
    1.0
    """

    data: GramDatafit

    @cached_property
    def directions(self) -> np.ndarray:
        """Directions of common weights that the rows tell of."""
        return told_directions(self.data.gram.sum(axis=0))

    def infer(self, prior: Prior) -> Posterior:
        return infer(self.data, prior, self.directions)

    @property
    def counts(self) -> np.ndarray:
        return np.broadcast_to(self.data.gram[:, -1, -1], (self.data.n_tasks,))

    @property
    def energy(self) -> float:
        return self.data.total_energy


@dataclass(frozen=True, eq=False)
class GaussianRows(NormalNoise):
    """Normal noise around values of tasks with fewer rows than features.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.hierarchical.likelihoods import GaussianRows
    >>> from comtl.hierarchical.row_posterior import TaskRows
    >>> rows = TaskRows.of(np.ones((2, 3)), np.ones(2), np.ones(2), np.array([0, 2]))
    >>> GaussianRows(False, rows).n_rows
    2.0
    """

    data: TaskRows

    def infer(self, prior: Prior) -> Posterior:
        return infer_rows(self.data, prior)

    def covariances(self, prior: Prior, posterior: Posterior) -> np.ndarray:
        return row_covariances(self.data, prior, posterior)

    @property
    def counts(self) -> np.ndarray:
        return self.data.counts

    @property
    def energy(self) -> float:
        return self.data.energy


class OddsBound(Likelihood):
    """Abstract likelihood of two classes by the odds of the score, through a quadratic bound."""

    data: GramDatafit
    """The bound as a quadratic of the tasks' weights."""
    directions: np.ndarray
    """Directions of common weights that the rows tell of, wherever the bound is exact."""

    @property
    @abstractmethod
    def constant(self) -> float:
        """What the bound has beside its quadratic part."""

    def infer(self, prior: Prior) -> Posterior:
        posterior = infer(self.data, prior, self.directions)
        # Of the normal likelihood only what depends on the effects is meant.
        normal = 0.5 * np.log(2.0 * np.pi) * float(self.data.gram[:, -1, -1].sum())
        bound = posterior.log_evidence + normal + self.constant
        return replace(posterior, log_evidence=bound)

    def log_prior(self, prior: Prior) -> float:
        return 0.0

    @property
    def start_noise(self) -> float:
        return 1.0


@dataclass(frozen=True, eq=False)
class Bernoulli(OddsBound):
    """Two classes of rows in memory.

    Parameters
    ----------
    rows : ndarray of shape (n, P + 1)
        Standardised rows with a last column of ones, those of a task next to each other.
    signs, weights : ndarrays of shape (n,)
        Classes as -1 and +1, and weights.
    offsets : ndarray of shape (T + 1,)
        Where tasks begin and end.
    places : ndarray of shape (n,)
        Scores at which the bound is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.hierarchical.likelihoods import Bernoulli
    >>> one = np.ones(1)
    >>> Bernoulli.of(np.ones((1, 2)), one, one, np.array([0, 1])).data.gram[0, 0, 0]
    np.float64(0.25)
    """

    rows: np.ndarray
    signs: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray
    places: np.ndarray
    data: GramDatafit
    directions: np.ndarray

    @classmethod
    def of(
        cls, rows: np.ndarray, signs: np.ndarray, weights: np.ndarray, offsets: np.ndarray
    ) -> Bernoulli:
        """Bound that is exact at scores of zero."""
        places = namespace(rows).zeros_like(signs) if on_device(rows) else np.zeros(len(signs))
        gram = _bound_gram(rows, weights, places, offsets)
        moment = to_numpy(segment_sum(rows * (0.5 * weights * signs)[:, None], offsets))
        # The rows stay where they lie; what is inferred from their sums is a matter of the host.
        sums = GramDatafit(gram, moment, np.zeros(len(offsets) - 1))
        directions = told_directions(gram.sum(axis=0))
        return cls(rows, signs, weights, offsets, places, sums, directions)

    @cached_property
    def constant(self) -> float:
        value = bound_constant(self.weights, self.places)
        return float(namespace(value).sum(value))

    def improved(self, prior: Prior, posterior: Posterior, gain: float) -> tuple[Likelihood, Prior]:
        dtype = self.rows.dtype if on_device(self.rows) else None
        weights = beside(posterior.weights, self.rows, dtype)
        covariances = beside(self.covariances(prior, posterior), self.rows, dtype)
        places = bound_places(self.rows, weights, covariances, self.offsets)
        gram = _bound_gram(self.rows, self.weights, places, self.offsets)
        data = GramDatafit(gram, self.data.moment, self.data.energy)
        return replace(self, places=places, data=data), prior

    @property
    def n_rows(self) -> float:
        return float(namespace(self.weights).sum(self.weights))


def _bound_gram(rows: Array, weights: Array, places: Array, offsets: np.ndarray) -> np.ndarray:
    """Quadratic part of the bound of each task's rows."""
    return to_numpy(segment_gram(rows, 2.0 * weights * bound_curvature(places), offsets))


def bound_places(rows: Array, weights: Array, covariances: Array, offsets: np.ndarray) -> Array:
    """Scores at which the bound is best exact, given the weights of the tasks of the rows."""
    xp = namespace(rows)
    scores = row_dots(rows, xp.take(weights, segment_codes(offsets, rows), axis=0))
    spread = segment_forms(rows, covariances, offsets)
    return xp.sqrt(scores**2 + xp.clip(spread, min=0.0))


def bound_constant(weights: Array, places: Array) -> Array:
    """What the bound of each row has beside its quadratic part."""
    xp = namespace(places)
    value = -xp.logaddexp(xp.zeros_like(places), -places) - 0.5 * places
    return weights * (value + bound_curvature(places) * places**2)


def bound_curvature(places: Array) -> Array:
    """``λ(ξ)``, 1/8 at zero."""
    xp = namespace(places)
    large = xp.abs(places) > 1e-4
    safe = xp.where(large, places, xp.ones_like(places))
    return xp.where(large, xp.tanh(0.5 * safe) / (4.0 * safe), xp.full_like(places, 0.125))
