"""What every loss has: value, derivative and curvature by the score, side by side."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import r2_score

from ..arrays import Array, namespace, weighted_mean
from ..rows.observations import Observations
from .links import ClassLink, Link


class Loss(ABC):
    r"""Loss of a score for a target, a frozen object of vectorised functions of ``(y, score)``.

    The engine needs the local quadratic model
    :math:`\ell(s + d) \approx \ell(s) + \ell'(s) d + \tfrac12 \ell''(s) d^2`, exact where
    ``quadratic`` is true. A loss is for the kinds of target for which it names a link, and
    ``text`` says in the reference what it is.
    """

    quadratic: ClassVar[bool] = False
    regression_link: ClassVar[Link | None] = None
    classification_link: ClassVar[ClassLink | None] = None
    text: ClassVar[str]
    longest_step: ClassVar[float] = float("inf")
    """Most that a step without a line search may change a score by."""

    @abstractmethod
    def value(self, y: Array, score: Array) -> Array:
        """Loss of each entry."""

    @abstractmethod
    def derivative(self, y: Array, score: Array) -> Array:
        """First derivative by the score."""

    @abstractmethod
    def curvature(self, y: Array, score: Array) -> Array:
        """Second derivative by the score, or that of a parabola above the loss; not negative."""

    @abstractmethod
    def dispersion(self, deviance: float, df: float) -> float:
        """Variance of a working response of curvature one, ``deviance`` being its spread."""

    def check_target(self, y: Array) -> None:  # noqa: B027
        """Refuse values that the loss is not for; labels -1 and +1 are always allowed."""

    def target_units(
        self, y: Array, weights: Array, *, center: bool, scale: bool
    ) -> tuple[float, float]:
        """Shift and scale of the values that the engine works in."""
        return 0.0, 1.0

    def start_scores(self, means: Array) -> Array | None:
        """Intercepts to start from where the target has these means; None: start at zero."""
        return None

    def working_curvature(self, y: Array, score: Array) -> Array:
        """Curvature of a step that nothing else holds back; not zero."""
        return namespace(score).clip(self.curvature(y, score), min=1e-4)

    def effective_rows(self, weight: float, curvature: float) -> float:
        """What rows of a weight and a sum of curvatures count for."""
        return weight

    def group_optimum(self, slopes: Array, curvatures: Array) -> tuple[Array, Array]:
        """Shifts of the scores of groups of rows that minimise their loss, and curvatures there.

        Given are the sums of the derivatives; curvatures must be positive.
        """
        return -slopes / curvatures, curvatures

    def held_out_unit(self, data: Observations) -> float:
        """Unit of the target that held-out losses are measured in."""
        return 1.0

    def held_out(self, y: Array, score: Array, unit: float) -> Array:
        """Loss of values that a fit did not see, in squares of the unit."""
        return self.value(y, score)

    def score(self, truth: np.ndarray, guess: np.ndarray, sample_weight: Any = None) -> float:
        """Share of the variation that predicted means explain, at best 1."""
        return float(r2_score(truth, guess, sample_weight=sample_weight))


def target_units(
    y: np.ndarray, weights: np.ndarray, *, center: bool, scale: bool
) -> tuple[float, float]:
    """Weighted mean and standard deviation of the target."""
    xp = namespace(y)
    unit = target_unit(float(xp.max(xp.abs(y))), float(xp.finfo(y.dtype).max), scale=scale)
    small = xp.astype(y / unit, xp.float64)
    mean = weighted_mean(small, weights) if center else 0.0
    spread = weighted_mean((small - mean) ** 2, weights) ** 0.5
    return scaled_units(mean, spread, unit, scale=scale)


def target_unit(largest: float, limit: float, *, scale: bool) -> float:
    """Size of the target to sum it up in, so that squares stay below ``limit``."""
    unit = largest or 1.0
    if not scale and not unit < limit**0.25:
        raise ValueError(
            'y has values too large to square safely; rescale it or leave standardize="auto".'
        )
    return unit


def scaled_units(mean: float, spread: float, unit: float, *, scale: bool) -> tuple[float, float]:
    """Shift and scale of the target, from its mean and spread over ``unit``."""
    # A constant target leaves rounding only; its own size will do.
    return mean * unit, (spread if spread > 1e-12 else 1.0) * unit if scale else 1.0
