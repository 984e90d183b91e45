r"""Sparse learned relations: the paper's penalty with an ℓ1 norm on the relation's inverse.

.. math:: \mathrm{tr}(Q^\top Θ Q) + ε\,\mathrm{tr}\,Θ + ρ\|Θ\|_{1,off},
          \qquad \mathrm{tr}\,Θ^{-1} = 1

over the factor ``Q`` and the precision ``Θ``, the inverse of the relation. Convex in ``Θ``, never
negative, and of degree two in the scale of ``(Q, √ε, √ρ)``: without ρ it is the learned relation
itself, so λ keeps its meaning. (A log determinant in the place of the trace would pay for moving
scale from one factor to the other until one of them drowns in ε.) The constraint is a matter of
scale: the best ``Θ`` is that of ``tr(AΘ) + ρ‖Θ‖ + tr Θ⁻¹`` with ``A = QQᵀ + εI``, divided so that
its inverse has trace one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .arrays import DENSE_SIDE, Array, dot, namespace
from .learned_relations import LearnedRelation
from .penalties import Penalty
from .relations import SparseRelation, leading_square
from .saving.registry import saved
from .solvers.sparse_precision import links, sparse_precision

TOL, MOST = 1e-3, 50
"""Accuracy of a refresh and its most iterations, each from where the last one ended."""
AHEAD = 9.0
"""How far above its final place ρ starts, relative to ε: factors grow in the first sweeps."""

_NOT_LEARNED = SparseRelation(np.ones((1, 1)), np.ones(1), np.ones((1, 1)))


def require_dense_side(what: str, argument: str, count: int) -> None:
    """Refuse a side that is too long for a sparse relation.

    Examples
    --------
    >>> from comtl.sparse_relations import require_dense_side
    >>> require_dense_side("features", "feature_penalty", 1500)
    """
    if count > DENSE_SIDE:
        raise ValueError(
            f'relation_penalty="l1" forms a matrix of {what} by {what}, and there are {count} '
            f"{what}: more than {DENSE_SIDE}. Use relation_penalty=None, whose relation is never "
            f'formed, or {argument}="ridge" to leave this side without a relation.'
        )


@saved
@dataclass(frozen=True)
class SparseLearnedRelation(Penalty):
    r"""Learned relation whose inverse is sparse.

    Parameters
    ----------
    strength : float
        λ of the whole.
    sparsity : float
        ρ relative to the mean square of the factor's rows: near the cosine between two rows below
        which they are not linked. Like ε it follows the factor down only, until the smoothing has
        come to rest, so that the objective cannot rise.
    epsilon, rho, lowest, relation, at_rest
        State of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.sparse_relations import SparseLearnedRelation
    >>> factor = np.array([[2.0, 0.0], [2.0, 0.1], [0.1, 3.0]])
    >>> penalty = SparseLearnedRelation(1.0, 0.2).started(factor, relative_epsilon=0.01)
    >>> penalty.relation.precision != 0.0
    array([[ True,  True, False],
           [ True,  True, False],
           [False, False,  True]])
    """

    sparsity: float = 0.1
    epsilon: float = 1.0
    rho: float = 0.0
    lowest: float = 0.0
    relation: SparseRelation = _NOT_LEARNED
    at_rest: bool = False

    # The split by singular values is the best one without ρ; it is taken only if J falls.
    root: ClassVar[float | None] = 1.0

    def started(self, factor: Array, relative_epsilon: float) -> SparseLearnedRelation:
        xp = namespace(factor)
        scale = leading_square(factor)
        epsilon = relative_epsilon * scale
        # Without links the best precision is known: it is definite, and the first guess.
        roots = xp.sqrt(xp.sum(factor**2, axis=1) + epsilon)
        diagonal = xp.eye(factor.shape[0], dtype=factor.dtype) / roots[:, None]
        bare = replace(
            self,
            epsilon=epsilon,
            rho=(1.0 + AHEAD * relative_epsilon) * self._rho_of(factor),
            lowest=1e-12 * scale,
            relation=SparseRelation.of_precision(diagonal),
            at_rest=False,
        )
        return bare.refreshed(factor)

    def _rho_of(self, factor: Array) -> float:
        return self.sparsity * dot(factor, factor) / factor.shape[0]

    def value(self, factor: Array) -> float:
        precision = self.relation.precision
        xp = namespace(precision)
        total = dot(self.relation.solve(factor), factor)
        total += self.epsilon * float(xp.linalg.trace(precision))
        return self.strength * (total + self.rho * links(precision))

    def curvature(self, factor: Array) -> tuple[float, Array]:
        alpha, low = self.relation.inverse_parts
        return 2.0 * self.strength * alpha, (2.0 * self.strength) ** 0.5 * low

    def gradient(self, factor: Array) -> Array:
        return 2.0 * self.strength * self.relation.solve(factor)

    def refreshed(self, factor: Array) -> SparseLearnedRelation:
        xp = namespace(factor)
        rows = xp.astype(factor, xp.float64)
        matrix = rows @ rows.T + self.epsilon * xp.eye(rows.shape[0], dtype=xp.float64)
        unit = float(xp.linalg.trace(matrix)) / rows.shape[0]
        # Of all multiples of the present precision, the best one starts the search.
        present = xp.astype(self.relation.precision, xp.float64)
        cost = self.value(factor) / (self.strength * unit)
        solution = sparse_precision(
            matrix / unit, self.rho / unit, present / cost**0.5, tol=TOL, max_iter=MOST
        )
        if not float(xp.linalg.eigvalsh(solution.value)[0]) > 0.0:
            return self
        relation = SparseRelation.of_precision(solution.value)
        parts = (relation.precision, relation.values, relation.basis)
        fresh = replace(
            self, relation=SparseRelation(*(xp.astype(part, factor.dtype) for part in parts))
        )
        # Solved to a tolerance only: the objective must not rise.
        return fresh if fresh.value(factor) < self.value(factor) else self

    def pull(self, factor: Array) -> float:
        return dot(self.gradient(factor), factor)

    def annealed(self, factor: Array, shrink: float, floor: float) -> SparseLearnedRelation:
        if self.at_rest:
            return self
        target = max(floor * leading_square(factor), self.lowest)
        epsilon = min(self.epsilon, max(shrink * self.epsilon, target))
        # A factor that vanishes must not drag ρ along for ever.
        level = max(self._rho_of(factor), self.sparsity * self.lowest)
        rho = min(self.rho, max(shrink * self.rho, level))
        rests = epsilon <= target and rho <= level
        lower = replace(self, epsilon=epsilon, rho=rho, at_rest=rests)
        return lower.refreshed(factor)

    @property
    def settled(self) -> bool:
        return self.at_rest

    @property
    def least(self) -> float:
        return self.strength * self.epsilon * self.relation.shape[0] ** 2

    def whitener(self, factor: Array) -> Array | None:
        # A new row has no links yet: it costs what it does in the relation without ρ.
        plain = LearnedRelation(self.strength, epsilon=self.epsilon).refreshed(factor)
        return plain.whitener(factor)

    def relation_of(self, factor: Array, relative_epsilon: float) -> SparseRelation:
        return self.relation
