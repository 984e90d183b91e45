r"""What the rows say of tasks' effects, given their covariance and the noise.

.. math:: y_t = \tilde X_t (β + u_t) + e_t, \quad u_t \sim N(0, B), \quad e_t \sim N(0, σ_t^2 I),
    \quad β \sim N(0, v I) \text{ or flat}

with the intercept as the last column of ``X̃``. The mean ``β`` is integrated out too, so that its
uncertainty counts (restricted likelihood). All tasks are worked on in one batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..datafits.gram_datafit import GramDatafit
from ..saving.registry import saved
from .covariances import EffectCovariance

LEAST_TOLD = 1e-10
"""Share of what rows say of a direction, to what they say of the best, below which it is open."""


@saved
@dataclass(frozen=True, eq=False)
class Prior:
    """Where tasks come from, and the noise of their rows.

    Parameters
    ----------
    covariance : EffectCovariance
        Covariance of the random effects.
    noise : ndarray of shape (T,)
        Variance of the noise of each task.
    residual_variance : float
        Variance of the noise that tasks have in common.
    mean_variance : float
        Variance of the common slopes; infinite where they are free.
    """

    covariance: EffectCovariance
    noise: np.ndarray
    residual_variance: float
    mean_variance: float

    @property
    def mean_precision(self) -> np.ndarray:
        """Prior precision of the common slopes, and of the common intercept, which is free."""
        slopes = np.full(self.covariance.n_features, 1.0 / self.mean_variance)
        return np.append(slopes, 0.0)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Effects of all tasks given their rows.

    Parameters
    ----------
    log_evidence : float
        Logarithm of the restricted likelihood.
    mean, mean_covariance
        The common part ``β`` and its covariance.
    effects : ndarray of shape (T, q)
        Means of ``u_t``.
    covariances : ndarray of shape (T, q, q) or None
        Covariances of ``β + u_t``, where they come of the way.
    moments : ndarray of shape (q, q)
        Sum of ``E[u_t u_tᵀ]``.
    squares : ndarray of shape (T,)
        Expected squared errors of each task's rows.
    pull, stiffness : ndarrays of shape (q,) and (q, q)
        Expected errors as a quadratic of the scales of the effects.
    spreads : ndarray of shape (T, m) or None
        Variances of the scores of each task's rows, over that of their noise, where they come of
        the way.
    """

    log_evidence: float
    mean: np.ndarray
    mean_covariance: np.ndarray
    effects: np.ndarray
    covariances: np.ndarray | None
    moments: np.ndarray
    squares: np.ndarray
    pull: np.ndarray
    stiffness: np.ndarray
    spreads: np.ndarray | None = None

    @property
    def weights(self) -> np.ndarray:
        """Weights of each task, the intercept last, ``(T, q)``."""
        return self.mean + self.effects


def infer(data: GramDatafit, prior: Prior, directions: np.ndarray) -> Posterior:
    """Posterior of all effects under a prior; ``feature_loadings`` as :func:`estimable_directions`
    has them.
    """
    tasks, size = data.moment.shape
    root = prior.covariance.root
    width = root.shape[1]
    precision, pulled = 1.0 / prior.noise, prior.mean_precision
    gram = np.broadcast_to(data.gram, (tasks, size, size))
    scaled = precision[:, None, None] * gram
    seen = (scaled.reshape(tasks * size, size) @ root).reshape(tasks, size, width)
    inner = np.eye(width) + root.T @ seen
    inverse = np.linalg.inv(inner)
    own = root @ inverse @ root.T
    shrink = own @ scaled  # V A / σ²
    moment = precision[:, None] * data.moment
    told = (own @ moment[:, :, None])[:, :, 0]
    # The common part: what is left of each task's rows once its own effects have had their share.
    flat = scaled.reshape(tasks * size, size)
    stiff = scaled.sum(axis=0) - flat.T @ shrink.reshape(tasks * size, size)
    right = moment.sum(axis=0) - flat.T @ told.ravel()
    covariance, log_determinant = common_covariance(stiff, prior, directions)
    mean = covariance @ right
    gap = moment - (scaled @ mean[:, None])[:, :, 0]
    latent = (inverse @ (gap @ root)[:, :, None])[:, :, 0]
    effects = latent @ root.T
    spread = shrink @ covariance  # minus the covariance of u_t and β
    tilted = spread @ np.swapaxes(shrink, 1, 2)
    around = own + tilted
    total = around + covariance - spread - np.swapaxes(spread, 1, 2)
    moments = effects.T @ effects + around.sum(axis=0)
    weights = mean + effects
    image = (gram @ weights[:, :, None])[:, :, 0]
    errors = data.energy + np.einsum("tq,tq->t", weights, image - 2.0 * data.moment)
    squares = errors + np.einsum("tqr,tqr->t", gram, total)
    counts = np.broadcast_to(data.gram[:, -1, -1], (tasks,))
    # As sums of squares: a difference of large numbers would lose it where the noise is small.
    quadratic = float(precision @ errors) + float(np.vdot(latent, latent))
    quadratic += float(pulled @ mean**2)
    log_evidence = restricted_evidence(
        prior, counts, log_determinants(inner) + log_determinant, quadratic, directions
    )
    # E[u (c - A β)] and E[A ∘ u uᵀ], for the scales.
    pull = np.einsum("tq,tq->q", effects, gap) + np.einsum("tqr,tqr->q", scaled, spread)
    outer = effects[:, :, None] * effects[:, None, :] + around
    stiffness = np.einsum("tqr,tqr->qr", scaled, outer)
    return Posterior(
        log_evidence, mean, covariance, effects, total, moments, squares, pull, stiffness
    )


def restricted_evidence(
    prior: Prior,
    counts: np.ndarray,
    log_determinant: float,
    quadratic: float,
    directions: np.ndarray,
) -> float:
    """Logarithm of the restricted likelihood from what rows of ``counts`` weights say of a prior.

    ``log_determinant`` is that of the effects and of the common part, ``quadratic`` what is left
    of the squares, both over the noise.
    """
    pulled = prior.mean_precision
    free = 1 if np.isfinite(prior.mean_variance) else directions.shape[1]
    noise = float(counts @ np.log(2.0 * np.pi * prior.noise))
    given = float(np.log(pulled[pulled > 0.0]).sum()) + free * np.log(2.0 * np.pi)
    return -0.5 * (noise + log_determinant + quadratic - given)


def common_covariance(
    stiff: np.ndarray, prior: Prior, directions: np.ndarray
) -> tuple[np.ndarray, float]:
    """Covariance of the common weights, and the log determinant of their precision.

    ``stiff`` is what the rows say of it. Free weights are meant in the given directions only, which
    do not depend on the prior: a direction that came and went would make the marginal likelihood
    jump.
    """
    pulled = prior.mean_precision
    if np.isfinite(prior.mean_variance):
        directions = np.eye(len(pulled))
    inner = directions.T @ (0.5 * (stiff + stiff.T) + np.diag(pulled)) @ directions
    values, basis = np.linalg.eigh(inner)
    values = np.maximum(values, values[-1] * len(values) * np.finfo(values.dtype).eps)
    turned = directions @ basis
    return (turned / values) @ turned.T, float(np.log(values).sum())


def estimable_directions(pooled: np.ndarray) -> np.ndarray:
    """Orthonormal directions of common weights, as columns, that rows with this Gram tell of.

    Columns that depend on each other, such as indicators of all levels, or parts and their total,
    leave some directions open.
    """
    size = np.sqrt(np.diagonal(pooled))
    inverse = 1.0 / np.where(size > 0.0, size, 1.0)
    values, basis = np.linalg.eigh(pooled * np.outer(inverse, inverse))
    rounding = 10.0 * len(values) * float(np.finfo(pooled.dtype).eps)
    left = values <= values[-1] * max(LEAST_TOLD, rounding)
    # Told is what has no part in the open directions: the shortest weights of all that fit alike.
    turned = np.linalg.qr(inverse[:, None] * basis[:, left], mode="complete")[0]
    return turned[:, np.count_nonzero(left) :]


def log_determinants(matrices: np.ndarray) -> float:
    """Sum of the log determinants of definite matrices."""
    triangles = np.linalg.cholesky(0.5 * (matrices + np.swapaxes(matrices, 1, 2)))
    return 2.0 * float(np.log(np.diagonal(triangles, axis1=1, axis2=2)).sum())
