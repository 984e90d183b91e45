"""Hard clusters: each row of a factor belongs to one column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Array, namespace, to_numpy
from ..saving.registry import saved
from .penalty import Constraint


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
