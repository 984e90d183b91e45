"""Rows that are shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Array, project_simplex
from ..saving.registry import saved
from .penalty import Constraint


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
