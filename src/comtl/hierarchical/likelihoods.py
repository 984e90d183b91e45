"""Likelihoods of the rows, given the effects, for rows in any form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from .posterior import Posterior, Prior, estimable_directions
from .task_data import TaskData

NOISE_WEIGHT = 8.0
"""Rows that the common residual variance counts for where each task has its own."""
MIN_NOISE = 1e-5
"""Smallest residual variance, over the first: rows that can be met exactly have no bound."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Values with normal residuals, of one variance or of one for each task."""

    heteroscedastic: bool
    data: TaskData

    @cached_property
    def directions(self) -> np.ndarray:
        """Directions of fixed effects that the rows determine."""
        return estimable_directions(self.data.pooled_gram)

    def infer(self, prior: Prior) -> Posterior:
        """Posterior of the effects, with the restricted likelihood."""
        return self.data.infer(prior, self.directions)

    def updated(self, prior: Prior, posterior: Posterior, gain: float) -> tuple[Likelihood, Prior]:
        """M step of the residual variances; ``gain`` is the squared error that new scales save."""
        tasks, least = len(prior.noise), MIN_NOISE * self.start_noise
        if self.heteroscedastic:
            common = max(tasks / float((1.0 / prior.noise).sum()), least)
            squares = posterior.squares + NOISE_WEIGHT * common
            noise = np.maximum(squares / (self.data.counts + NOISE_WEIGHT), least)
        else:
            left = float(posterior.squares.sum()) - gain * prior.residual_variance
            common = max(left / self.n_rows, least)
            noise = np.full(tasks, common)
        return self, replace(prior, noise=noise, residual_variance=common)

    def log_prior(self, prior: Prior) -> float:
        """Logarithm of the prior of the residual variances."""
        if not self.heteroscedastic:
            return 0.0
        ratio = prior.residual_variance / prior.noise
        return 0.5 * NOISE_WEIGHT * float((np.log(ratio) - ratio).sum())

    @cached_property
    def n_rows(self) -> float:
        """Weight of all rows."""
        return float(self.data.counts.sum())

    @cached_property
    def start_noise(self) -> float:
        """Residual variance to start from."""
        return 0.5 * max(self.data.energy / self.n_rows, 1e-12)


class Bound(NamedTuple):
    """Bound of the likelihood of classes: that of normal values, and what is beside it."""

    data: TaskData
    constant: float
    n_rows: float


@dataclass(frozen=True, eq=False)
class Bernoulli:
    """Two classes by log odds; ``refresh`` makes the bound of a posterior, or of scores of zero."""

    refresh: Callable[[Posterior | None], Bound]
    directions: np.ndarray
    data: TaskData
    constant: float
    n_rows: float
    start_noise: ClassVar[float] = 1.0

    @classmethod
    def of(cls, refresh: Callable[[Posterior | None], Bound]) -> Bernoulli:
        """Start at scores of zero."""
        bound = refresh(None)
        return cls(refresh, estimable_directions(bound.data.pooled_gram), *bound)

    def infer(self, prior: Prior) -> Posterior:
        """Posterior of the effects, with the bound of the restricted likelihood."""
        posterior = self.data.infer(prior, self.directions)
        # Of the normal likelihood only what depends on the effects is meant.
        normal = np.log(2.0 * np.pi) * float(self.data.counts.sum()) + self.data.energy
        value = posterior.log_evidence + 0.5 * normal + self.constant
        return replace(posterior, log_evidence=value)

    def updated(self, prior: Prior, posterior: Posterior, gain: float) -> tuple[Likelihood, Prior]:
        """M step of the bound."""
        return Bernoulli(self.refresh, self.directions, *self.refresh(posterior)), prior

    def log_prior(self, prior: Prior) -> float:
        """There is none of the residual variances."""
        return 0.0


Likelihood = Gaussian | Bernoulli
