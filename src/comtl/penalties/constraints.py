"""Constraints: what the rows of a factor must be, at no cost where they are."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from ..arrays import Array, namespace, project_simplex, to_numpy
from ..saving.registry import saved
from .penalty import Penalty


@dataclass(frozen=True)
class Constraint(Penalty):
    """Abstract bound on the rows of a factor that costs nothing where it is met."""

    strength: float = 0.0

    smooth: ClassVar[bool] = False
    signed: ClassVar[bool] = False
    homogeneity: ClassVar[float | None] = None
    smooth_curvature: ClassVar[float] = 0.0

    @classmethod
    def of_strength(cls, strength: float) -> Self:
        return cls()

    def value(self, factor: Array) -> float:
        return 0.0


@saved
@dataclass(frozen=True)
class Simplex(Constraint):
    """Rows are shares: not negative, summing to one. ``strength`` has no part in it.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties import Simplex
    >>> Simplex().prox(np.array([[2.0, 0.0], [0.6, 0.6]]), step=1.0)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """

    text: ClassVar[str] = "rows are shares (no λ)"

    def prox(self, factor: Array, step: Array | float) -> Array:
        return project_simplex(factor)


@saved
@dataclass(frozen=True)
class Membership(Constraint):
    """Rows have one entry of one, all others zero. ``strength`` has no part in it."""

    discrete: ClassVar[bool] = True
    text: ClassVar[str] = (
        "each row belongs to one column and moves where the loss of the data falls (TriFactor "
        "only, no λ)"
    )

    def prox(self, factor: Array, step: Array | float) -> Array:
        return indicators(labels_of(factor), factor)


def labels_of(factor: Array) -> np.ndarray:
    """Column of the largest entry of each row."""
    return np.array(to_numpy(namespace(factor).argmax(factor, axis=1)))


def indicators(labels: np.ndarray, like: Array) -> Array:
    """Memberships of given labels; ``like`` gives columns, namespace and type."""
    xp = namespace(like)
    return xp.take(xp.eye(like.shape[1], dtype=like.dtype), xp.asarray(labels), axis=0)
