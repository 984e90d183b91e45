r"""What keeps a factor in bounds: one frozen object for each factor of a model.

A penalty has a smooth part with constant Hessian :math:`αI - NN^\top` acting on the rows of the
factor, its columns turned where the penalty says so, and, where ``smooth`` is false, a proximal
step for the rest. Two exponents say how it
behaves under the moves that leave ``W`` alone: ``homogeneity`` under scaling of the factor,
``spectral_power`` under the split of ``W``'s singular values (1: a nuclear norm, 2: a Frobenius
norm, None: not invariant under rotation). ``signed`` says that entries may be negative,
``discrete`` that rows take one of few values, so that steps are moves between these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Array, dot, namespace, positive
from ..saving.registry import saved
from .relations import Relation, leading_square


@dataclass(frozen=True)
class Penalty(ABC):
    """Penalty ``strength · p(Q)`` on a factor ``Q``, one row for each feature or task."""

    strength: float

    smooth: ClassVar[bool] = True
    signed: ClassVar[bool] = True
    discrete: ClassVar[bool] = False
    homogeneity: ClassVar[float | None] = 2.0
    spectral_power: ClassVar[float | None] = None

    @abstractmethod
    def value(self, factor: Array) -> float:
        """Penalty of a feasible factor."""

    def curvature(self, factor: Array) -> tuple[float, Array]:
        """Return ``(α, N)`` of the smooth part's Hessian; ``factor`` gives size and namespace."""
        xp = namespace(factor)
        return 2.0 * self.strength, xp.zeros((factor.shape[0], 0), dtype=factor.dtype)

    def rotation(self, factor: Array) -> Array | None:
        """``B`` such that the Hessian acts on ``Z`` of a step ``Z Bᵀ``; None where it is one."""
        return None

    def gradient(self, factor: Array) -> Array:
        """Gradient of the smooth part."""
        return 2.0 * self.strength * factor

    def prox(self, factor: Array, step: Array | float) -> Array:
        """Proximal step of the part that is not smooth; ``step`` is a length, or one a row."""
        return factor

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


@saved
@dataclass(frozen=True)
class Ridge(Penalty):
    """Squared Frobenius norm.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties.factor_penalties import Ridge
    >>> Ridge(0.5).value(np.ones((2, 2)))
    2.0
    """

    spectral_power: ClassVar[float | None] = 2.0

    def value(self, factor: Array) -> float:
        return self.strength * dot(factor, factor)

    def whitening(self, factor: Array) -> Array | None:
        xp = namespace(factor)
        return xp.eye(factor.shape[1], dtype=factor.dtype) / self.strength**0.5


@saved
@dataclass(frozen=True)
class Free(Penalty):
    """No penalty at all: the paper's core ``S``."""

    strength: float = 0.0

    homogeneity: ClassVar[float | None] = 0.0

    def value(self, factor: Array) -> float:
        return 0.0


@saved
@dataclass(frozen=True)
class L1(Penalty):
    """Sum of absolute values, for sparse factors.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties.factor_penalties import L1
    >>> L1(1.0).prox(np.array([[-3.0, 0.5]]), step=1.0)
    array([[-2.,  0.]])
    """

    smooth: ClassVar[bool] = False
    homogeneity: ClassVar[float | None] = 1.0

    def value(self, factor: Array) -> float:
        xp = namespace(factor)
        return self.strength * float(xp.sum(xp.abs(factor)))

    def curvature(self, factor: Array) -> tuple[float, Array]:
        return 0.0, super().curvature(factor)[1]

    def gradient(self, factor: Array) -> Array:
        return 0.0 * factor

    def prox(self, factor: Array, step: Array | float) -> Array:
        xp = namespace(factor)
        return xp.sign(factor) * positive(xp.abs(factor) - step * self.strength)


@saved
@dataclass(frozen=True)
class NonNegative(Penalty):
    """Squared Frobenius norm on factors without negative entries.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties.factor_penalties import NonNegative
    >>> NonNegative(1.0).prox(np.array([[-3.0, 0.5]]), step=1.0)
    array([[0. , 0.5]])
    """

    smooth: ClassVar[bool] = False
    signed: ClassVar[bool] = False

    def value(self, factor: Array) -> float:
        return self.strength * dot(factor, factor)

    def prox(self, factor: Array, step: Array | float) -> Array:
        return positive(factor)


@dataclass(frozen=True)
class Constraint(Penalty):
    """Abstract bound on the rows of a factor that costs nothing where it is met."""

    strength: float = 0.0

    smooth: ClassVar[bool] = False
    signed: ClassVar[bool] = False
    homogeneity: ClassVar[float | None] = None

    def value(self, factor: Array) -> float:
        return 0.0

    def curvature(self, factor: Array) -> tuple[float, Array]:
        return 0.0, super().curvature(factor)[1]

    def gradient(self, factor: Array) -> Array:
        return 0.0 * factor


@saved
@dataclass(frozen=True)
class Simplex(Constraint):
    """Rows are shares: not negative, summing to one. ``strength`` has no part in it.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties.factor_penalties import Simplex
    >>> Simplex().prox(np.array([[2.0, 0.0], [0.6, 0.6]]), step=1.0)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """

    def prox(self, factor: Array, step: Array | float) -> Array:
        xp = namespace(factor)
        # Adding a number to a row does not move its projection; without, large rows lose the one.
        factor = factor - xp.max(factor, axis=1, keepdims=True)
        ordered = xp.sort(factor, axis=1, descending=True)
        rank = xp.arange(1, factor.shape[1] + 1, dtype=factor.dtype)
        # What is taken off every entry: the largest that any number of leading ones asks for.
        excess = (xp.cumulative_sum(ordered, axis=1) - 1.0) / rank[None, :]
        return positive(factor - xp.max(excess, axis=1, keepdims=True))


def rotation_invariant(penalties: Iterable[Penalty]) -> bool:
    """Whether penalties see the singular values of their factors only, so that factors may turn."""
    return all(penalty.spectral_power is not None for penalty in penalties)
