"""Linear and proximal solvers of the block steps, one a file, and what all of them return."""

from dataclasses import dataclass

from ..arrays import Array


@dataclass(frozen=True)
class Solution:
    """Result of a solver, its name, whether it met the tolerance, and after how many iterations."""

    value: Array
    solver: str
    converged: bool = True
    iterations: int = 0
