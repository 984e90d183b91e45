r"""The learned relation between features (Σ) or between tasks (Ω), in low-rank form.

For a factor :math:`F = U\,\mathrm{diag}(d)\,V^\top` the minimiser of
:math:`\mathrm{tr}(F^\top Σ^{-1} F) + ε\,\mathrm{tr}\,Σ^{-1}` under :math:`\mathrm{tr}\,Σ = 1` is
:math:`Σ = (F F^\top + ε I)^{1/2} / τ`. It is a multiple of the identity plus rank ``K``, so
neither it nor its inverse is ever formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..arrays import TALL, Array, namespace, orthonormal
from ..saving.registry import formerly, saved


def _of_sparse_inverse(fields: dict[str, Any]) -> dict[str, Any]:
    roots = 1.0 / fields["values"]
    return {"basis": fields["basis"], "roots": roots, "floor": float(roots.min())}


@formerly("SparseRelation", _of_sparse_inverse)
@saved
@dataclass(frozen=True)
class Relation:
    r"""Positive definite matrix of trace one, :math:`(ρ I + U\,\mathrm{diag}(r - ρ)\,U^\top)/τ`.

    Parameters
    ----------
    basis : array of shape (n, k)
        ``U``, orthonormal columns.
    roots : array of shape (k,)
        ``r``, the square roots :math:`\sqrt{d^2 + ε}` along the basis.
    floor : float
        ``ρ``, the root :math:`\sqrt ε` outside the basis.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties.relations import Relation
    >>> relation = Relation.of_factor(np.array([[3.0], [4.0]]), epsilon=1e-12)
    >>> relation.toarray().round(2)
    array([[0.36, 0.48],
           [0.48, 0.64]])
    >>> (relation @ np.array([1.0, 0.0])).round(2)
    array([0.36, 0.48])
    """

    basis: Array
    roots: Array
    floor: float

    @classmethod
    def of_factor(cls, factor: Array, epsilon: float) -> Relation:
        """Return the relation that fits the rows of ``factor`` best."""
        xp = namespace(factor)
        rows, columns = factor.shape
        if rows < columns:
            # Squares will do where the smoothing is well above their rounding.
            squares, basis = xp.linalg.eigh(factor @ factor.T)
            if epsilon > 1e3 * float(xp.finfo(factor.dtype).eps) * float(squares[-1]):
                roots = xp.sqrt(xp.clip(squares, min=0.0) + epsilon)
                return cls(basis=basis, roots=roots, floor=float(epsilon) ** 0.5)
        if rows <= TALL:
            basis, d, _ = xp.linalg.svd(factor, full_matrices=False)
        else:
            basis, rest = orthonormal(factor)
            turn, d, _ = xp.linalg.svd(rest)
            basis = basis @ turn
        return cls(basis=basis, roots=xp.sqrt(d**2 + epsilon), floor=float(epsilon) ** 0.5)

    def resized(self, scale: float, epsilon: float) -> Relation:
        """Return the relation of the factor times ``scale``, at another smoothing."""
        xp = namespace(self.roots)
        squares = xp.clip(self.roots**2 - self.floor**2, min=0.0)
        roots = xp.sqrt(scale**2 * squares + epsilon)
        return Relation(basis=self.basis, roots=roots, floor=float(epsilon) ** 0.5)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return (self.basis.shape[0], self.basis.shape[0])

    @property
    def _outside(self) -> int:
        return self.basis.shape[0] - self.basis.shape[1]

    @property
    def trace(self) -> float:
        """``τ``, the trace before scaling to one."""
        return float(namespace(self.roots).sum(self.roots)) + self._outside * self.floor

    @property
    def inverse_trace(self) -> float:
        """Trace of the inverse."""
        inside = float(namespace(self.roots).sum(1.0 / self.roots))
        outside = self._outside / self.floor if self._outside else 0.0
        return self.trace * (inside + outside)

    @property
    def inverse_parts(self) -> tuple[float, Array]:
        """``(α, N)`` with inverse ``α I - N Nᵀ``."""
        xp = namespace(self.roots)
        alpha = self.trace / self.floor
        drop = xp.clip(alpha - self.trace / self.roots, min=0.0)
        return alpha, self.basis * xp.sqrt(drop)[None, :]

    def solve(self, right: Array) -> Array:
        """Product of the inverse with ``right`` of shape (n, ...)."""
        inside = self.basis.T @ right
        gain = 1.0 / self.roots - 1.0 / self.floor
        gain = gain if right.ndim == 1 else gain[:, None]
        return self.trace * (right / self.floor + self.basis @ (gain * inside))

    def __matmul__(self, right: Array) -> Array:
        inside = self.basis.T @ right
        gain = self.roots - self.floor
        gain = gain if right.ndim == 1 else gain[:, None]
        return (self.floor * right + self.basis @ (gain * inside)) / self.trace

    def toarray(self) -> Array:
        """Return the dense matrix, ``n × n``: for small ``n`` and for looking at."""
        xp = namespace(self.basis)
        return self @ xp.eye(self.basis.shape[0], dtype=self.basis.dtype)


def leading_square(factor: Array) -> float:
    """Largest singular value squared, from which smoothing takes its scale."""
    xp = namespace(factor)
    tall = factor.shape[0] >= factor.shape[1]
    gram = factor.T @ factor if tall else factor @ factor.T
    # A factor that an earlier fit has shrunk to nothing would leave no smoothing at all.
    least = float(xp.finfo(factor.dtype).smallest_normal) ** 0.5
    return max(float(xp.linalg.eigvalsh(gram)[-1]), least)
