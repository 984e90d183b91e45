r"""Penalties of one factor in many fits: the learned relation and the ridge.

A factor ``Q`` enters through :math:`Q^\top Q = V\,\mathrm{diag}(d^2)\,V^\top` alone. With
:math:`r = \sqrt{d^2 + ε}`, :math:`ρ = \sqrt ε` and the trace :math:`τ` of the roots, the penalty of
the best relation is :math:`τ^2`, and the relation's inverse is
:math:`τ (I/ρ - Q V\,\mathrm{diag}(1 / (ρ r (r + ρ)))\,V^\top Q^\top)`: nothing is divided by ``d``,
so that columns of zeros, which pad a factor to the width of the widest, stay zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from ..arrays import Array, namespace
from .pytrees import along


@dataclass(frozen=True)
class QuadraticModel:
    """Penalty about a factor: Hessian ``αI - NNᵀ`` on its rows, and gradient.

    Parameters
    ----------
    alpha : array of shape (B,)
        ``α``.
    low_rank : array of shape (B, n, K)
        ``N``.
    slope : array of shape (B, n, K)
        Gradient.
    """

    alpha: Array
    low_rank: Array
    slope: Array


@dataclass(frozen=True)
class Relations:
    """Learned relations of many factors, each up to date with its factor.

    Parameters
    ----------
    strength, epsilon, lowest, converged : arrays of shape (B,)
        As in :class:`~comtl.penalties.learned_relation.LearnedRelation`.
    squares, rotation : arrays of shapes (B, K) and (B, K, K)
        Squares of the factors' singular values, and their right singular vectors.
    rows : int
        Rows of a factor.
    """

    strength: Array
    epsilon: Array
    lowest: Array
    converged: Array
    squares: Array
    rotation: Array
    rows: int

    spectral_power: ClassVar[float] = 1.0
    homogeneity: ClassVar[float] = 2.0

    @classmethod
    def initialised(cls, strength: Array, factor: Array, relative_epsilon: float) -> Relations:
        """Return the penalties at starting factors, smoothed relative to their largest roots."""
        xp = namespace(factor)
        squares, turn = spectra(factor.mT @ factor)
        least = float(xp.finfo(factor.dtype).smallest_normal) ** 0.5
        scale = xp.clip(squares[:, -1], min=least)
        moving = xp.zeros(scale.shape, dtype=xp.bool)
        epsilon = relative_epsilon * scale
        return cls(strength, epsilon, 1e-12 * scale, moving, squares, turn, factor.shape[1])

    def of(self, squares: Array, turn: Array) -> Relations:
        """Return the relations of other factors, by their singular values and vectors."""
        return replace(self, squares=squares, rotation=turn)

    def scaled(self, scale: Array) -> Relations:
        """Return the relations of the factors times a number each."""
        return replace(self, squares=scale[:, None] ** 2 * self.squares)

    def annealed(self, shrink: float, floor: float) -> Relations:
        """Return the relations with their smoothing lowered, those not at rest."""
        xp = namespace(self.squares)
        target = xp.maximum(floor * xp.max(self.squares, axis=1), self.lowest)
        lower = xp.minimum(self.epsilon, xp.maximum(shrink * self.epsilon, target))
        epsilon = xp.where(self.converged, self.epsilon, lower)
        return replace(self, epsilon=epsilon, converged=self.converged | (epsilon <= target))

    @cached_property
    def _roots(self) -> tuple[Array, Array, Array]:
        """Roots ``r`` along the factors' directions, ``ρ`` beyond, and their trace ``τ``."""
        xp = namespace(self.squares)
        roots, floor = xp.sqrt(self.squares + self.epsilon[:, None]), xp.sqrt(self.epsilon)
        beyond = self.rows - self.squares.shape[1]
        return roots, floor, xp.sum(roots, axis=1) + beyond * floor

    def value(self, factor: Array) -> Array:
        """Penalty of each factor."""
        return self.strength * self._roots[2] ** 2

    def scale_derivative(self, factor: Array) -> Array:
        """Rate of the values as the factors are scaled up."""
        roots, _, trace = self._roots
        spread = namespace(roots).sum(self.squares / roots, axis=1)
        return 2.0 * self.strength * trace * spread

    def model(self, factor: Array) -> QuadraticModel:
        """Quadratic of the relations as they stand."""
        xp = namespace(factor)
        roots, floor, trace = self._roots
        rate = 2.0 * self.strength * trace
        drop = rate[:, None] / (floor[:, None] * roots * (roots + floor[:, None]))
        # Symmetric roots, so that columns of zeros stay in their places.
        low = factor @ self._turned(xp.sqrt(drop))
        slope = factor @ self._turned(rate[:, None] / roots)
        return QuadraticModel(rate / floor, low, slope)

    def _turned(self, values: Array) -> Array:
        """Matrix with these eigenvalues in the factors' directions."""
        return (self.rotation * values[:, None, :]) @ self.rotation.mT

    @property
    def is_annealed(self) -> Array:
        """Whether annealing is over."""
        return self.converged

    @property
    def floor(self) -> Array:
        """What the smoothing adds whatever the factor."""
        return self.strength * self.epsilon * self.rows**2


@dataclass(frozen=True)
class Ridges:
    """Squared Frobenius norms, of strengths (B,)."""

    strength: Array

    spectral_power: ClassVar[float] = 2.0
    homogeneity: ClassVar[float] = 2.0

    def value(self, factor: Array) -> Array:
        """Penalty of each factor."""
        return self.strength * namespace(factor).sum(factor**2, axis=(1, 2))

    def scale_derivative(self, factor: Array) -> Array:
        """Rate of the values as the factors are scaled up."""
        return 2.0 * self.value(factor)

    def scaled(self, scale: Array) -> Ridges:
        """Return the same: a ridge learns nothing."""
        return self

    def annealed(self, shrink: float, floor: float) -> Ridges:
        """Return the same: nothing is smoothed."""
        return self


def spectra(products: Array) -> tuple[Array, Array]:
    """Squared singular values, rising, and right singular vectors of factors ``Q`` from ``QᵀQ``."""
    xp = namespace(products)
    values, turn = xp.linalg.eigh(products)
    return xp.clip(values, min=0.0), turn


def scaled_by(factor: Array, scale: Array) -> Array:
    """Each factor times its number."""
    return along(scale, factor.ndim) * factor
