"""Huber loss."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Array, namespace, to_numpy
from ..rows.observations import Observations
from .links import Identity, Link
from .loss import Loss, target_units

NORMAL_MAD = 0.6744897501960817
"""Median absolute deviation of the standard normal distribution."""


@dataclass(frozen=True)
class Huber(Loss):
    r"""Squared error up to ``threshold`` and linear from there, with a continuous derivative.

    The target is worked on about its median, in robust standard deviations (the median absolute
    deviation over that of a normal distribution), so that ``threshold`` counts these. The curvature
    is that of the parabola above the loss that touches it (iteratively reweighted least squares).

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.losses import Huber
    >>> Huber(1.0).value(np.array([0.0, 0.0]), np.array([0.5, 10.0]))
    array([ 0.25, 19.  ])
    """

    threshold: float = 1.345

    regression_link: ClassVar[Link | None] = Identity()
    text: ClassVar[str] = (
        "the squared error, linear beyond 1.345 robust standard deviations of y (of its units "
        "without standardize), for y with outliers"
    )

    def value(self, y: Array, score: Array) -> Array:
        xp = namespace(score)
        gap = xp.abs(score - y)
        near = xp.clip(gap, max=self.threshold)
        return near * (2.0 * gap - near)

    def derivative(self, y: Array, score: Array) -> Array:
        return 2.0 * namespace(score).clip(score - y, min=-self.threshold, max=self.threshold)

    def curvature(self, y: Array, score: Array) -> Array:
        xp = namespace(score)
        return 2.0 * self.threshold / xp.clip(xp.abs(score - y), min=self.threshold)

    def dispersion(self, deviance: float, df: float) -> float:
        return deviance / df

    def target_units(
        self, y: Array, weights: Array, *, center: bool, scale: bool
    ) -> tuple[float, float]:
        values, shares = (to_numpy(part).astype(np.float64) for part in (y, weights))
        middle = weighted_median(values, shares) if center else 0.0
        spread = weighted_median(np.abs(values - middle), shares) / NORMAL_MAD
        if not scale:
            return middle, 1.0
        # Half of the values and more may be the same.
        return middle, spread or target_units(y, weights, center=center, scale=True)[1]

    def held_out_unit(self, data: Observations) -> float:
        return self.target_units(data.y, data.weights, center=True, scale=True)[1]

    def held_out(self, y: Array, score: Array, unit: float) -> Array:
        gap = (y - score) / unit
        return self.value(gap, namespace(gap).zeros_like(gap))


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """Value that half of the weight does not exceed."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, 0.5 * total[-1])])
