"""The feature step of the alternation, and the normal equations that it solves.

It minimises the local quadratic model of the loss plus the penalty over ``F``, the shared part and
the intercepts together, and returns the new factors with the solution that led there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..arrays import Array, namespace, with_ones
from ..arrays.algebra import block_matrix, solve_symmetric
from ..datafits.datafit import Datafit, FeaturePenalty, LocalQuadratic
from ..factors import Factors, State
from ..solvers import Solution
from ..solvers.conjugate_gradient import conjugate_gradient
from ..solvers.proximal import proximal_gradient
from ..solvers.sylvester import TwoTermSylvester
from .memberships import BlockStep, feature_moves
from .recipe import InnerTolerance
from .task_steps import intercept_step

DENSE_UNKNOWNS = 100
"""Most unknowns of the direct solver; see benchmarks/bench_engine.md."""
PASSES_PER_EFOLD, TURNED_PASSES = 24.0, 8.0
"""Passes over wide rows in which the residual falls by e, without their inner products: for steps
as they are, and for turned ones, which the two-term equation fits better; see
benchmarks/bench_row_kernels.md and bench_trace_norm.md."""


def feature_step(
    datafit: Datafit, expansion: LocalQuadratic, state: State, inner: InnerTolerance
) -> BlockStep:
    """Minimise over ``F``, the shared part and the intercepts together."""
    penalty, (features, columns) = state.penalties["F"], state.factors.F.shape
    if penalty.discrete:
        return feature_moves(datafit, expansion, state)
    if not penalty.smooth:
        return _proximal_feature_step(expansion, state, inner)
    system = FeatureSystem(datafit, expansion, state)
    if features * (columns + 1) + datafit.n_tasks <= DENSE_UNKNOWNS:
        step = solve_symmetric(system.matrix(), system.right())
        return system.moved(step), Solution(step, "dense")
    if datafit.same_design and state.shared is None:
        # Rows are centred and shared, so the intercepts do not meet the slopes.
        matrix, deviations, offset = system.unpack(system.right())
        step = system.flat(system.sylvester()(matrix), 0.0 * deviations, 0.0 * offset)
        moved = system.moved(step)
        fresh = datafit.quadratic_at(moved)
        _, sums = fresh.gradient(system.loadings[:, :0])
        point = intercept_step(sums, fresh.curvature_sums, state.at(moved))
        return point, Solution(step, "sylvester")
    return _by_conjugate_gradients(system, inner)


def _by_conjugate_gradients(system: FeatureSystem, inner: InnerTolerance) -> BlockStep:
    solution = conjugate_gradient(
        system.operator,
        system.right(),
        preconditioner=system.preconditioner(inner.tol),
        tol=inner.tol,
        max_iter=inner.max_iter,
    )
    return system.moved(solution.value), solution


def _proximal_feature_step(
    expansion: LocalQuadratic, state: State, inner: InnerTolerance
) -> BlockStep:
    point, penalty = state.factors, state.penalties["F"]
    alpha, _ = penalty.curvature(point.F)
    loadings = point.loadings
    still = namespace(point.F).zeros_like(point.random_intercepts)

    def operator(step: Array) -> Array:
        return expansion.normal(step, loadings, still)[0] + alpha * step

    gradient = expansion.gradient(loadings)[0] + penalty.gradient(point.F)
    solution = proximal_gradient(
        operator, gradient, point.F, penalty, tol=0.1 * inner.tol, max_iter=inner.max_iter
    )
    return point.with_(F=solution.value), solution


def shared_step(
    datafit: Datafit, expansion: LocalQuadratic, state: State, inner: InnerTolerance
) -> BlockStep:
    """Minimise over the shared part and the intercepts, the factors held."""
    system = FeatureSystem(datafit, expansion, state, factor=False)
    return _by_conjugate_gradients(system, inner)


def feature_mixing(state: State, *, factor: bool = True) -> Array:
    """How each task mixes the unknown columns: those of ``F``, then the shared part."""
    loadings = state.factors.loadings if factor else state.factors.loadings[:, :0]
    return loadings if state.shared is None else with_ones(loadings)


class FeatureSystem:
    """Normal equations of ``(F, w0, b)``, or of ``(w0, b)``, as an operator on one flat vector."""

    def __init__(
        self, datafit: Datafit, expansion: LocalQuadratic, state: State, *, factor: bool = True
    ) -> None:
        point = state.factors
        self.xp = namespace(point.F)
        self.datafit, self.expansion, self.state = datafit, expansion, state
        self.width = point.F.shape[1] if factor else 0
        self.loadings = feature_mixing(state, factor=factor)
        self.rotation = state.penalties["F"].rotation(point.F) if factor else None
        self.spectrum: Array | None = None
        if self.rotation is not None:
            # Turned further, so that the two-term equation has columns that do not meet.
            self.spectrum, further = self.xp.linalg.eigh(self._small(self._turned(self.loadings)))
            self.rotation = self.rotation @ further
            self.loadings = self._turned(self.loadings)
        self.rows, self.columns = datafit.n_features, self.loadings.shape[1]
        self.tasks = datafit.n_tasks
        self.alpha, self.low_rank = state.penalties["F"].curvature(point.F)

    def _turned(self, matrix: Array) -> Array:
        """Columns of ``F`` as the penalty sees them, the shared one as it is."""
        return self.xp.concat(
            [matrix[:, : self.width] @ self.rotation, matrix[:, self.width :]], axis=1
        )

    def flat(self, matrix: Array, deviations: Array, offset: Array) -> Array:
        xp = self.xp
        parts = [xp.reshape(matrix, (-1,))]
        if self.state.has_random_intercepts:
            parts.append(deviations)
        if self.state.intercept:
            parts.append(xp.reshape(offset, (1,)))
        return xp.concat(parts)

    def unpack(self, flat: Array) -> tuple[Array, Array, Array]:
        """Matrix, deviations and offset of a flat vector."""
        xp = self.xp
        count = self.rows * self.columns
        matrix = xp.reshape(flat[:count], (self.rows, self.columns))
        deviations = xp.zeros(self.tasks, dtype=flat.dtype)
        if self.state.has_random_intercepts:
            deviations = flat[count : count + self.tasks]
        offset = flat[-1] if self.state.intercept else xp.zeros((), dtype=flat.dtype)
        return matrix, deviations, offset

    def right(self) -> Array:
        """Negative gradient."""
        point, state = self.state.factors, self.state
        loadings = self.loadings if self.rotation is None else feature_mixing(state)
        matrix, sums = self.expansion.gradient(loadings)
        if self.width:
            matrix[:, : self.width] += state.penalties["F"].gradient(point.F)
            matrix = matrix if self.rotation is None else self._turned(matrix)
        if state.shared is not None:
            matrix[:, self.width :] += 2.0 * state.shared * point.shared[:, None]
        flat = self._with_pooling(matrix, sums, point.random_intercepts)
        flat *= -1.0
        return flat

    def _with_pooling(self, matrix: Array, sums: Array, deviations: Array) -> Array:
        """Flat derivatives from those of the loss by the intercepts, and the deviations."""
        offset = self.xp.sum(sums)
        if self.state.has_random_intercepts:
            sums = sums + 2.0 * self.state.intercept_penalty * deviations
        return self.flat(matrix, sums, offset)

    def operator(self, flat: Array) -> Array:
        """Hessian applied to a flat vector."""
        matrix, deviations, offset = self.unpack(flat)
        image, sums = self.expansion.normal(matrix, self.loadings, deviations + offset)
        if self.width:
            factor = matrix[:, : self.width]
            image[:, : self.width] += self.alpha * factor
            image[:, : self.width] -= self.low_rank @ (self.low_rank.T @ factor)
        if self.state.shared is not None:
            image[:, self.width :] += 2.0 * self.state.shared * matrix[:, self.width :]
        return self._with_pooling(image, sums, deviations)

    def sylvester(self) -> TwoTermSylvester:
        """Two-term equation with every task's moments replaced by the pooled ones."""
        small = self._small(self.loadings) if self.spectrum is None else self.spectrum
        return TwoTermSylvester(self.datafit.covariance, small, self.alpha, self.low_rank)

    def _small(self, loadings: Array) -> Array:
        """Sum over tasks of what their rows weigh, between columns of ``F``."""
        loadings = loadings[:, : self.width]
        return loadings.T @ (self.expansion.curvature_sums[:, None] * loadings)

    def preconditioner(self, tol: float = 1e-6) -> Callable[[Array], Array]:
        """Approximate inverse, for a residual that is to fall by ``tol``."""
        return self._by_rows(tol) or self._by_parts()

    def _level(self) -> float:
        """Penalty of the tasks' intercepts; at least what tells them from slopes."""
        if not self.state.has_random_intercepts:
            return float("inf")
        least = 1e-7 * float(self.xp.max(self.expansion.curvature_sums))
        return max(2.0 * self.state.intercept_penalty, least)

    def _by_rows(self, tol: float) -> Callable[[Array], Array] | None:
        """All unknowns by the rows' inner products."""
        state = self.state
        if not self.columns:
            return None
        penalty = FeaturePenalty(
            self.alpha,
            self.low_rank if self.width else self.low_rank[:, :0],
            float("inf") if state.shared is None else 2.0 * state.shared,
            self._level(),
            state.intercept,
        )
        passes = PASSES_PER_EFOLD if self.rotation is None else TURNED_PASSES
        solve = self.expansion.dual_ridge(self.loadings, penalty, -passes * math.log(tol))
        if solve is None:
            return None
        return lambda flat: self.flat(*solve(*self.unpack(flat)))

    def _by_parts(self) -> Callable[[Array], Array]:
        """Sylvester for ``F``, ridge for ``w0``, diagonal for the rest."""
        xp, state = self.xp, self.state
        sums = self.expansion.curvature_sums
        total = float(xp.sum(sums)) or 1.0
        diagonal = sums + 2.0 * state.intercept_penalty
        factor = self.sylvester() if self.width else None
        shared = None
        if state.shared is not None:
            small = xp.full((1, 1), total, dtype=sums.dtype)
            empty = xp.zeros((self.rows, 0), dtype=sums.dtype)
            shared = TwoTermSylvester(self.datafit.covariance, small, 2.0 * state.shared, empty)

        def apply(flat: Array) -> Array:
            matrix, deviations, offset = self.unpack(flat)
            parts = []
            if factor is not None:
                parts.append(xp.reshape(factor(matrix[:, : self.width]), (self.rows, -1)))
            if shared is not None:
                parts.append(shared(matrix[:, self.width :]))
            solved = xp.concat(parts, axis=1) if parts else matrix
            return self.flat(solved, deviations / diagonal, offset / total)

        return apply

    def matrix(self) -> Array:
        """Explicit Hessian."""
        xp, state, P, k = self.xp, self.state, self.rows, self.columns
        eye = xp.eye(P, dtype=self.loadings.dtype)
        hessian = self.expansion.task_quadratic(eye).hessian
        M, tasks = self.loadings, self.tasks
        pairs = xp.reshape(M[:, :, None] * M[:, None, :], (tasks, k * k))
        moments = xp.reshape(hessian[:, :P, :P], (self.tasks, P * P))
        blocks = xp.reshape(moments.T @ pairs, (P, P, k, k))
        ridge = xp.full(k, 2.0 * (state.shared or 0.0), dtype=eye.dtype)
        inside = xp.astype(xp.arange(k) < self.width, eye.dtype)
        factor = self.alpha * eye - self.low_rank @ self.low_rank.T
        penalty = factor[:, :, None] * inside + eye[:, :, None] * (ridge * (1.0 - inside))
        blocks = blocks + penalty[:, :, :, None] * xp.eye(k, dtype=eye.dtype)
        slopes = xp.reshape(xp.permute_dims(blocks, (0, 2, 1, 3)), (P * k, P * k))
        if not state.intercept:
            return slopes
        cross = hessian[:, :P, P][:, :, None] * M[:, None, :]
        cross = xp.reshape(cross, (tasks, P * k)).T
        sums = hessian[:, P, P]
        edges, corner = xp.sum(cross, axis=1)[:, None], xp.reshape(xp.sum(sums), (1, 1))
        if state.has_random_intercepts:
            diagonal = xp.eye(self.tasks, dtype=eye.dtype) * (sums + 2.0 * state.intercept_penalty)
            corner = block_matrix([[diagonal, sums[:, None]], [sums[None, :], corner]])
            edges = xp.concat([cross, edges], axis=1)
        return block_matrix([[slopes, edges], [edges.T, corner]])

    def moved(self, flat: Array) -> Factors:
        matrix, deviations, offset = self.unpack(flat)
        steps: dict[str, Any] = {"random_intercepts": deviations, "offset": float(offset)}
        if self.width:
            step = matrix[:, : self.width]
            steps["F"] = step if self.rotation is None else step @ self.rotation.T
        if self.state.shared is not None:
            steps["shared"] = matrix[:, -1]
        return self.state.factors.plus(**steps)
