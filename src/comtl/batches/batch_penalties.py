r"""The learned relation of one factor in many fits.

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
from ..arrays.algebra import along
from ..penalties import Penalty


@dataclass(frozen=True)
class Relations(Penalty):
    """Learned relations of many factors, each up to date with its factor."""

    epsilon: Array = None  # (B,), as the others
    lowest: Array = None
    converged: Array = None
    squares: Array = None  # squared singular values (B, K)
    turn: Array = None  # right singular vectors (B, K, K)
    rows: int = 0  # of a factor

    spectral_power: ClassVar[float | None] = 1.0

    def initialised(self, factor: Array, relative_epsilon: float) -> Relations:
        xp = namespace(factor)
        squares, turn = spectra(factor.mT @ factor)
        least = float(xp.finfo(factor.dtype).smallest_normal) ** 0.5
        scale = xp.clip(squares[:, -1], min=least)
        moving = xp.zeros(scale.shape, dtype=xp.bool)
        epsilon = relative_epsilon * scale
        rows = factor.shape[1]
        return Relations(self.strength, epsilon, 1e-12 * scale, moving, squares, turn, rows)

    def of(self, squares: Array, turn: Array) -> Relations:
        return replace(self, squares=squares, turn=turn)

    def scaled(self, scale: Array) -> Relations:
        return replace(self, squares=scale[:, None] ** 2 * self.squares)

    def annealed(self, factor: Array, shrink: float, floor: float) -> Relations:
        xp = namespace(self.squares)
        target = xp.maximum(floor * xp.max(self.squares, axis=1), self.lowest)
        lower = xp.minimum(self.epsilon, xp.maximum(shrink * self.epsilon, target))
        epsilon = xp.where(self.converged, self.epsilon, lower)
        return replace(self, epsilon=epsilon, converged=self.converged | (epsilon <= target))

    @property
    def is_annealed(self) -> Array:
        return self.converged

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

    def curvature(self, factor: Array) -> tuple[Array, Array]:
        roots, floor, trace = self._roots
        rate = 2.0 * self.strength * trace
        drop = rate[:, None] / (floor[:, None] * roots * (roots + floor[:, None]))
        # Symmetric roots, so that columns of zeros stay in their places.
        low = factor @ self._turned(namespace(factor).sqrt(drop))
        return along(rate / floor, 3), low

    def gradient(self, factor: Array) -> Array:
        roots, _, trace = self._roots
        return factor @ self._turned((2.0 * self.strength * trace)[:, None] / roots)

    def _turned(self, values: Array) -> Array:
        """Matrix with these eigenvalues in the factors' directions."""
        return (self.turn * values[:, None, :]) @ self.turn.mT

    @property
    def floor(self) -> Array:
        """What the smoothing adds whatever the factor."""
        return self.strength * self.epsilon * self.rows**2


def spectra(products: Array) -> tuple[Array, Array]:
    """Squared singular values, rising, and right singular vectors of factors ``Q`` from ``QᵀQ``."""
    xp = namespace(products)
    values, turn = xp.linalg.eigh(products)
    return xp.clip(values, min=0.0), turn
