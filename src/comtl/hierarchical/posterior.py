"""Prior and posterior of the random effects, and what all ways to the posterior share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..saving.registry import saved
from .covariances import EffectCovariance

MIN_ESTIMABLE = 1e-10
"""Smallest eigenvalue of the rows' Gram, over the largest, that determines a direction."""


@saved
@dataclass(frozen=True, eq=False)
class Prior:
    """Covariance of the random effects, and variances of residuals and of the common slopes."""

    covariance: EffectCovariance
    noise: np.ndarray  # residual variance of each task
    residual_variance: float  # in common
    mean_variance: float  # infinite where the common slopes are fixed effects
    center: np.ndarray | None = None  # of the family's prior on the covariance

    @cached_property
    def mean_precision(self) -> np.ndarray:
        """Prior precision of the common slopes, and of the common intercept, which is free."""
        precision = np.full(len(self.covariance.matrix), 1.0 / self.mean_variance)
        precision[-1] = 0.0
        return precision


@dataclass(frozen=True, eq=False)
class Posterior:
    """Fixed effects ``β`` and random effects ``u_t`` given the rows; None: no by-product here."""

    log_evidence: float  # logarithm of the restricted likelihood
    mean: np.ndarray
    mean_covariance: np.ndarray
    effects: np.ndarray  # means of u_t, (T, q)
    covariances: np.ndarray | None  # of β + u_t, (T, q, q)
    moments: np.ndarray  # sum of E[u_t u_tᵀ]
    squares: np.ndarray  # expected squared errors of each task's rows
    slope: np.ndarray  # expected errors as a quadratic of the scales of the effects
    stiffness: np.ndarray
    score_variances: np.ndarray | None = None  # of each task's rows, (T, m)

    @property
    def weights(self) -> np.ndarray:
        """Weights of each task, the intercept last, ``(T, q)``."""
        return self.mean + self.effects


def restricted_likelihood(
    prior: Prior, counts: np.ndarray, inner: np.ndarray, common: CommonEffects, quadratic: float
) -> float:
    """Log restricted likelihood, by the random effects' matrices and the sum of scaled squares."""
    precision = prior.mean_precision
    free = 1 if np.isfinite(prior.mean_variance) else common.n_directions
    noise = float(counts @ np.log(2.0 * np.pi * prior.noise))
    given = float(np.log(precision[precision > 0.0]).sum()) + free * np.log(2.0 * np.pi)
    determinant = float(np.linalg.slogdet(inner)[1].sum()) + common.log_determinant
    quadratic += float(precision @ common.mean**2)
    return -0.5 * (noise + determinant + quadratic - given)


@dataclass(frozen=True, eq=False)
class CommonEffects:
    """Fixed effects, the random ones integrated out."""

    mean: np.ndarray
    covariance: np.ndarray
    log_determinant: float
    n_directions: int

    @classmethod
    def solve(
        cls, stiff: np.ndarray, right: np.ndarray, prior: Prior, directions: np.ndarray
    ) -> CommonEffects:
        """Solve the normal equations of the rows, with the prior of the fixed effects.

        Without one, effects have the estimable directions only, which do not depend on the prior: a
        direction that came and went would make the restricted likelihood jump.
        """
        precision, count = prior.mean_precision, directions.shape[1]
        if np.isfinite(prior.mean_variance):
            directions = np.eye(len(precision))
        inner = directions.T @ (0.5 * (stiff + stiff.T) + np.diag(precision)) @ directions
        values, basis = np.linalg.eigh(inner)
        values = np.maximum(values, values[-1] * len(values) * np.finfo(values.dtype).eps)
        turned = directions @ basis
        covariance = (turned / values) @ turned.T
        return cls(covariance @ right, covariance, float(np.log(values).sum()), count)


def estimable_directions(pooled: np.ndarray) -> np.ndarray:
    """Orthonormal directions of fixed effects, as columns, that rows of this Gram determine."""
    size = np.sqrt(np.diagonal(pooled))
    inverse = 1.0 / np.where(size > 0.0, size, 1.0)
    values, basis = np.linalg.eigh(inverse[:, None] * pooled * inverse)
    rounding = 10.0 * len(values) * float(np.finfo(pooled.dtype).eps)
    left = values <= values[-1] * max(MIN_ESTIMABLE, rounding)
    # Without any part in the open directions: the shortest weights of all that fit alike.
    turned = np.linalg.qr(inverse[:, None] * basis[:, left], mode="complete")[0]
    return turned[:, np.count_nonzero(left) :]
