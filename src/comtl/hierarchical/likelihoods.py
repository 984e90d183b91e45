"""Likelihoods of the rows, given the effects, for rows in any form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from .laplace import Expansion
from .posterior import Posterior, Prior, infer
from .task_data import TaskRows

NOISE_WEIGHT = 8.0
"""Rows that the common residual variance counts for where each task has its own."""
MIN_NOISE = 1e-5
"""Smallest residual variance, over the first: rows that can be met exactly have no bound."""
SPREAD = 4.0
"""Standard deviation that a part of the log odds hardly exceeds."""
MOST_NEWTON, NEWTON_TOLERANCE, LONGEST_NEWTON = 25, 1e-7, 4.0
"""Newton steps to the mode, change of the weights at which they end, and the longest of it."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Values with normal residuals, of one variance or of one for each task."""

    heteroscedastic: bool
    data: TaskRows

    spread_weight: ClassVar[float] = 0.0  # of the prior against large variances

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

    def common_prior(self, prior: Prior) -> tuple[float, float]:
        """There is none of the variance of the common slopes."""
        return 0.0, 0.0

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


class ClassTasks(Protocol):
    """Tasks with rows of two classes."""

    def expansion(self, coef: np.ndarray | None) -> Expansion:
        """Quadratic model of the likelihood about scores by weights of the tasks, or about zero."""

    def skews(self, coef: np.ndarray, posterior: Posterior) -> list[np.ndarray]:
        """Change of the log determinant by the scores, as targets of the posterior's blocks."""


@dataclass(frozen=True, eq=False)
class Bernoulli:
    """Two classes by log odds; the effects are integrated out about their mode (Laplace)."""

    tasks: ClassTasks
    first: Expansion  # about scores of zero
    coef: np.ndarray | None = None  # weights of the tasks to start from

    heteroscedastic: ClassVar[bool] = False
    spread_weight: ClassVar[float] = SPREAD**-2
    start_noise: ClassVar[float] = 1.0
    least_noise: ClassVar[float] = 1.0

    @classmethod
    def of(cls, tasks: ClassTasks) -> Bernoulli:
        """Start at scores of zero."""
        return cls(tasks, tasks.expansion(None))

    @property
    def data(self) -> TaskRows:
        """Rows of the model about scores of zero."""
        return self.first.data

    @property
    def n_rows(self) -> float:
        """Weight of all rows."""
        return self.first.n_rows

    def infer(self, prior: Prior) -> Posterior:
        """Posterior about the mode of the effects, found by Newton's method."""
        coef = self.coef
        for _ in range(MOST_NEWTON):
            model = self.first if coef is None else self.tasks.expansion(coef)
            posterior = infer(model.data, prior, self.data)
            before = np.zeros_like(posterior.weights) if coef is None else coef
            change = posterior.weights - before
            longest = float(np.abs(change).max())
            coef = before + min(1.0, LONGEST_NEWTON / max(longest, 1e-300)) * change
            if longest <= NEWTON_TOLERANCE * (1.0 + float(np.abs(coef).max())):
                break
        # Of the normal likelihood only what depends on the effects is meant.
        normal = np.log(2.0 * np.pi) * float(model.data.counts.sum()) + model.data.energy
        value = posterior.log_evidence + 0.5 * normal + model.constant
        drifts = posterior.projected(self.tasks.skews(before, posterior))
        blocks = [replace(b, drift=d) for b, d in zip(posterior.blocks, drifts, strict=True)]
        return replace(posterior, log_evidence=value, blocks=blocks)

    @property
    def noise_groups(self) -> np.ndarray | None:
        """There are no residual variances to be found."""
        return None

    def refreshed(self, posterior: Posterior) -> Likelihood:
        """Return the same, to start from the weights of a posterior."""
        return replace(self, coef=posterior.weights)

    def with_noise(self, prior: Prior, factors: np.ndarray) -> Prior:
        """Return the same prior."""
        return prior

    def log_prior(self, prior: Prior) -> float:
        """Logarithm of priors, half normal, of the spread of scores in common and of the tasks.

        Classes that a plane parts would raise these, and with them the likelihood, without end.
        """
        own = self.spread_weight * float(prior.covariance.own.sum())
        return -0.5 * (self.common_prior(prior)[1] + own)

    def common_prior(self, prior: Prior) -> tuple[float, float]:
        """Twice the slope and the curvature by the logarithm of the variance of common slopes."""
        variance = prior.mean_variance if np.isfinite(prior.mean_variance) else 0.0
        share = (self.data.size - 1) * variance * self.spread_weight
        return -share, share

    def noise_prior(self, prior: Prior) -> tuple[np.ndarray, np.ndarray]:
        """There is none of the residual variances."""
        return np.zeros(0), np.zeros(0)


Likelihood = Gaussian | Bernoulli
