"""Direct solution of a small symmetric system that may be singular."""

from __future__ import annotations

from ..arrays import Array, namespace
from .base import Solution


def solve_symmetric(matrix: Array, right: Array) -> Solution:
    """Return the shortest solution of a positive semidefinite system.

    Directions whose eigenvalue is lost in rounding are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.solvers.dense import solve_symmetric
    >>> solve_symmetric(np.array([[2.0, 0.0], [0.0, 0.0]]), np.array([4.0, 0.0])).value
    array([2., 0.])
    """
    xp = namespace(matrix)
    values, basis = xp.linalg.eigh(0.5 * (matrix + matrix.T))
    limit = float(values[-1]) * matrix.shape[0] * xp.finfo(matrix.dtype).eps
    kept = values > max(limit, 0.0)
    safe = xp.where(kept, values, xp.ones_like(values))
    inverse = xp.where(kept, 1.0 / safe, xp.zeros_like(values))
    rank = int(xp.sum(xp.astype(kept, xp.int64)))
    return Solution(basis @ (inverse * (basis.T @ right)), "dense", True, {"rank": rank})
