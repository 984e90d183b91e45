"""Penalties that bound each entry of a factor by itself, or not at all."""

from dataclasses import dataclass
from typing import ClassVar, Self

from ..arrays import Array, dot, namespace, positive
from ..arrays.algebra import matrix_dot
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
        return self.strength * matrix_dot(factor, factor)

    def whitening(self, factor: Array) -> Array | None:
        xp = namespace(factor)
        return xp.eye(factor.shape[1], dtype=factor.dtype) / self.strength**0.5


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
    smooth_curvature: ClassVar[float] = 0.0
    entrywise: ClassVar[bool] = True
    text: ClassVar[str] = "the sum of absolute values"

    def value(self, factor: Array) -> float:
        xp = namespace(factor)
        return self.strength * float(xp.sum(xp.abs(factor)))

    def proximal_value(self, factor: Array) -> float:
        return self.value(factor)

    def prox(self, factor: Array, step: Array | float) -> Array:
        xp = namespace(factor)
        return xp.sign(factor) * positive(xp.abs(factor) - step * self.strength)


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


@saved
@dataclass(frozen=True)
class Free(Penalty):
    """No penalty at all: the paper's core ``S``."""

    strength: float = 0.0

    homogeneity: ClassVar[float | None] = 0.0
    entrywise: ClassVar[bool] = True
    text: ClassVar[str] = (
        "no penalty, as in the paper, whose fit ignores the other penalties in the limit and is "
        "saved by early stopping only"
    )

    @classmethod
    def of_strength(cls, strength: float) -> Self:
        return cls()

    def value(self, factor: Array) -> float:
        return 0.0
