"""No penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from ..arrays import Array
from ..saving.registry import saved
from .penalty import Penalty


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
