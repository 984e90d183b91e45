r"""What keeps a factor in bounds: one frozen object for each factor of a model.

A penalty has a smooth part with constant Hessian :math:`αI - NN^\top` acting on the rows of the
factor, and, where ``smooth`` is false, a proximal step for the rest. Two exponents say how it
behaves under the moves that leave ``W`` alone: ``degree`` under scaling of the factor, ``root``
under the split of ``W``'s singular values (1: a nuclear norm, 2: a Frobenius norm, None: not
invariant under rotation). ``signed`` says that entries may be negative, ``hard`` that rows take
one of few values, so that steps are moves between these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .arrays import Array, dot, namespace, positive
from .relations import AnyRelation, Relation
from .saving.registry import saved


@dataclass(frozen=True)
class Penalty(ABC):
    """Penalty ``strength · p(Q)`` on a factor ``Q``, one row for each feature or task."""

    strength: float

    smooth: ClassVar[bool] = True
    signed: ClassVar[bool] = True
    hard: ClassVar[bool] = False
    degree: ClassVar[float | None] = 2.0
    root: ClassVar[float | None] = None

    @abstractmethod
    def value(self, factor: Array) -> float:
        """Penalty of a feasible factor."""

    def curvature(self, factor: Array) -> tuple[float, Array]:
        """Return ``(α, N)`` of the smooth part's Hessian; ``factor`` gives size and namespace."""
        xp = namespace(factor)
        return 2.0 * self.strength, xp.zeros((factor.shape[0], 0), dtype=factor.dtype)

    def gradient(self, factor: Array) -> Array:
        """Gradient of the smooth part."""
        return 2.0 * self.strength * factor

    def prox(self, factor: Array, step: Array | float) -> Array:
        """Proximal step of the part that is not smooth; ``step`` is a length, or one a row."""
        return factor

    def started(self, factor: Array, relative_epsilon: float) -> Penalty:
        """Return the penalty at the start of a fit, any smoothing relative to the factor."""
        return self

    def refreshed(self, factor: Array) -> Penalty:
        """Return the penalty with what it learns from the factor brought up to date."""
        return self

    def scaled(self, scale: float) -> Penalty:
        """Return the penalty brought up to date with its factor times ``scale``."""
        return self

    def pull(self, factor: Array) -> float:
        """Rate of the value as the factor is scaled up: what the gauge step balances."""
        return (self.degree or 0.0) * self.value(factor)

    def annealed(self, factor: Array, shrink: float, floor: float) -> Penalty:
        """Return the penalty with its smoothing lowered by ``shrink``, not below ``floor``."""
        return self

    @property
    def settled(self) -> bool:
        """Whether annealing is over."""
        return True

    @property
    def least(self) -> float:
        """Value of the best factor by itself, zero: a constant of the objective at rest."""
        return 0.0

    def whitener(self, factor: Array) -> Array | None:
        """``L`` such that a new row ``L h`` of the factor costs ``|h|²``; None where none does."""
        return None

    def relation_of(self, factor: Array, relative_epsilon: float) -> AnyRelation:
        """Return the relation between the factor's rows, learned or implied."""
        return LearnedRelation.start(1.0, factor, relative_epsilon).relation


@saved
@dataclass(frozen=True)
class Ridge(Penalty):
    """Squared Frobenius norm.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties import Ridge
    >>> Ridge(0.5).value(np.ones((2, 2)))
    2.0
    """

    root: ClassVar[float | None] = 2.0

    def value(self, factor: Array) -> float:
        return self.strength * dot(factor, factor)

    def whitener(self, factor: Array) -> Array | None:
        xp = namespace(factor)
        return xp.eye(factor.shape[1], dtype=factor.dtype) / self.strength**0.5


@saved
@dataclass(frozen=True)
class Free(Penalty):
    """No penalty at all: the paper's core ``S``.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties import Free
    >>> Free().value(np.ones((2, 2)))
    0.0
    """

    strength: float = 0.0

    degree: ClassVar[float | None] = 0.0

    def value(self, factor: Array) -> float:
        return 0.0


@saved
@dataclass(frozen=True)
class L1(Penalty):
    """Sum of absolute values, for sparse factors.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties import L1
    >>> L1(1.0).prox(np.array([[-3.0, 0.5]]), step=1.0)
    array([[-2.,  0.]])
    """

    smooth: ClassVar[bool] = False
    degree: ClassVar[float | None] = 1.0

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
    >>> from comtl.penalties import NonNegative
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
    degree: ClassVar[float | None] = None

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
    >>> from comtl.penalties import Simplex
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


def leading_square(factor: Array) -> float:
    """Largest singular value squared, from which smoothing takes its scale.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties import leading_square
    >>> leading_square(np.array([[3.0, 4.0]]))
    25.0
    """
    xp = namespace(factor)
    tall = factor.shape[0] >= factor.shape[1]
    gram = factor.T @ factor if tall else factor @ factor.T
    # A factor that an earlier fit has shrunk to nothing would leave no smoothing at all.
    least = float(xp.finfo(factor.dtype).smallest_normal) ** 0.5
    return max(float(xp.linalg.eigvalsh(gram)[-1]), least)


_NOT_LEARNED = Relation(np.zeros((0, 0)), np.zeros(0), 1.0)


@saved
@dataclass(frozen=True)
class LearnedRelation(Penalty):
    r"""The paper's penalty, smoothed: :math:`\mathrm{tr}(Q^\top R^{-1} Q) + ε\,\mathrm{tr} R^{-1}`.

    ``R`` is the relation learned from the factor. At the best ``R`` the value is
    :math:`(\sum_k \sqrt{d_k^2 + ε} + (n - K)\sqrt ε)^2`, a smoothed squared nuclear norm.
    ``epsilon`` is set from the scale of the starting factor and only ever lowered, so that the
    objective cannot rise.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties import LearnedRelation
    >>> factor = np.array([[3.0], [4.0]])
    >>> penalty = LearnedRelation.start(1.0, factor, relative_epsilon=1e-8)
    >>> round(penalty.value(factor), 2)
    25.01
    """

    epsilon: float = 1.0
    lowest: float = 0.0
    relation: Relation = _NOT_LEARNED
    at_rest: bool = False

    root: ClassVar[float | None] = 1.0

    @classmethod
    def start(cls, strength: float, factor: Array, relative_epsilon: float) -> LearnedRelation:
        """Return the penalty at a starting factor, smoothed relative to its largest root."""
        return cls(strength).started(factor, relative_epsilon)

    def started(self, factor: Array, relative_epsilon: float) -> LearnedRelation:
        scale = leading_square(factor)
        epsilon = relative_epsilon * scale
        relation = Relation.of_factor(factor, epsilon)
        return replace(
            self, epsilon=epsilon, lowest=1e-12 * scale, relation=relation, at_rest=False
        )

    def value(self, factor: Array) -> float:
        inside = self.relation.basis.T @ factor
        outside = factor - self.relation.basis @ inside
        trace = self.relation.trace
        spread = dot(inside / self.relation.roots[:, None], inside)
        spread += dot(outside, outside) / self.relation.floor
        return self.strength * (trace * spread + self.epsilon * self.relation.inverse_trace)

    def curvature(self, factor: Array) -> tuple[float, Array]:
        alpha, low = self.relation.inverse_parts
        return 2.0 * self.strength * alpha, (2.0 * self.strength) ** 0.5 * low

    def gradient(self, factor: Array) -> Array:
        return 2.0 * self.strength * self.relation.solve(factor)

    def refreshed(self, factor: Array) -> LearnedRelation:
        return replace(self, relation=Relation.of_factor(factor, self.epsilon))

    def scaled(self, scale: float) -> LearnedRelation:
        return replace(self, relation=self.relation.resized(scale, self.epsilon))

    def pull(self, factor: Array) -> float:
        return dot(self.gradient(factor), factor)

    def annealed(self, factor: Array, shrink: float, floor: float) -> LearnedRelation:
        # Once at rest it stays: following the factor's scale any further would drag ε down.
        if self.at_rest:
            return self
        largest = float(namespace(factor).max(self.relation.roots)) ** 2 - self.epsilon
        target = max(floor * largest, self.lowest)
        epsilon = min(self.epsilon, max(shrink * self.epsilon, target))
        relation = self.relation.resized(1.0, epsilon)
        return replace(self, epsilon=epsilon, relation=relation, at_rest=epsilon <= target)

    @property
    def settled(self) -> bool:
        return self.at_rest

    @property
    def least(self) -> float:
        return self.strength * self.epsilon * self.relation.shape[0] ** 2

    def whitener(self, factor: Array) -> Array | None:
        # A row g raises the value by strength·trace·g (FᵀF + εI)^(-1/2) gᵀ, to first order.
        xp = namespace(factor)
        values, basis = xp.linalg.eigh(factor.T @ factor)
        roots = xp.sqrt(xp.clip(values, min=0.0) + self.epsilon)
        return basis / xp.sqrt(self._rates(roots))[None, :]

    def _rates(self, roots: Array) -> Array:
        """Cost of a unit row along each singular direction."""
        return self.strength * self.relation.trace / roots

    def relation_of(self, factor: Array, relative_epsilon: float) -> Relation:
        return self.relation


@saved
@dataclass(frozen=True)
class RidgedRelation(LearnedRelation):
    r"""The learned relation beside a plain ridge: :math:`λ\,p(Q) + μ \|Q\|_F^2`.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.penalties import RidgedRelation
    >>> factor = np.array([[3.0], [4.0]])
    >>> round(RidgedRelation(1.0, ridge=2.0).started(factor, 1e-8).value(factor), 2)
    75.01
    """

    ridge: float = 0.0

    root: ClassVar[float | None] = None

    def value(self, factor: Array) -> float:
        return super().value(factor) + self.ridge * dot(factor, factor)

    def curvature(self, factor: Array) -> tuple[float, Array]:
        alpha, low = super().curvature(factor)
        return alpha + 2.0 * self.ridge, low

    def gradient(self, factor: Array) -> Array:
        return super().gradient(factor) + 2.0 * self.ridge * factor

    def _rates(self, roots: Array) -> Array:
        return super()._rates(roots) + self.ridge


def spectral(penalties: Iterable[Penalty]) -> bool:
    """Whether penalties see the singular values of their factors only, so that factors may turn.

    Examples
    --------
    >>> from comtl.penalties import L1, Ridge, spectral
    >>> spectral([Ridge(1.0)]), spectral([Ridge(1.0), L1(1.0)])
    (True, False)
    """
    return all(penalty.root is not None for penalty in penalties)


def choose_penalty(entry: Penalty | float) -> Penalty:
    """Return the penalty itself, or the learned relation of that strength.

    Examples
    --------
    >>> from comtl.penalties import choose_penalty
    >>> choose_penalty(0.5).strength
    0.5
    """
    return entry if isinstance(entry, Penalty) else LearnedRelation(entry)
