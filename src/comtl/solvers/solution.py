"""What every solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..arrays import Array


@dataclass(frozen=True)
class Solution:
    """Result of a solver, its name, whether it met the tolerance, and iterations and the like."""

    value: Array
    solver: str
    converged: bool = True
    stats: dict[str, float] = field(default_factory=dict)
