"""Logistic loss."""

from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Array, namespace
from .links import ClassLink, Logit, sigmoid
from .loss import Loss


@dataclass(frozen=True)
class Logistic(Loss):
    r"""Negative log-likelihood :math:`\log(1 + e^{-y s})` of a label ``y`` of -1 or +1.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.losses import Logistic
    >>> Logistic().value(np.array([1.0]), np.array([0.0])).round(4)
    array([0.6931])
    """

    classification_link: ClassVar[ClassLink | None] = Logit()
    text: ClassVar[str] = "the negative log-likelihood"

    def value(self, y: Array, score: Array) -> Array:
        xp = namespace(score)
        return xp.logaddexp(xp.zeros_like(score), -y * score)

    def derivative(self, y: Array, score: Array) -> Array:
        return -y * sigmoid(-y * score)

    def curvature(self, y: Array, score: Array) -> Array:
        return sigmoid(score) * sigmoid(-score)

    def dispersion(self, deviance: float, df: float) -> float:
        return 1.0
