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


@dataclass(frozen=True)
class QuadraticModel:
    """Penalty about a factor: Hessian ``αI - NNᵀ`` on its rows, and gradient."""

    alpha: Array
    low_rank: Array
    slope: Array


@dataclass(frozen=True)
class Relations:
    """Learned relations of many factors, each up to date with its factor."""

    strength: Array
    epsilon: Array  # (B,), as the others
    lowest: Array
    is_annealed: Array
    squares: Array  # squared singular values (B, K)
    rotation: Array  # right singular vectors (B, K, K)
    rows: int  # of a factor

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
        return replace(self, squares=squares, rotation=turn)

    def scaled(self, scale: Array) -> Relations:
        return replace(self, squares=scale[:, None] ** 2 * self.squares)

    def annealed(self, shrink: float, floor: float) -> Relations:
        xp = namespace(self.squares)
        target = xp.maximum(floor * xp.max(self.squares, axis=1), self.lowest)
        lower = xp.minimum(self.epsilon, xp.maximum(shrink * self.epsilon, target))
        epsilon = xp.where(self.is_annealed, self.epsilon, lower)
        return replace(self, epsilon=epsilon, is_annealed=self.is_annealed | (epsilon <= target))

    @cached_property
    def _roots(self) -> tuple[Array, Array, Array]:
        """Roots ``r`` along the factors' directions, ``ρ`` beyond, and their trace ``τ``."""
        xp = namespace(self.squares)
        roots, floor = xp.sqrt(self.squares + self.epsilon[:, None]), xp.sqrt(self.epsilon)
        beyond = self.rows - self.squares.shape[1]
        return roots, floor, xp.sum(roots, axis=1) + beyond * floor

    def value(self, factor: Array) -> Array:
        return self.strength * self._roots[2] ** 2

    def scale_derivative(self, factor: Array) -> Array:
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
        return self.strength * namespace(factor).sum(factor**2, axis=(1, 2))

    def scale_derivative(self, factor: Array) -> Array:
        return 2.0 * self.value(factor)

    def scaled(self, scale: Array) -> Ridges:
        return self

    def annealed(self, shrink: float, floor: float) -> Ridges:
        return self


def spectra(products: Array) -> tuple[Array, Array]:
    """Squared singular values, rising, and right singular vectors of factors ``Q`` from ``QᵀQ``."""
    xp = namespace(products)
    values, turn = xp.linalg.eigh(products)
    return xp.clip(values, min=0.0), turn
