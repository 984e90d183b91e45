"""Likelihoods of the rows, given the effects, for rows in any form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from .posterior import Posterior, Prior, infer
from .task_data import TaskRows

NOISE_WEIGHT = 8.0
"""Rows that the common residual variance counts for where each task has its own."""
MIN_NOISE = 1e-5
"""Smallest residual variance, over the first: rows that can be met exactly have no bound."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Values with normal residuals, of one variance or of one for each task."""

    heteroscedastic: bool
    data: TaskRows

    def infer(self, prior: Prior) -> Posterior:
        """Posterior of the effects, with the restricted likelihood."""
        return infer(self.data, prior, self.data)

    @property
    def noise_groups(self) -> np.ndarray | None:
        """Number of the residual variance of each task, among those that are to be found."""
        tasks = len(self.data.counts)
        return np.arange(tasks) if self.heteroscedastic else np.zeros(tasks, dtype=np.intp)

    def refreshed(self, posterior: Posterior) -> Likelihood:
        """Return the same: nothing depends on the posterior."""
        return self

    def with_noise(self, prior: Prior, factors: np.ndarray) -> Prior:
        """Return the prior with residual variances times factors."""
        noise = np.maximum(prior.noise * factors, self.least_noise)
        # What suits these best; one in common is its own.
        return replace(
            prior, noise=noise, residual_variance=len(noise) / float(np.sum(1.0 / noise))
        )

    def log_prior(self, prior: Prior) -> float:
        """Logarithm of the prior of the residual variances."""
        if not self.heteroscedastic:
            return 0.0
        ratio = prior.residual_variance / prior.noise
        return 0.5 * NOISE_WEIGHT * float((np.log(ratio) - ratio).sum())

    def noise_prior(self, prior: Prior) -> tuple[np.ndarray, np.ndarray]:
        """Twice the slope and the curvature of that, in logarithms of the residual variances."""
        if not self.heteroscedastic:
            return np.zeros(1), np.zeros(1)
        ratio = prior.residual_variance / prior.noise
        return NOISE_WEIGHT * (ratio - 1.0), NOISE_WEIGHT * ratio

    @cached_property
    def n_rows(self) -> float:
        """Weight of all rows."""
        return float(self.data.counts.sum())

    @property
    def least_noise(self) -> float:
        """Least residual variance."""
        return MIN_NOISE * self.start_noise

    @cached_property
    def start_noise(self) -> float:
        """Residual variance to start from."""
        return 0.5 * max(self.data.energy / self.n_rows, 1e-12)


class Bound(NamedTuple):
    """Bound of the likelihood of classes: that of normal values, and what is beside it."""

    data: TaskRows
    constant: float
    n_rows: float


@dataclass(frozen=True, eq=False)
class Bernoulli:
    """Two classes by log odds; ``refresh`` makes the bound of a posterior, or of scores of zero."""

    refresh: Callable[[Posterior | None], Bound]
    first: Bound
    bound: Bound

    heteroscedastic: ClassVar[bool] = False
    start_noise: ClassVar[float] = 1.0
    least_noise: ClassVar[float] = 1.0

    @classmethod
    def of(cls, refresh: Callable[[Posterior | None], Bound]) -> Bernoulli:
        """Start at scores of zero."""
        bound = refresh(None)
        return cls(refresh, bound, bound)

    @property
    def data(self) -> TaskRows:
        """Rows of the bound."""
        return self.bound.data

    @property
    def n_rows(self) -> float:
        """Weight of all rows."""
        return self.bound.n_rows

    def infer(self, prior: Prior) -> Posterior:
        """Posterior of the effects, with the bound of the restricted likelihood."""
        data = self.data
        posterior = infer(data, prior, self.first.data)
        # Of the normal likelihood only what depends on the effects is meant.
        normal = np.log(2.0 * np.pi) * float(data.counts.sum()) + data.energy
        value = posterior.log_evidence + 0.5 * normal + self.bound.constant
        return replace(posterior, log_evidence=value)

    @property
    def noise_groups(self) -> np.ndarray | None:
        """There are no residual variances to be found."""
        return None

    def refreshed(self, posterior: Posterior) -> Likelihood:
        """Return the bound that suits a posterior best."""
        return replace(self, bound=self.refresh(posterior))

    def with_noise(self, prior: Prior, factors: np.ndarray) -> Prior:
        """Return the same prior."""
        return prior

    def log_prior(self, prior: Prior) -> float:
        """There is none of the residual variances."""
        return 0.0

    def noise_prior(self, prior: Prior) -> tuple[np.ndarray, np.ndarray]:
        """Nor has it a slope."""
        return np.zeros(0), np.zeros(0)


Likelihood = Gaussian | Bernoulli
