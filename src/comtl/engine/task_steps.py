"""The steps of the alternation on the quadratics of the tasks: tasks, core, intercepts.

Each minimises the local quadratic model of the loss plus the penalty over one block and returns
the new factors with the solution that led there.
"""

from __future__ import annotations

from ..arrays import Array, namespace
from ..arrays.algebra import solve_symmetric
from ..datafits.datafit import Datafit, TaskQuadratic
from ..factors import Factors, State, padded
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
    xp = namespace(point.G)
    width = point.G.shape[1]
    alpha, low = penalty.curvature(point.G)
    if 0 < low.shape[1] < width:
        # With fewer tasks than columns the relation has fewer directions than a block unknowns.
        low = padded(low, width)
    slope, core = penalty.gradient(point.G), point.S
    rotation = penalty.rotation(point.G)
    if rotation is not None:
        slope, core = slope @ rotation, rotation if core is None else core @ rotation
    ridge = xp.full(width, alpha, dtype=slope.dtype)
    if penalty.smooth:
        ridge, slope = _with_deviations(state, ridge, slope)
    narrow = low.shape[1] == width and width <= WOODBURY_WIDTH
    hessian, right = quadratic.system(core, ridge, slope)
    if penalty.smooth and (narrow or not low.shape[1]):
        solution = solve_coupled_blocks(hessian, low, ridge, right)
        return _tasks_moved(state, solution, rotation)
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
    inverse = xp.linalg.inv(regular(hessian, ridge))
    solution = conjugate_gradient(
        coupled_blocks(hessian, low, ridge, width),
        right,
        preconditioner=lambda r: (inverse @ r[:, :, None])[:, :, 0],
        tol=inner.tol,
        max_iter=inner.max_iter,
    )
    return _tasks_moved(state, solution, rotation)


def _with_deviations(state: State, ridge: Array, slope: Array) -> tuple[Array, Array]:
    """Diagonal and gradient of the penalty by the weights of a task, and by its deviation."""
    if not state.has_random_intercepts:
        return ridge, slope
    xp, double = namespace(slope), 2.0 * state.intercept_penalty
    pooled = double * state.factors.random_intercepts[:, None]
    both = xp.concat([ridge, xp.full(1, double, dtype=slope.dtype)])
    return both, xp.concat([slope, pooled], axis=1)


def _tasks_moved(state: State, solution: Solution, rotation: Array | None) -> BlockStep:
    point, step = state.factors, solution.value
    width = point.G.shape[1]
    steps = {"G": step[:, :width] if rotation is None else step[:, :width] @ rotation.T}
    if state.has_random_intercepts:
        steps["random_intercepts"] = step[:, width]
    return point.plus(**steps), solution


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
    matrix, gradient = quadratic.core_sums(point.G, K1)
    matrix = paired(matrix, K1, K2)
    alpha, _ = penalty.curvature(point.S)
    matrix = matrix + alpha * xp.eye(K1 * K2, dtype=matrix.dtype)
    gradient = gradient + penalty.gradient(point.S)
    if penalty.smooth:
        step = solve_symmetric(matrix, -xp.reshape(gradient, (-1,)), floor=alpha)
        return point.plus(S=xp.reshape(step, (K1, K2))), Solution(step, "dense")

    def operator(step: Array) -> Array:
        return xp.reshape(matrix @ xp.reshape(step, (-1,)), (K1, K2))

    solution = proximal_gradient(
        operator, gradient, point.S, penalty, tol=0.1 * inner.tol, max_iter=10 * inner.max_iter
    )
    return point.with_(S=solution.value), solution


def intercept_step(slopes: Array, curvatures: Array, state: State) -> Factors:
    """Minimise over offset and deviations, given each task's summed derivatives."""
    point = state.factors
    if not state.intercept:
        return point
    xp, double = namespace(slopes), 2.0 * state.intercept_penalty
    change, share = xp.zeros_like(slopes), xp.ones_like(slopes)
    if state.has_random_intercepts:
        change, share = _deviation_change(slopes, curvatures, state), double / (curvatures + double)
    stiffness = float(xp.sum(curvatures * share))
    move = -float(xp.sum(slopes - curvatures * change)) / stiffness if stiffness > 0.0 else 0.0
    return point.plus(offset=move, random_intercepts=-change - (1.0 - share) * move)


def deviation_step(slopes: Array, curvatures: Array, state: State) -> Factors:
    """Minimise over the deviations alone, the offset held."""
    point = state.factors
    if not state.has_random_intercepts:
        return point
    return point.plus(random_intercepts=-_deviation_change(slopes, curvatures, state))


def _deviation_change(slopes: Array, curvatures: Array, state: State) -> Array:
    """Way of each deviation down to its minimum, the offset held."""
    double = 2.0 * state.intercept_penalty
    return (slopes + double * state.factors.random_intercepts) / (curvatures + double)


def intercept_pooling(quadratic: TaskQuadratic, datafit: Datafit, state: State) -> float:
    """Estimate the penalty of the deviations, noise over variance, from the residuals at hand.

    A one-way random-effects moment estimate (DerSimonian and Laird) on the working residuals
    with the tasks' present deviations put back. Infinite where they show no spread beyond noise.
    """
    point = state.factors
    if not state.intercept or datafit.n_tasks == 1:
        return float("inf")
    xp = namespace(point.random_intercepts)
    slopes, sums = quadratic.slopes, quadratic.curvatures
    P, T, loss = datafit.n_features, datafit.n_tasks, datafit.loss
    rows = loss.effective_rows(datafit.n_weighted, float(xp.sum(sums)))
    # A task whose labels are all beyond doubt has next to no curvature left, and no say.
    clear = sums > 1e-6 * rows / T
    safe = xp.where(clear, sums, xp.ones_like(sums))
    shifts, sums = loss.group_optimum(slopes, safe)
    sums = xp.where(clear, sums, xp.zeros_like(sums))
    means = point.random_intercepts + shifts
    total = float(xp.sum(sums))
    df = rows - T
    if df <= 0.0 or not total > 0.0:
        return float("inf")
    # The factors have taken their share of the noise: at most so many numbers, penalised ones.
    rank = 0 if state.fixed >= {"F", "G"} else min(point.F.shape[1], point.G.shape[1])
    taken = rank * (P + T - rank) + (P if state.shared is not None else 0)
    df = max(df - taken, 0.75 * df)
    center = float(xp.sum(sums * means)) / total
    between = float(xp.sum(sums * (means - center) ** 2))
    # For squared loss 2·value is Σ h e²; what the task means explain of it is taken off.
    within = 2.0 * quadratic.value - float(xp.sum(xp.where(clear, slopes**2 / safe, 0.0 * safe)))
    noise = loss.dispersion(max(within, 0.0), df)
    spread = total - float(xp.sum(sums**2)) / total
    variance = (between - (T - 1) * noise) / spread if spread > 0.0 else 0.0
    return noise / (2.0 * variance) if variance > 0.0 else float("inf")
