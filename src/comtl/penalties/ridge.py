"""Squared Frobenius norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Array, dot, namespace
from ..saving.registry import saved
from .penalty import Penalty


@saved
@dataclass(frozen=True)
class Ridge(Penalty):
    """Squared Frobenius norm.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties import Ridge
    >>> Ridge(0.5).value(np.ones((2, 2)))
    2.0
    """

    entrywise: ClassVar[bool] = True
    text: ClassVar[str] = "the squared Frobenius norm"
    spectral_power: ClassVar[float | None] = 2.0

    def value(self, factor: Array) -> float:
        return self.strength * dot(factor, factor)

    def whitening(self, factor: Array) -> Array | None:
        xp = namespace(factor)
        return xp.eye(factor.shape[1], dtype=factor.dtype) / self.strength**0.5
