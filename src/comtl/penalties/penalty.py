r"""What keeps a factor in bounds: one frozen object for each factor of a model.

A penalty has a smooth part with constant Hessian :math:`αI - NN^\top` acting on the rows of the
factor, its columns turned where the penalty says so, and, where ``smooth`` is false, a proximal
step for the rest. Two exponents say how it behaves under the moves that leave ``W`` alone:
``homogeneity`` under scaling of the factor, ``spectral_power`` under the split of ``W``'s singular
values (1: a nuclear norm, 2: a Frobenius norm, None: not invariant under rotation). ``signed`` says
that entries may be negative, ``discrete`` that rows take one of few values, so that steps are moves
between these, ``entrywise`` that each entry is bounded by itself, as in a core. ``text`` says in
the reference what it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Self

from ..arrays import Array, namespace
from ..arrays.algebra import along
from .relations import Relation, leading_square

LEAST = 1e-10
"""A penalty of zero is taken as this much, so that every step stays well posed."""


@dataclass(frozen=True)
class Penalty(ABC):
    """Penalty ``strength · p(Q)`` on a factor ``Q``, one row for each feature or task.

    In a batch of fits strengths and factors have a leading axis.
    """

    strength: float

    smooth: ClassVar[bool] = True
    signed: ClassVar[bool] = True
    discrete: ClassVar[bool] = False
    homogeneity: ClassVar[float | None] = 2.0
    spectral_power: ClassVar[float | None] = None
    smooth_curvature: ClassVar[float] = 2.0  # of the smooth part, over the strength
    entrywise: ClassVar[bool] = False
    text: ClassVar[str] = ""

    @classmethod
    def of_strength(cls, strength: float) -> Self:
        """Return the penalty as its public name stands for it."""
        return cls(max(float(strength), LEAST))

    @abstractmethod
    def value(self, factor: Array) -> float:
        """Penalty of a feasible factor."""

    def curvature(self, factor: Array) -> tuple[float, Array]:
        """Return ``(α, N)`` of the smooth part's Hessian; ``factor`` gives size and namespace."""
        xp = namespace(factor)
        alpha = self.smooth_curvature * along(self.strength, factor.ndim)
        return alpha, xp.zeros((*factor.shape[:-1], 0), dtype=factor.dtype)

    def rotation(self, factor: Array) -> Array | None:
        """``B`` such that the Hessian acts on ``Z`` of a step ``Z Bᵀ``; None where it is one."""
        return None

    def gradient(self, factor: Array) -> Array:
        """Gradient of the smooth part."""
        return self.smooth_curvature * along(self.strength, factor.ndim) * factor

    def prox(self, factor: Array, step: Array | float) -> Array:
        """Proximal step of the part that is not smooth; ``step`` is a length, or one a row."""
        return factor

    def proximal_value(self, factor: Array) -> float:
        """Value of that part at a feasible factor."""
        return 0.0

    def initialised(self, factor: Array, relative_epsilon: float) -> Penalty:
        """Return the penalty at the start of a fit, any smoothing relative to the factor."""
        return self

    def updated(self, factor: Array) -> Penalty:
        """Return the penalty with what it learns from the factor brought up to date."""
        return self

    def scaled(self, scale: float) -> Penalty:
        """Return the penalty brought up to date with its factor times ``scale``."""
        return self

    def scale_derivative(self, factor: Array) -> float:
        """Rate of the value as the factor is scaled up: what the balance step balances."""
        return (self.homogeneity or 0.0) * self.value(factor)

    def annealed(self, factor: Array, shrink: float, floor: float) -> Penalty:
        """Return the penalty with its smoothing lowered by ``shrink``, not below ``floor``."""
        return self

    @property
    def is_annealed(self) -> bool:
        """Whether annealing is over."""
        return True

    @property
    def floor(self) -> float:
        """Value of the best factor by itself, zero: a constant of the objective at rest."""
        return 0.0

    def whitening(self, factor: Array) -> Array | None:
        """``L`` such that a new row ``L h`` of the factor costs ``|h|²``; None where none does."""
        return None

    def relation_of(self, factor: Array, relative_epsilon: float) -> Relation:
        """Return the relation between the factor's rows, learned or implied."""
        return Relation.of_factor(factor, relative_epsilon * leading_square(factor))


def rotation_invariant(penalties: Iterable[Penalty]) -> bool:
    """Whether penalties see the singular values of their factors only, so that factors may turn."""
    return all(penalty.spectral_power is not None for penalty in penalties)
