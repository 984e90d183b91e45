"""Elastic net."""

from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Array, dot, namespace, positive
from ..saving.registry import saved
from .penalty import Penalty


@saved
@dataclass(frozen=True)
class ElasticNet(Penalty):
    r"""Mean of ridge and L1, :math:`\tfrac12 \|Q\|_F^2 + \tfrac12 \sum |Q|`, for sparse factors.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties import ElasticNet
    >>> ElasticNet(2.0).value(np.array([[-3.0, 0.5]]))
    12.75
    """

    smooth: ClassVar[bool] = False
    smooth_curvature: ClassVar[float] = 1.0
    entrywise: ClassVar[bool] = True
    text: ClassVar[str] = "the mean of ridge and l1"

    def value(self, factor: Array) -> float:
        return 0.5 * self.strength * dot(factor, factor) + self.proximal_value(factor)

    def proximal_value(self, factor: Array) -> float:
        xp = namespace(factor)
        return 0.5 * self.strength * float(xp.sum(xp.abs(factor)))

    def scale_derivative(self, factor: Array) -> float:
        return self.strength * dot(factor, factor) + self.proximal_value(factor)

    def prox(self, factor: Array, step: Array | float) -> Array:
        xp = namespace(factor)
        return xp.sign(factor) * positive(xp.abs(factor) - 0.5 * step * self.strength)
