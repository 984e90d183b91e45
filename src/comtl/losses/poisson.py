"""Poisson loss of counts."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array, namespace
from .links import Link, Log, log_range
from .loss import Loss


@dataclass(frozen=True)
class Poisson(Loss):
    r"""Half the deviance of a count, :math:`e^s - y s + y \log y - y`, ``s`` its log mean.

    Scores beyond what is safe to take further products of go on along the tangent.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.losses import Poisson
    >>> Poisson().value(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
    array([1., 0.])
    """

    regression_link: ClassVar[Link | None] = Log()
    text: ClassVar[str] = (
        "half the deviance of counts or rates; y is not scaled, and weights and intercepts are of "
        "the logarithm of the mean, which predict returns"
    )

    longest_step: ClassVar[float] = 3.0

    def value(self, y: Array, score: Array) -> Array:
        size, gap, far = self._about(y, score)
        xp = namespace(score)
        rest = xp.where(y > 0.0, gap + far, -xp.ones_like(score))
        # About log y, where nothing large cancels.
        return size * (xp.expm1(gap) + xp.exp(gap) * far - rest)

    def derivative(self, y: Array, score: Array) -> Array:
        size, gap, _ = self._about(y, score)
        xp = namespace(score)
        return size * xp.where(y > 0.0, xp.expm1(gap), xp.exp(gap))

    def curvature(self, y: Array, score: Array) -> Array:
        size, gap, _ = self._about(y, score)
        return size * namespace(score).exp(gap)

    def working_curvature(self, y: Array, score: Array) -> Array:
        # Below log y the curvature grows on the way: that of the chord does not overshoot.
        size, gap, _ = self._about(y, score)
        xp = namespace(score)
        below = (y > 0.0) & (gap < -1e-6)
        chord = xp.expm1(gap) / xp.where(below, gap, -xp.ones_like(gap))
        return size * xp.clip(xp.where(below, chord, xp.exp(gap)), min=1e-4)

    def dispersion(self, deviance: float, df: float) -> float:
        return 1.0

    def effective_rows(self, weight: float, curvature: float) -> float:
        return curvature

    def check_target(self, y: Array) -> None:
        least = float(namespace(y).min(y))
        if least < 0.0:
            raise ValueError(
                f'loss="poisson" needs y of counts or rates, none negative, got {least:g}; clip '
                'or shift y, or use loss="squared".'
            )

    def start_scores(self, means: Array) -> Array:
        xp = namespace(means)
        return xp.log(xp.clip(means, min=float(xp.finfo(means.dtype).eps)))

    def group_optimum(self, slopes: Array, curvatures: Array) -> tuple[Array, Array]:
        # The sums of y and of the fitted means; half a count keeps groups of zeros finite.
        counts = namespace(slopes).clip(curvatures - slopes, min=0.0) + 0.5
        return namespace(slopes).log(counts / (curvatures + 0.5)), counts

    def score(self, truth: np.ndarray, guess: np.ndarray, sample_weight: Any = None) -> float:
        def deviance(mean: np.ndarray) -> float:
            score = np.log(np.maximum(mean, np.finfo(np.float64).tiny))
            return float(np.average(self.value(truth, score), weights=sample_weight))

        truth, guess = truth.astype(np.float64), guess.astype(np.float64)
        left = deviance(guess)
        whole = deviance(np.full_like(guess, np.average(truth, weights=sample_weight)))
        return 1.0 - left / whole if whole > 0.0 else float(left <= 0.0)

    def _about(self, y: Array, score: Array) -> tuple[Array, Array, Array]:
        """Size of the target, score over that of the target, and how far it is out of range."""
        xp = namespace(score)
        size = xp.where(y > 0.0, y, xp.ones_like(y))
        gap = score - xp.log(size)
        near = xp.clip(gap, max=log_range(score) / 3.0)
        return size, near, gap - near
