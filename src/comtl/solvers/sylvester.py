r"""The two-term generalised Sylvester equation :math:`C Q B + (αI - NN^\top) Q = E`.

``C`` comes with its eigenbasis (computed once for a data set), ``B`` is ``K × K`` and small.
In both bases every column is a diagonal plus a low-rank term, so one solve costs
:math:`O(P r K)` with ``r`` the columns of that basis and of ``N``. It is exact where all tasks
share their rows, and the preconditioner of conjugate gradients elsewhere. Where ``C`` has a
complete basis, leading axes may hold equations of one shape, solved in one batch.
"""

from ..arrays import Array, namespace
from ..arrays.algebra import block_matrix
from ..arrays.blocks import RowBlocks
from ..rows.design import Covariance


class TwoTermSylvester:
    """Factorised equation, ready to be solved for many right sides."""

    def __init__(self, covariance: Covariance, small: Array, alpha: float, low: Array) -> None:
        # B is small (K, K), or its diagonal; αI - NNᵀ with N = low (P, k) is positive definite.
        xp = namespace(small)
        self._rotation: Array | None = None
        values = small
        if small.ndim > 1:
            values, self._rotation = xp.linalg.eigh(small)
        values = xp.clip(values, min=0.0)
        if low.ndim == 2 and low.shape[1] >= low.shape[0]:
            covariance, alpha, low = _absorbed(covariance, alpha, low)
        self._basis, self._low = covariance.basis, low
        self._complete = covariance.basis.shape[-2] == covariance.basis.shape[-1]
        if self._complete:
            self._gain = 1.0 / (covariance.values[..., :, None] * values[..., None, :] + alpha)
            if low.shape[-1]:
                # Columns of N projected through the base inverse of each column: (K, P, k).
                projected = (self._basis.mT @ low)[..., None, :, :]
                lifted = self._basis[..., None, :, :] @ (self._gain.mT[..., None] * projected)
                inner = low.mT[..., None, :, :] @ lifted
                capacitance = xp.eye(low.shape[-1], dtype=low.dtype) - inner
                # One inverse for all applications within a conjugate gradient run.
                self._lifted = lifted @ xp.linalg.inv(capacitance)
            return
        # A side without columns has no blocks to apply.
        self._sides = [RowBlocks(side) for side in (self._basis, low) if side.shape[1]]
        # A multiple δ of the identity plus U M Uᵀ with U = [V, N], whose inverse is
        # (I - U M (δI + UᵀU M)⁻¹ Uᵀ) / δ: nothing larger than U is kept.
        self._outside = covariance.rest * values + alpha
        cross = self._basis.T @ low
        inside = xp.eye(self._basis.shape[1], dtype=low.dtype)
        gram = block_matrix([[inside, cross], [cross.T, low.T @ low]])
        # Tasks with as many rows each, and a column of their own, have all values in common.
        distinct, place = xp.unique_inverse(values)
        leading = (covariance.values - covariance.rest)[None, :] * distinct[:, None]
        rest = -xp.ones((distinct.shape[0], low.shape[1]), dtype=low.dtype)
        scale = xp.concat([leading, rest], axis=1)
        eye = xp.eye(gram.shape[0], dtype=low.dtype)
        outside = (covariance.rest * distinct + alpha)[:, None, None]
        system = outside * eye + gram[None, :, :] * scale[:, None, :]
        self._small = xp.take(scale[:, :, None] * xp.linalg.inv(system), place, axis=0)

    def __call__(self, right: Array) -> Array:
        if self._rotation is None:
            rotated = namespace(right).asarray(right, copy=True)
        else:
            rotated = right @ self._rotation
        solved = self._by_basis(rotated) if self._complete else self._by_sides(rotated)
        return solved if self._rotation is None else solved @ self._rotation.mT

    def _by_basis(self, rotated: Array) -> Array:
        solved = self._basis @ (self._gain * (self._basis.mT @ rotated))
        if self._low.shape[-1]:
            inner = (self._low.mT @ solved).mT[..., None]
            solved += (self._lifted @ inner)[..., 0].mT
        return solved

    def _by_sides(self, rotated: Array) -> Array:
        """Solve in place where the basis is not complete."""
        xp = namespace(rotated)
        both = xp.concat([side.backward(rotated) for side in self._sides], axis=0)
        coefficients = (self._small @ both.T[:, :, None])[:, :, 0].T
        start = 0
        for side in self._sides:
            stop = start + side.shape[1]
            rotated -= side.forward(coefficients[start:stop, :])
            start = stop
        rotated /= self._outside[None, :]
        return rotated


def _absorbed(covariance: Covariance, alpha: float, low: Array) -> tuple[Covariance, float, Array]:
    """The equation in a basis that diagonalises ``C`` and makes ``αI - NNᵀ`` the identity."""
    xp = namespace(low)
    eye = xp.eye(low.shape[0], dtype=low.dtype)
    values, basis = xp.linalg.eigh(alpha * eye - low @ low.T)
    # Definite by promise, up to rounding.
    half = basis / xp.sqrt(xp.clip(values, min=float(xp.finfo(low.dtype).eps) * alpha))[None, :]
    projected = covariance.basis.T @ half
    inner = projected.T @ ((covariance.values - covariance.rest)[:, None] * projected)
    values, rotation = xp.linalg.eigh(inner + covariance.rest * (half.T @ half))
    return Covariance(half @ rotation, xp.clip(values, min=0.0), 0.0), 1.0, low[:, :0]
