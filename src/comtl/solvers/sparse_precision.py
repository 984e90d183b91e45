r"""The sparse precision of a relation.

.. math:: \min_{Θ > 0} \mathrm{tr}(AΘ) + \mathrm{tr}\,Θ^{-1} + ρ\|Θ\|_{1,off}

The graphical lasso with the trace of the inverse in the place of its log determinant. Without ρ
the answer is :math:`A^{-1/2}`, the paper's relation; as in the graphical lasso, rows ``i`` and
``j`` that no chain of entries :math:`|A_{ij}| > ρ` joins have a zero between them. Solved by
alternating directions (ADMM): one eigendecomposition an iteration.
"""

from __future__ import annotations

from ..arrays import Array, dot, namespace, norm
from .base import Solution

_NEWTON = 8
"""Steps of a scalar equation from a bound above; they double the digits."""
_RELAX = 1.6
"""Over-relaxation: each step goes this much of the way to the dense iterate."""


def shrunk_outside(matrix: Array, step: float) -> Array:
    """Soft threshold off the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.solvers.sparse_precision import shrunk_outside
    >>> shrunk_outside(np.array([[3.0, -2.0], [0.5, 3.0]]), 1.0) + 0.0
    array([[ 3., -1.],
           [ 0.,  3.]])
    """
    xp = namespace(matrix)
    small = xp.sign(matrix) * xp.clip(xp.abs(matrix) - step, min=0.0)
    return xp.where(xp.eye(matrix.shape[0], dtype=matrix.dtype) > 0.0, matrix, small)


def links(matrix: Array) -> float:
    """Sum of absolute values off the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.solvers.sparse_precision import links
    >>> links(np.array([[3.0, -2.0], [0.5, 3.0]]))
    2.5
    """
    xp = namespace(matrix)
    sizes = xp.abs(matrix)
    return float(xp.sum(sizes)) - float(xp.linalg.trace(sizes))


def _positive_roots(middle: Array, stiffness: float) -> Array:
    """Positive solution of ``x³ + m x = η`` for each ``m``."""
    xp = namespace(middle)
    # Bounds above the root, where Newton's method on a convex function falls steadily.
    x = xp.sqrt(xp.clip(-middle, min=0.0)) + stiffness ** (1.0 / 3.0)
    x = xp.where(middle > 0.0, xp.minimum(x, stiffness / xp.where(middle > 0.0, middle, 1.0)), x)
    for _ in range(_NEWTON):
        x = (2.0 * x**3 + stiffness) / (3.0 * x**2 + middle)
    return x


def sparse_precision(
    matrix: Array, rho: float, start: Array, *, tol: float = 1e-4, max_iter: int = 200
) -> Solution:
    """Minimise from a positive definite ``start``; zeros of the answer are exact.

    Stopped early, the answer need not be positive definite: look before using it.

    Parameters
    ----------
    matrix : array of shape (n, n)
        ``A``, positive definite.
    rho : float
        Penalty of the entries off the diagonal.
    start : array of shape (n, n)
        First guess.
    tol : float
        Bound of both residuals, relative to the sizes of what they compare.
    max_iter : int
        Most iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.solvers.sparse_precision import sparse_precision
    >>> sparse_precision(np.array([[4.0, 0.1], [0.1, 1.0]]), 0.2, np.eye(2)).value.round(3)
    array([[0.5, 0. ],
           [0. , 1. ]])
    """
    xp = namespace(matrix)
    values, basis = xp.linalg.eigh(start)
    square, turn = xp.linalg.eigh(matrix)
    square = xp.clip(square, min=float(xp.finfo(matrix.dtype).eps) * float(square[-1]))
    root = (turn / xp.sqrt(square)[None, :]) @ turn.T
    # With hardly any ρ the square root is all but the answer.
    costs = [
        dot(matrix, guess) + rho * links(guess) + float(xp.sum(1.0 / theta))
        for guess, theta in ((start, values), (root, square**-0.5))
    ]
    if costs[1] < costs[0]:
        start, values, basis = root, square**-0.5, turn
    # The curvature of tr Θ⁻¹ goes with θ⁻³; its middle value suits both iterates.
    sparse, stiffness = start, float(xp.exp(-3.0 * xp.mean(xp.log(values))))
    # At the answer Θ⁻² - A is a subgradient of ρ|Θ|: what the guess says of it, made feasible.
    slope = (basis / values[None, :] ** 2) @ basis.T - matrix
    slope = slope - shrunk_outside(slope, rho)
    iterations, converged = 0, False
    while iterations < max_iter and not converged:
        iterations += 1
        middle, basis = xp.linalg.eigh(stiffness * sparse - slope - matrix)
        # A - Θ⁻² + η(Θ - Z) + slope = 0 in the eigenbasis, for the roots x = 1/θ.
        half = basis / xp.sqrt(_positive_roots(middle, stiffness))[None, :]
        full = half @ half.T
        beyond = _RELAX * full + (1.0 - _RELAX) * sparse
        before, sparse = sparse, shrunk_outside(beyond + slope / stiffness, rho / stiffness)
        slope = slope + stiffness * (beyond - sparse)
        apart, moved = norm(full - sparse), stiffness * norm(sparse - before)
        bound = tol * max(norm(full), norm(sparse)), tol * max(norm(slope), norm(matrix))
        converged = apart <= bound[0] and moved <= bound[1]
        # Residuals that stay in step with each other fall fastest.
        ratio = (apart / bound[0]) / max(moved / bound[1], 1e-300)
        if iterations % 5 == 0 and not 0.2 < ratio < 5.0:
            stiffness *= min(max(ratio**0.5, 0.2), 5.0)
    # Rounding may leave one of a pair of entries at zero; zeros come with either sign.
    sparse = xp.where(sparse.T == 0.0, sparse.T, 0.5 * (sparse + sparse.T))
    return Solution(sparse + 0.0, "admm", converged, {"iterations": iterations})
