"""What every solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..arrays import Array


@dataclass(frozen=True)
class Solution:
    """Result of a solver.

    Parameters
    ----------
    value : array
        The unknowns.
    solver : str
        Name of the solver that ran.
    converged : bool
        Whether the tolerance was met.
    stats : dict
        Iterations, residuals and the like.
    """

    value: Array
    solver: str
    converged: bool = True
    stats: dict[str, float] = field(default_factory=dict)
