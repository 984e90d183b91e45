"""Sum of absolute values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Array, namespace, positive
from ..saving.registry import saved
from .penalty import Penalty


@saved
@dataclass(frozen=True)
class L1(Penalty):
    """Sum of absolute values, for sparse factors.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties import L1
    >>> L1(1.0).prox(np.array([[-3.0, 0.5]]), step=1.0)
    array([[-2.,  0.]])
    """

    smooth: ClassVar[bool] = False
    homogeneity: ClassVar[float | None] = 1.0
    entrywise: ClassVar[bool] = True
    text: ClassVar[str] = "the sum of absolute values"

    def value(self, factor: Array) -> float:
        xp = namespace(factor)
        return self.strength * float(xp.sum(xp.abs(factor)))

    def curvature(self, factor: Array) -> tuple[float, Array]:
        return 0.0, super().curvature(factor)[1]

    def gradient(self, factor: Array) -> Array:
        return 0.0 * factor

    def proximal_value(self, factor: Array) -> float:
        return self.value(factor)

    def prox(self, factor: Array, step: Array | float) -> Array:
        xp = namespace(factor)
        return xp.sign(factor) * positive(xp.abs(factor) - step * self.strength)
