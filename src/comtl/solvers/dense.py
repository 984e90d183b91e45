"""Direct solution of a small symmetric system that may be singular."""

from __future__ import annotations

from ..arrays import Array, namespace
from .solution import Solution


def solve_symmetric(matrix: Array, right: Array, *, floor: float = 0.0) -> Solution:
    """Return the shortest solution of a positive semidefinite system.

    Directions whose eigenvalue is lost in rounding are left out. ``floor`` is a known lower bound
    of the eigenvalues; where it rules such directions out, the cheaper plain solution serves.
    """
    xp = namespace(matrix)
    size, eps = matrix.shape[0], float(xp.finfo(matrix.dtype).eps)
    if floor > eps**0.5 * abs(float(xp.linalg.trace(matrix))):
        return Solution(xp.linalg.solve(matrix, right), "dense", True, {"rank": size})
    values, basis = xp.linalg.eigh(0.5 * (matrix + matrix.T))
    kept = values > max(float(values[-1]) * size * eps, 0.0)
    safe = xp.where(kept, values, xp.ones_like(values))
    inverse = xp.where(kept, 1.0 / safe, xp.zeros_like(values))
    rank = int(xp.sum(xp.astype(kept, xp.int64)))
    return Solution(basis @ (inverse * (basis.T @ right)), "dense", True, {"rank": rank})
