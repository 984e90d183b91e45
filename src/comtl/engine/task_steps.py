"""The steps of the alternation on the quadratics of the tasks: tasks, core, intercepts."""

from __future__ import annotations

from typing import Any

from ..arrays import Array, namespace, positive
from ..arrays.algebra import along, choose, solve_symmetric, task_sums
from ..datafits.datafit import TaskQuadratic
from ..factors import Factors, State, padded
from ..penalties import Penalty
from ..solvers import Solution
from ..solvers.conjugate_gradient import conjugate_gradient
from ..solvers.proximal import proximal_gradient
from ..solvers.small_blocks import (
    coupled_blocks,
    paired,
    regular,
    solve_arrow,
    solve_coupled_blocks,
)
from .memberships import BlockStep
from .recipe import InnerTolerance

WOODBURY_WIDTH = 12
"""Largest blocks of the direct solver; see benchmarks/bench_engine.md."""


def task_step(quadratic: TaskQuadratic, state: State, inner: InnerTolerance) -> BlockStep:
    """Minimise over ``G`` and the deviations of the intercepts."""
    point, penalty = state.factors, state.penalties["G"]
    xp, width = namespace(point.G), point.G.shape[1]
    rotation = penalty.rotation(point.G)
    hessian, low, ridge, right = task_system(quadratic, state, width, rotation)
    if not penalty.smooth:
        # None of these penalties couples tasks, so each has its own length of step.
        steepest = xp.linalg.eigvalsh(regular(hessian, ridge))[:, -1:]
        solution = proximal_gradient(
            coupled_blocks(hessian, low, ridge),
            -right,
            point.G,
            penalty,
            bound=xp.where(steepest > 0.0, steepest, xp.ones_like(steepest)),
            tol=0.1 * inner.tol,
            max_iter=inner.max_iter,
        )
        return point.with_(G=solution.value), solution
    narrow = low.shape[1] == width and width <= WOODBURY_WIDTH
    if narrow or not low.shape[1]:
        solution = solve_coupled_blocks(hessian, low, ridge, right)
    else:
        solution = solve_by_conjugate_gradients(hessian, low, ridge, right, width, inner)
    step = solution.value
    steps = {"G": step[:, :width] if rotation is None else step[:, :width] @ rotation.T}
    if state.has_random_intercepts:
        steps["random_intercepts"] = step[:, width]
    return point.plus(**steps), solution


def task_system(
    quadratic: TaskQuadratic, state: State, width: int, rotation: Array | None = None
) -> tuple[Array, Array, Array, Array]:
    """Blocks, low-rank part, ridge and right side of the step of the first columns of ``G``."""
    point, penalty = state.factors, state.penalties["G"]
    xp, columns = namespace(point.G), point.G.shape[-1]
    alpha, low = penalty.curvature(point.G)
    if low.shape[-1]:
        # With fewer tasks than columns the relation has fewer directions than a block unknowns.
        low = padded(low, width)
    slope, core = penalty.gradient(point.G)[..., :width], point.S
    if rotation is not None:
        slope, core = slope @ rotation, rotation if core is None else core @ rotation
    elif width < columns:
        core = (xp.eye(columns, dtype=slope.dtype)[None, ...] if core is None else core)[
            ..., :width
        ]
    ridge = (alpha + xp.zeros_like(slope[..., :1, :]))[..., 0, :]
    if penalty.smooth:
        ridge, slope = _with_deviations(state, ridge, slope)
    hessian, right = quadratic.system(core, ridge, slope)
    return hessian, low, ridge, right


def solve_by_conjugate_gradients(
    hessian: Array, low: Array, ridge: Array, right: Array, width: int, inner: InnerTolerance
) -> Solution:
    """Solve blocks that the relation couples, preconditioned by each block alone."""
    inverse = namespace(right).linalg.inv(regular(hessian, ridge))
    return conjugate_gradient(
        coupled_blocks(hessian, low, ridge, width),
        right,
        preconditioner=lambda r: (inverse @ r[..., None])[..., 0],
        tol=inner.tol,
        max_iter=inner.max_iter,
        many=right.ndim > 2,
    )


def _with_deviations(state: State, ridge: Array, slope: Array) -> tuple[Array, Array]:
    """Diagonal and gradient of the penalty by the weights of a task, and by its deviation."""
    if not state.has_random_intercepts:
        return ridge, slope
    xp, pooling = namespace(slope), along(state.deviation_curvature, 2)
    pooled = (pooling * state.factors.random_intercepts)[..., None]
    both = xp.concat([ridge, pooling + xp.zeros_like(ridge[..., :1])], axis=-1)
    return both, xp.concat([slope, pooled], axis=-1)


def direct_step(quadratic: TaskQuadratic, state: State) -> BlockStep:
    """Minimise over shared part, ``G`` (with a smooth penalty) and intercepts, where F is one."""
    point, penalty = state.factors, state.penalties["G"]
    xp = namespace(point.G)
    width = point.G.shape[1]
    alpha, _ = penalty.curvature(point.G)
    slope = penalty.gradient(point.G)
    ridge, slope = _with_deviations(state, xp.full(width, alpha, dtype=slope.dtype), slope)
    free, common = slope.shape[1], width + int(state.intercept)
    base = xp.full(width, 2.0 * (state.shared or 0.0), dtype=slope.dtype)
    base_slope = base * point.shared
    if state.intercept:
        none = xp.zeros(1, dtype=slope.dtype)
        base, base_slope = xp.concat([base, none]), xp.concat([base_slope, none])
    solution = solve_arrow(
        quadratic.hessian[:, :common, :common],
        ridge,
        base,
        -(quadratic.gradient[:, :free] + slope),
        -(xp.sum(quadratic.gradient[:, :common], axis=0) + base_slope),
    )
    each, shared = solution.value[:-1, :], solution.value[-1, :]
    steps = {"G": each[:, :width], "shared": shared[:width]}
    if state.has_random_intercepts:
        steps["random_intercepts"] = each[:, width]
    if state.intercept:
        steps["offset"] = float(shared[width])
    return point.plus(**steps), solution


def core_step(quadratic: TaskQuadratic, state: State, inner: InnerTolerance) -> BlockStep:
    """Minimise over ``S``: a dense system of K1·K2 unknowns."""
    point, penalty = state.factors, state.penalties["S"]
    xp = namespace(point.G)
    K1, K2 = point.S.shape
    matrix, gradient, alpha = core_system(quadratic, point.G, point.S, penalty)
    if penalty.smooth:
        step = solve_symmetric(matrix, -xp.reshape(gradient, (-1,)), floor=alpha)
        return point.plus(S=xp.reshape(step, (K1, K2))), Solution(step, "dense")

    def operator(step: Array) -> Array:
        return xp.reshape(matrix @ xp.reshape(step, (-1,)), (K1, K2))

    solution = proximal_gradient(
        operator, gradient, point.S, penalty, tol=0.1 * inner.tol, max_iter=10 * inner.max_iter
    )
    return point.with_(S=solution.value), solution


def core_system(
    quadratic: TaskQuadratic, G: Array, core: Array, penalty: Penalty
) -> tuple[Array, Array, Any]:
    """Hessian and gradient by a core, and the penalty's part of the diagonal."""
    *_, K1, K2 = core.shape
    matrix, gradient = quadratic.core_sums(G, K1)
    alpha, _ = penalty.curvature(core)
    eye = namespace(G).eye(K1 * K2, dtype=G.dtype)
    return paired(matrix, K1, K2) + alpha * eye, gradient + penalty.gradient(core), alpha


def intercept_step(slopes: Array, curvatures: Array, state: State) -> Factors:
    """Minimise over offset and deviations, given each task's summed derivatives."""
    point = state.factors
    if not state.intercept:
        return point
    xp = namespace(slopes)
    change, share = xp.zeros_like(slopes), xp.ones_like(slopes)
    if state.has_random_intercepts:
        deviates, pooling = along(state.deviates, 2), along(state.deviation_curvature, 2)
        change = deviates * _deviation_change(slopes, curvatures, state)
        share = (pooling + (1.0 - deviates) * curvatures) / (curvatures + pooling)
    stiffness, slope = task_sums(curvatures * share), task_sums(slopes - curvatures * change)
    stiff, none = stiffness > 0.0, 0.0 * stiffness
    move = along(choose(stiff, -slope / choose(stiff, stiffness, none + 1.0), none), 2)
    return point.plus(offset=move, random_intercepts=-change - (1.0 - share) * move)


def deviation_step(slopes: Array, curvatures: Array, state: State) -> Factors:
    """Minimise over the deviations alone, the offset held."""
    point = state.factors
    if not state.has_random_intercepts:
        return point
    return point.plus(random_intercepts=-_deviation_change(slopes, curvatures, state))


def _deviation_change(slopes: Array, curvatures: Array, state: State) -> Array:
    """Way of each deviation down to its minimum, the offset held."""
    pooling = along(state.deviation_curvature, 2)
    return (slopes + pooling * state.factors.random_intercepts) / (curvatures + pooling)


def intercept_pooling(quadratic: TaskQuadratic, datafit: Any, state: State) -> Any:
    """Estimate the penalty of the deviations, noise over variance, from the residuals at hand.

    A one-way random-effects moment estimate (DerSimonian and Laird) on the working residuals
    with the tasks' present deviations put back. Infinite where they show no spread beyond noise.
    """
    point, loss = state.factors, datafit.loss
    xp = namespace(point.random_intercepts)
    slopes, sums = quadratic.slopes, quadratic.curvatures
    P, T = point.F.shape[-2], sums.shape[-1]
    none, total = xp.zeros_like(sums), task_sums(sums)
    one = 0.0 * total + 1.0
    if not state.intercept or T == 1:
        return float("inf") * one
    rows = loss.effective_rows(datafit.n_weighted, total)
    # A task whose labels are all beyond doubt has next to no curvature left, and no say.
    clear = sums > along(1e-6 * rows / T, 2)
    safe = xp.where(clear, sums, xp.ones_like(sums))
    shifts, sums = loss.group_optimum(slopes, safe)
    sums = xp.where(clear, sums, none)
    means = point.random_intercepts + shifts
    total, df = task_sums(sums), rows - T
    estimable = (df > 0.0) & (total > 0.0)
    total, df = choose(estimable, total, one), choose(estimable, df, one)
    # The factors have taken their share of the noise: at most so many numbers, penalised ones.
    rank = state.rank
    taken = rank * (P + T - rank) + (P if state.shared is not None else 0)
    df = choose(df - taken > 0.75 * df, df - taken, 0.75 * df)
    center = along(task_sums(sums * means) / total, 2)
    between = task_sums(sums * (means - center) ** 2)
    # For squared loss 2·value is Σ h e²; what the task means explain of it is taken off.
    within = 2.0 * quadratic.value - task_sums(xp.where(clear, slopes**2 / safe, none))
    noise = loss.dispersion(positive(within), df)
    spread = total - task_sums(sums**2) / total
    estimable = estimable & (spread > 0.0)
    variance = (between - (T - 1) * noise) / choose(estimable, spread, one)
    estimable = estimable & (variance > 0.0)
    estimate = noise / (2.0 * choose(estimable, variance, one))
    return choose(estimable, estimate, float("inf") * one)
