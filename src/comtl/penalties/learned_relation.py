"""The paper's penalty: a relation that is learned from the factor it bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array, dot, namespace
from ..saving.registry import formerly, saved
from .penalty import Penalty
from .relations import Relation, leading_square

_NOT_LEARNED = Relation(np.zeros((0, 0)), np.zeros(0), 1.0)


def _without_l1(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in ("sparsity", "rho")}


@formerly("SparseLearnedRelation", _without_l1)
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
    >>> from comtl.penalties.learned_relation import LearnedRelation
    >>> factor = np.array([[3.0], [4.0]])
    >>> penalty = LearnedRelation(1.0).initialised(factor, relative_epsilon=1e-8)
    >>> round(penalty.value(factor), 2)
    25.01
    """

    epsilon: float = 1.0
    lowest: float = 0.0
    relation: Relation = _NOT_LEARNED
    converged: bool = False

    spectral_power: ClassVar[float | None] = 1.0
    text: ClassVar[str] = "a learned relation, Σ or Ω"

    def initialised(self, factor: Array, relative_epsilon: float) -> LearnedRelation:
        scale = leading_square(factor)
        epsilon = relative_epsilon * scale
        relation = Relation.of_factor(factor, epsilon)
        return replace(
            self, epsilon=epsilon, lowest=1e-12 * scale, relation=relation, converged=False
        )

    def value(self, factor: Array) -> float:
        basis, trace = self.relation.basis, self.relation.trace
        inside = basis.T @ factor
        spread = dot(inside / self.relation.roots[:, None], inside)
        if basis.shape[0] > basis.shape[1]:
            outside = factor - basis @ inside
            spread += dot(outside, outside) / self.relation.floor
        return self.strength * (trace * spread + self.epsilon * self.relation.inverse_trace)

    def curvature(self, factor: Array) -> tuple[float, Array]:
        alpha, low = self.relation.inverse_parts
        return 2.0 * self.strength * alpha, (2.0 * self.strength) ** 0.5 * low

    def gradient(self, factor: Array) -> Array:
        return 2.0 * self.strength * self.relation.solve(factor)

    def updated(self, factor: Array) -> LearnedRelation:
        return replace(self, relation=Relation.of_factor(factor, self.epsilon))

    def scaled(self, scale: float) -> LearnedRelation:
        return replace(self, relation=self.relation.resized(scale, self.epsilon))

    def scale_derivative(self, factor: Array) -> float:
        return dot(self.gradient(factor), factor)

    def annealed(self, factor: Array, shrink: float, floor: float) -> LearnedRelation:
        # Once at rest it stays: following the factor's scale any further would drag ε down.
        if self.converged:
            return self
        largest = float(namespace(factor).max(self.relation.roots)) ** 2 - self.epsilon
        target = max(floor * largest, self.lowest)
        epsilon = min(self.epsilon, max(shrink * self.epsilon, target))
        relation = self.relation.resized(1.0, epsilon)
        return replace(self, epsilon=epsilon, relation=relation, converged=epsilon <= target)

    @property
    def is_annealed(self) -> bool:
        return self.converged

    @property
    def floor(self) -> float:
        return self.strength * self.epsilon * self.relation.shape[0] ** 2

    def whitening(self, factor: Array) -> Array | None:
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
    r"""The learned relation beside a plain ridge: :math:`λ\,p(Q) + μ \|Q\|_F^2`."""

    ridge: float = 0.0

    spectral_power: ClassVar[float | None] = None

    def value(self, factor: Array) -> float:
        return super().value(factor) + self.ridge * dot(factor, factor)

    def curvature(self, factor: Array) -> tuple[float, Array]:
        alpha, low = super().curvature(factor)
        return alpha + 2.0 * self.ridge, low

    def gradient(self, factor: Array) -> Array:
        return super().gradient(factor) + 2.0 * self.ridge * factor

    def _rates(self, roots: Array) -> Array:
        return super()._rates(roots) + self.ridge


@saved
@dataclass(frozen=True)
class AcrossColumns(Penalty):
    """A learned relation between the columns of a factor, where these are fewer than its rows.

    Both have the same value but for the smoothing, which grows with the size of the relation; and
    a relation of columns leaves a step free to leave the span of the factor.
    """

    between: LearnedRelation

    @classmethod
    def of(cls, between: LearnedRelation) -> AcrossColumns:
        """Return the penalty that takes columns where ``between`` takes rows."""
        return cls(between.strength, between)

    def value(self, factor: Array) -> float:
        return self.between.value(factor.T)

    def curvature(self, factor: Array) -> tuple[float, Array]:
        return 1.0, super().curvature(factor)[1]

    def rotation(self, factor: Array) -> Array:
        alpha, low = self.between.curvature(factor.T)
        xp = namespace(factor)
        values, basis = xp.linalg.eigh(alpha * xp.eye(low.shape[0], dtype=low.dtype) - low @ low.T)
        # Definite by promise, up to rounding.
        least = float(xp.finfo(low.dtype).eps) * alpha
        return basis / xp.sqrt(xp.clip(values, min=least))[None, :]

    def gradient(self, factor: Array) -> Array:
        return self.between.gradient(factor.T).T

    def initialised(self, factor: Array, relative_epsilon: float) -> AcrossColumns:
        return replace(self, between=self.between.initialised(factor.T, relative_epsilon))

    def updated(self, factor: Array) -> AcrossColumns:
        return replace(self, between=self.between.updated(factor.T))

    def annealed(self, factor: Array, shrink: float, floor: float) -> AcrossColumns:
        return replace(self, between=self.between.annealed(factor.T, shrink, floor))

    @property
    def is_annealed(self) -> bool:
        return self.between.is_annealed

    @property
    def floor(self) -> float:
        return self.between.floor

    def whitening(self, factor: Array) -> Array | None:
        # A row costs half of what the Hessian makes of it.
        return 2.0**0.5 * self.rotation(factor)


def choose_penalty(entry: Penalty | float) -> Penalty:
    """Return the penalty itself, or the learned relation of that strength."""
    return entry if isinstance(entry, Penalty) else LearnedRelation(entry)
