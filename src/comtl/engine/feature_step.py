"""The feature step of the alternation, and the normal equations that it solves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..arrays import Array, namespace, with_ones
from ..arrays.algebra import along, block_matrix, choose, solve_symmetric, task_sums
from ..datafits.datafit import Datafit, FeaturePenalty, LocalQuadratic
from ..factors import Factors, State
from ..solvers import Solution
from ..solvers.conjugate_gradient import conjugate_gradient
from ..solvers.proximal import proximal_gradient
from ..solvers.small_blocks import paired
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
    solution = system.solve(inner)
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
    system = FeatureSystem(datafit, expansion, state, 0)
    solution = system.solve(inner)
    return system.moved(solution.value), solution


def feature_mixing(state: State, width: int | None = None) -> Array:
    """How each task mixes the unknown columns: the first of ``F``, then the shared part."""
    loadings = state.factors.loadings
    loadings = loadings if width is None else loadings[..., :width]
    return loadings if state.shared is None else with_ones(loadings)


class FeatureSystem:
    """Normal equations of ``(F, w0, b)`` as an operator on one flat vector.

    Of ``F`` the first ``width`` columns are unknown, all unless it is given. A leading axis may
    hold many fits; deviations of the intercepts of fits without are zero throughout.
    """

    def __init__(
        self, datafit: Any, expansion: LocalQuadratic, state: State, width: int | None = None
    ) -> None:
        point, penalty = state.factors, state.penalties["F"]
        self.xp = namespace(point.F)
        self.datafit, self.expansion, self.state = datafit, expansion, state
        *self.many, self.rows, columns = point.F.shape
        self.width = columns if width is None else width
        self.loadings = feature_mixing(state, self.width)
        self.rotation = penalty.rotation(point.F) if self.width else None
        self.spectrum: Array | None = None
        if self.rotation is not None:
            # Turned further, so that the two-term equation has columns that do not meet.
            self.spectrum, further = self.xp.linalg.eigh(self._small(self._turned(self.loadings)))
            self.rotation = self.rotation @ further
            self.loadings = self._turned(self.loadings)
        self.tasks, self.columns = self.loadings.shape[-2:]
        self.alpha, low_rank = penalty.curvature(point.F)
        self.low_rank = low_rank[..., : min(self.width, low_rank.shape[-1])]
        self.shared = None if state.shared is None else 2.0 * along(state.shared, 3)
        self.deviates = along(state.deviates, 2)
        self.pooling = along(state.deviation_curvature, 2)

    def _turned(self, matrix: Array) -> Array:
        """Columns of ``F`` as the penalty sees them, the shared one as it is."""
        return self.xp.concat(
            [matrix[:, : self.width] @ self.rotation, matrix[:, self.width :]], axis=1
        )

    def flat(self, matrix: Array, deviations: Array, offset: Array) -> Array:
        xp = self.xp
        parts = [xp.reshape(matrix, (*self.many, -1))]
        if self.state.has_random_intercepts:
            parts.append(deviations)
        if self.state.intercept:
            parts.append(offset[..., None])
        return xp.concat(parts, axis=-1)

    def unpack(self, flat: Array) -> tuple[Array, Array, Array]:
        """Matrix, deviations and offset of a flat vector."""
        xp = self.xp
        count = self.rows * self.columns
        matrix = xp.reshape(flat[..., :count], (*self.many, self.rows, self.columns))
        deviations = xp.zeros((*self.many, self.tasks), dtype=flat.dtype)
        if self.state.has_random_intercepts:
            deviations = flat[..., count : count + self.tasks]
        offset = flat[..., -1] if self.state.intercept else xp.zeros(self.many, dtype=flat.dtype)
        return matrix, deviations, offset

    def right(self) -> Array:
        """Negative gradient."""
        point, state = self.state.factors, self.state
        loadings = self.loadings if self.rotation is None else feature_mixing(state)
        matrix, sums = self.expansion.gradient(loadings)
        if self.width:
            slope = state.penalties["F"].gradient(point.F)
            matrix[..., : self.width] += slope[..., : self.width]
            matrix = matrix if self.rotation is None else self._turned(matrix)
        if self.shared is not None:
            matrix[..., self.width :] += self.shared * point.shared[..., None]
        flat = self._with_pooling(matrix, sums, point.random_intercepts)
        flat *= -1.0
        return flat

    def _with_pooling(self, matrix: Array, sums: Array, deviations: Array) -> Array:
        """Flat derivatives from those of the loss by the intercepts, and the deviations."""
        offset = self.xp.sum(sums, axis=-1)
        if self.state.has_random_intercepts:
            sums = self.deviates * sums + self.pooling * deviations
        return self.flat(matrix, sums, offset)

    def operator(self, flat: Array) -> Array:
        """Hessian applied to a flat vector."""
        matrix, deviations, offset = self.unpack(flat)
        intercepts = deviations + offset[..., None]
        image, sums = self.expansion.normal(matrix, self.loadings, intercepts)
        if self.width:
            factor = matrix[..., : self.width]
            image[..., : self.width] += self.alpha * factor
            image[..., : self.width] -= self.low_rank @ (self.low_rank.mT @ factor)
        if self.shared is not None:
            image[..., self.width :] += self.shared * matrix[..., self.width :]
        return self._with_pooling(image, sums, deviations)

    def solve(self, inner: InnerTolerance) -> Solution:
        """Step of all unknowns by conjugate gradients."""
        return conjugate_gradient(
            self.operator,
            self.right(),
            preconditioner=self.preconditioner(inner.tol),
            tol=inner.tol,
            max_iter=inner.max_iter,
            many=bool(self.many),
        )

    def sylvester(self) -> TwoTermSylvester:
        """Two-term equation with every task's moments replaced by the pooled ones."""
        small = self._small(self.loadings) if self.spectrum is None else self.spectrum
        return TwoTermSylvester(self.datafit.covariance, small, self.alpha, self.low_rank)

    def _small(self, loadings: Array) -> Array:
        """Sum over tasks of what their rows weigh, between columns of ``F``."""
        loadings = loadings[..., : self.width]
        return loadings.mT @ (self.expansion.curvature_sums[..., None] * loadings)

    def preconditioner(self, tol: float = 1e-6) -> Callable[[Array], Array]:
        """Approximate inverse, for a residual that is to fall by ``tol``."""
        return self._by_rows(tol) or self._by_parts()

    def _by_rows(self, tol: float) -> Callable[[Array], Array] | None:
        """All unknowns by the rows' inner products."""
        state, level = self.state, float("inf")
        if self.many or not self.columns:
            return None
        if state.has_random_intercepts:
            # At least what tells the tasks' intercepts from slopes.
            least = 1e-7 * float(self.xp.max(self.expansion.curvature_sums))
            level = max(2.0 * state.intercept_penalty, least)
        shared = float("inf") if self.shared is None else self.shared
        penalty = FeaturePenalty(self.alpha, self.low_rank, shared, level, state.intercept)
        passes = PASSES_PER_EFOLD if self.rotation is None else TURNED_PASSES
        solve = self.expansion.dual_ridge(self.loadings, penalty, -passes * math.log(tol))
        if solve is None:
            return None
        return lambda flat: self.flat(*solve(*self.unpack(flat)))

    def _by_parts(self) -> Callable[[Array], Array]:
        """Sylvester for ``F``, ridge for ``w0``, diagonal for the rest."""
        xp, sums = self.xp, self.expansion.curvature_sums
        total = task_sums(sums)
        total = choose(total > 0.0, total, 0.0 * total + 1.0)
        diagonal = sums + self.pooling
        factor = self.sylvester() if self.width else None
        shared = None
        if self.shared is not None:
            small = along(total, 3) * xp.ones((1, 1), dtype=sums.dtype)
            empty = xp.zeros((*self.many, self.rows, 0), dtype=sums.dtype)
            shared = TwoTermSylvester(self.datafit.covariance, small, self.shared, empty)

        def apply(flat: Array) -> Array:
            matrix, deviations, offset = self.unpack(flat)
            parts = []
            if factor is not None:
                parts.append(factor(matrix[..., : self.width]))
            if shared is not None:
                parts.append(shared(matrix[..., self.width :]))
            solved = xp.concat(parts, axis=-1) if parts else matrix
            return self.flat(solved, deviations / diagonal, offset / total)

        return apply

    def matrix(self) -> Array:
        """Explicit Hessian."""
        xp, P, k, M = self.xp, self.rows, self.columns, self.loadings
        eye, own = xp.eye(P, dtype=M.dtype), xp.eye(k, dtype=M.dtype)
        hessian = self.expansion.task_quadratic(eye).hessian
        tasks = (*self.many, self.tasks)
        pairs = xp.reshape(M[..., :, None] * M[..., None, :], (*tasks, k * k))
        blocks = xp.reshape(hessian[..., :P, :P], (*tasks, P * P)).mT @ pairs
        inside = xp.astype(xp.arange(k) < self.width, own.dtype)
        penalty = self.alpha * eye - self.low_rank @ self.low_rank.mT
        blocks = blocks + self._products(penalty, inside * own)
        if self.shared is not None:
            blocks = blocks + self._products(self.shared * eye, (1.0 - inside) * own)
        slopes = paired(blocks, P, k)
        if not self.state.intercept:
            return slopes
        cross = hessian[..., :P, P][..., :, None] * M[..., None, :]
        cross = xp.reshape(cross, (*tasks, P * k))
        sums = hessian[..., P, P]
        edges = xp.sum(cross, axis=-2, keepdims=True)
        corner = xp.sum(sums, axis=-1)[..., None, None]
        if self.state.has_random_intercepts:
            sums = self.deviates * sums
            diagonal = (sums + self.pooling)[..., None] * xp.eye(self.tasks, dtype=M.dtype)
            corner = block_matrix([[diagonal, sums[..., None]], [sums[..., None, :], corner]])
            edges = xp.concat([along(self.state.deviates, 3) * cross, edges], axis=-2)
        return block_matrix([[slopes, edges.mT], [edges, corner]])

    def _products(self, left: Array, right: Array) -> Array:
        """Products of all entries of one matrix, or of each of many, with all of another."""
        left = self.xp.reshape(left, (*self.many, -1, 1))
        return left * self.xp.reshape(right, (1, -1))

    def steps(self, flat: Array) -> dict[str, Any]:
        """Changes of the unknowns by name."""
        matrix, deviations, offset = self.unpack(flat)
        steps = {"random_intercepts": deviations, "offset": along(offset, 2)}
        if self.width:
            step = matrix[..., : self.width]
            steps["F"] = step if self.rotation is None else step @ self.rotation.T
        if self.shared is not None:
            steps["shared"] = matrix[..., -1]
        return steps

    def moved(self, flat: Array) -> Factors:
        steps = self.steps(flat)
        return self.state.factors.plus(**{**steps, "offset": float(steps["offset"])})
