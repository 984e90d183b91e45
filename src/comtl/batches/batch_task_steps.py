"""Steps of many fits on their quadratics by task: tasks, core, intercepts."""

from __future__ import annotations

from dataclasses import replace

from ..arrays import Array, namespace
from ..arrays.algebra import with_corner
from ..engine.recipe import InnerTolerance
from ..solvers.conjugate_gradient import conjugate_gradient
from ..solvers.small_blocks import coupled_blocks, paired, regular, solve_coupled_blocks
from .batch_feature_step import widened
from .batch_state import BatchGrams, Fits, Plan, Quadratics
from .pytrees import along, tree_concat, tree_slice


def task_step(quadratic: Quadratics, fits: Fits, plan: Plan, inner: InnerTolerance) -> Fits:
    """Minimise over ``G`` and the deviations of the intercepts."""
    point = fits.factors
    xp = namespace(point.G)
    model = fits.penalties["G"].model(point.G)
    parts = []
    for part, width, direct in plan.task_parts:
        some, here = tree_slice(fits, part), tree_slice(quadratic, part)
        penalty = tree_slice(model, part)
        hessian, gradient = _through_core(here, some.factors.S, width)
        member, double = some.member[:, None], some.double[:, None]
        # Without deviations the last unknown of every task has nothing to move it.
        free = xp.concat([xp.ones_like(penalty.slope[:, 0, :width]), member], axis=1)
        hessian = hessian * free[:, None, :, None] * free[:, None, None, :]
        slope = (double * some.factors.random_intercepts)[..., None]
        slope = xp.concat([penalty.slope[..., :width], slope], axis=-1)
        right = -(gradient + slope) * free[:, None, :]
        ridge = along(penalty.alpha, 2) + xp.zeros_like(free[:, :-1])
        ridge = xp.concat([ridge, double], axis=1)
        low = penalty.low_rank[..., :width]
        if direct:
            step = solve_coupled_blocks(hessian, low, ridge, right).value
        else:
            step = _by_conjugate_gradients(hessian, low, ridge, right, inner)
        parts.append({"G": widened(step[..., :width], point.G.shape[-1]), "b": step[..., width]})
    steps = tree_concat(parts)
    moved = point.G + steps["G"] * fits.inside[:, None, :]
    return fits.at(G=moved, random_intercepts=point.random_intercepts + steps["b"])


def _by_conjugate_gradients(
    hessian: Array, low: Array, ridge: Array, right: Array, inner: InnerTolerance
) -> Array:
    xp = namespace(right)
    inverse = xp.linalg.inv(regular(hessian, ridge))
    return conjugate_gradient(
        coupled_blocks(hessian, low, ridge),
        right,
        preconditioner=lambda r: (inverse @ r[..., None])[..., 0],
        tol=inner.tol,
        max_iter=inner.max_iter,
        many=True,
    ).value


def _through_core(quadratic: Quadratics, core: Array | None, width: int) -> tuple[Array, Array]:
    """Hessian and gradient by ``(g_t, b_t)``, of the first columns of ``G``."""
    columns = quadratic.gradient.shape[-1] - 1
    if core is None:
        if width == columns:
            return quadratic.hessian, quadratic.gradient
        xp = namespace(quadratic.value)
        core = xp.eye(columns, dtype=quadratic.value.dtype)[None, ...]
    lift = with_corner(core[..., :width])
    wide = lift[:, None, ...]
    return wide.mT @ (quadratic.hessian @ wide), quadratic.gradient @ lift


def core_step(quadratic: Quadratics, fits: Fits, plan: Plan) -> Fits:
    """Minimise over ``S``: dense systems of K·K unknowns."""
    point, strength = fits.factors, fits.penalties["S"].strength
    xp = namespace(point.G)
    parts = []
    for part, width, _ in plan.task_parts:
        G, alpha = point.G[part, :, :width], 2.0 * along(strength[part], 3)
        count = width * width
        shape = (*G.shape[:-1], count)
        pairs = xp.reshape(G[..., :, None] * G[..., None, :], shape)
        blocks = xp.reshape(quadratic.hessian[part, :, :width, :width], shape)
        matrix = paired(blocks.mT @ pairs, width, width) + alpha * xp.eye(count, dtype=G.dtype)
        core = point.S[part, :width, :width]
        gradient = quadratic.gradient[part, :, :width].mT @ G + alpha * core
        step = xp.linalg.solve(matrix, xp.reshape(-gradient, (-1, count, 1)))
        step = widened(xp.reshape(step, gradient.shape), point.S.shape[-1])
        parts.append(widened(step.mT, point.S.shape[-1]).mT)
    return fits.at(S=point.S + tree_concat(parts))


def intercept_step(quadratic: Quadratics, grams: BatchGrams, fits: Fits) -> Fits:
    """Minimise over offsets and deviations."""
    xp = namespace(fits.intercept_penalty)
    point, member, double = fits.factors, fits.member[:, None], fits.double[:, None]
    slopes, curvatures = quadratic.gradient[..., -1], grams.sums
    slope = member * (slopes + double * point.random_intercepts) / (curvatures + double)
    rest = member * curvatures / (curvatures + double)
    stiffness = xp.sum(curvatures * (1.0 - rest), axis=1, keepdims=True)
    stiff = stiffness > 0.0
    move = -xp.sum(slopes - curvatures * slope, axis=1, keepdims=True)
    move = xp.where(stiff, move / xp.where(stiff, stiffness, xp.ones_like(move)), 0.0 * move)
    return fits.at(
        offset=point.offset + move, random_intercepts=point.random_intercepts - slope - rest * move
    )


def pool(quadratic: Quadratics, grams: BatchGrams, fits: Fits) -> Fits:
    """Lower the penalty of the deviations to its moment estimate; see ``intercept_pooling``."""
    point = fits.factors
    tasks, features = point.G.shape[1], point.F.shape[1]
    if not (fits.estimates_pooling and fits.intercept) or tasks == 1:
        return fits
    xp = namespace(fits.intercept_penalty)
    slopes, sums = quadratic.gradient[..., -1], grams.sums
    clear = sums > 1e-6 * grams.weight[:, None] / tasks
    none = xp.zeros_like(sums)
    sums, safe = xp.where(clear, sums, none), xp.where(clear, sums, none + 1.0)
    means = point.random_intercepts - slopes / safe
    total = xp.sum(sums, axis=1)
    df = grams.weight - tasks
    free = (df > 0.0) & (total > 0.0)
    one = xp.ones_like(total)
    total, df = xp.where(free, total, one), xp.where(free, df, one)
    # The factors have taken their share of the noise: at most so many numbers, penalised ones.
    rank = xp.sum(fits.inside, axis=1)
    taken = rank * (features + tasks - rank) + (0 if fits.shared is None else features)
    df = xp.maximum(df - taken, 0.75 * df)
    center = xp.sum(sums * means, axis=1) / total
    between = xp.sum(sums * (means - center[:, None]) ** 2, axis=1)
    within = 2.0 * quadratic.value - xp.sum(xp.where(clear, slopes**2 / safe, none), axis=1)
    noise = xp.clip(within, min=0.0) / df
    spread = total - xp.sum(sums**2, axis=1) / total
    variance = between - (tasks - 1) * noise
    free = free & (spread > 0.0) & (variance > 0.0)
    variance, spread = xp.where(free, variance, one), xp.where(free, spread, one)
    estimate = xp.where(free, 0.5 * noise * spread / variance, float("inf") * one)
    return replace(fits, intercept_penalty=xp.minimum(fits.intercept_penalty, estimate))
