"""How rows bear on tasks' effects: normal noise around a value. For classes see ``odds.py``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..datafits.gram_datafit import GramDatafit
from .posterior import Posterior, Prior, estimable_directions, infer
from .row_posterior import TaskRows, infer_rows, row_covariances

NOISE_WEIGHT = 8.0
"""Rows that the common level of noise counts for where each task has its own."""
LEAST_NOISE = 1e-5
"""Smallest noise, over what the fit starts from: rows that can be met exactly have no bound."""


class Likelihood(ABC):
    """Rows of all tasks, as seen from their effects."""

    @abstractmethod
    def infer(self, prior: Prior) -> Posterior:
        """Posterior of the effects, with the marginal likelihood or its bound."""

    @abstractmethod
    def updated(self, prior: Prior, posterior: Posterior, gain: float) -> tuple[Likelihood, Prior]:
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

    heteroscedastic: bool

    @property
    @abstractmethod
    def counts(self) -> np.ndarray:
        """Weight of each task's rows."""

    @property
    @abstractmethod
    def energy(self) -> float:
        """Weighted sum of squared targets."""

    def updated(self, prior: Prior, posterior: Posterior, gain: float) -> tuple[Likelihood, Prior]:
        counts, tasks = self.counts, len(self.counts)
        least = LEAST_NOISE * self.start_noise
        if not self.heteroscedastic:
            # The gain counts in units of the noise.
            left = float(posterior.squares.sum()) - gain * prior.residual_variance
            level = max(left / float(counts.sum()), least)
            return self, replace(prior, noise=np.full(tasks, level), residual_variance=level)
        level = max(tasks / float((1.0 / prior.noise).sum()), least)
        noise = (posterior.squares + NOISE_WEIGHT * level) / (counts + NOISE_WEIGHT)
        return self, replace(prior, noise=np.maximum(noise, least), residual_variance=level)

    def log_prior(self, prior: Prior) -> float:
        if not self.heteroscedastic:
            return 0.0
        ratio = prior.residual_variance / prior.noise
        return 0.5 * NOISE_WEIGHT * float((np.log(ratio) - ratio).sum())

    @property
    def n_rows(self) -> float:
        return float(self.counts.sum())

    @property
    def start_noise(self) -> float:
        return 0.5 * max(self.energy / self.n_rows, 1e-12)


@dataclass(frozen=True, eq=False)
class Gaussian(NormalNoise):
    """Normal noise around values, of which each task's Gram tells all."""

    data: GramDatafit

    @cached_property
    def directions(self) -> np.ndarray:
        """Directions of common weights that the rows tell of."""
        return estimable_directions(self.data.gram.sum(axis=0))

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
    """Normal noise around values of tasks with fewer rows than features."""

    data: TaskRows

    def infer(self, prior: Prior) -> Posterior:
        return infer_rows(self.data, prior, self.data.directions)

    def covariances(self, prior: Prior, posterior: Posterior) -> np.ndarray:
        return row_covariances(self.data, prior, posterior)

    @property
    def counts(self) -> np.ndarray:
        return self.data.counts

    @property
    def energy(self) -> float:
        return self.data.energy
