"""Ridge on factors without negative entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Array, dot, positive
from ..saving.registry import saved
from .penalty import Penalty


@saved
@dataclass(frozen=True)
class NonNegative(Penalty):
    """Squared Frobenius norm on factors without negative entries.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties import NonNegative
    >>> NonNegative(1.0).prox(np.array([[-3.0, 0.5]]), step=1.0)
    array([[0. , 0.5]])
    """

    smooth: ClassVar[bool] = False
    signed: ClassVar[bool] = False
    entrywise: ClassVar[bool] = True
    text: ClassVar[str] = "ridge on entries that are not negative"

    def value(self, factor: Array) -> float:
        return self.strength * dot(factor, factor)

    def prox(self, factor: Array, step: Array | float) -> Array:
        return positive(factor)
