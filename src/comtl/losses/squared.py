"""Squared error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Array, namespace
from ..rows.observations import Observations
from .links import ClassLink, ClippedLinear, Identity, Link
from .loss import Loss, target_units


@dataclass(frozen=True)
class Squared(Loss):
    r"""Squared error :math:`(y - s)^2`, as the paper has it (no one half).

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.losses import Squared
    >>> Squared().value(np.array([1.0]), np.array([3.0]))
    array([4.])
    """

    quadratic: ClassVar[bool] = True
    regression_link: ClassVar[Link | None] = Identity()
    classification_link: ClassVar[ClassLink | None] = ClippedLinear()
    text: ClassVar[str] = "the squared error, the paper's"

    def value(self, y: Array, score: Array) -> Array:
        return (y - score) ** 2

    def derivative(self, y: Array, score: Array) -> Array:
        return 2.0 * (score - y)

    def curvature(self, y: Array, score: Array) -> Array:
        return namespace(score).full_like(score, 2.0)

    def dispersion(self, deviance: float, df: float) -> float:
        return deviance / df

    def target_units(
        self, y: Array, weights: Array, *, center: bool, scale: bool
    ) -> tuple[float, float]:
        return target_units(y, weights, center=center, scale=scale)

    def held_out_unit(self, data: Observations) -> float:
        # Squares of the target may be out of range.
        return data.max_abs or 1.0

    def held_out(self, y: Array, score: Array, unit: float) -> Array:
        return ((y - score) / unit) ** 2
