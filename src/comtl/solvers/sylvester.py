r"""The two-term generalised Sylvester equation :math:`C Q B + (αI - NN^\top) Q = E`.

``C`` comes with its eigenbasis (computed once for a data set), ``B`` is ``K × K`` and small.
In both bases every column is a diagonal plus a low-rank term, so one solve costs
:math:`O(P r K + P K^3)`. It is exact where all tasks share their rows, and the preconditioner
of conjugate gradients elsewhere.
"""

from __future__ import annotations

from ..arrays import Array, namespace
from ..design import Covariance
from .base import Solution


class TwoTermSylvester:
    """Factorised equation, ready to be solved for many right sides.

    Parameters
    ----------
    covariance : Covariance
        ``C`` (P × P).
    small : array of shape (K, K)
        ``B``, symmetric positive semidefinite.
    alpha : float
        Multiple of the identity, positive.
    low : array of shape (P, k)
        ``N``; ``αI - NNᵀ`` must be positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.design import Covariance
    >>> from comtl.solvers.sylvester import TwoTermSylvester
    >>> C = Covariance(np.eye(2), np.array([1.0, 3.0]), 0.0)
    >>> equation = TwoTermSylvester(C, np.array([[1.0]]), alpha=1.0, low=np.zeros((2, 0)))
    >>> equation.solve(np.array([[2.0], [4.0]])).value
    array([[1.],
           [1.]])
    """

    def __init__(self, covariance: Covariance, small: Array, alpha: float, low: Array) -> None:
        xp = namespace(small)
        values, self._turn = xp.linalg.eigh(small)
        values = xp.clip(values, min=0.0)
        self._basis = covariance.basis
        inside = covariance.values[:, None] * values[None, :] + alpha
        self._outside = covariance.rest * values + alpha
        self._complete = covariance.basis.shape[0] == covariance.basis.shape[1]
        self._gain = 1.0 / inside - (0.0 if self._complete else 1.0 / self._outside[None, :])
        self._low = low
        if low.shape[1]:
            # Columns of N seen through the base inverse of each column: (K, P, k).
            copies = small.shape[0]
            turned = self._basis.T @ low
            seen = self._gain.T[:, :, None] * turned[None, :, :]
            lifted = self._basis @ seen
            if not self._complete:
                lifted = lifted + low[None, :, :] / self._outside[:, None, None]
            eye = xp.eye(low.shape[1], dtype=low.dtype)
            capacitance = xp.broadcast_to(eye, (copies, *eye.shape)) - low.T @ lifted
            # One inverse serves every application within a conjugate gradient run.
            self._lifted = lifted @ xp.linalg.inv(capacitance)

    def _base(self, right: Array) -> Array:
        """Solve without the low-rank term, in the basis of ``B``."""
        solved = self._basis @ (self._gain * (self._basis.T @ right))
        return solved if self._complete else solved + right / self._outside[None, :]

    def __call__(self, right: Array) -> Array:
        turned = right @ self._turn
        solved = self._base(turned)
        if self._low.shape[1]:
            inner = (self._low.T @ solved).T[:, :, None]
            solved = solved + (self._lifted @ inner)[:, :, 0].T
        return solved @ self._turn.T

    def solve(self, right: Array) -> Solution:
        """Return the exact solution for one right side."""
        return Solution(self(right), "sylvester")
