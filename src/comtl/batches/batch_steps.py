"""Steps of many fits: features, tasks and core."""

from ..arrays import namespace
from ..datafits.datafit import TaskQuadratic
from ..engine.feature_step import FeatureSystem
from ..engine.recipe import InnerTolerance
from ..engine.task_steps import core_system, solve_by_conjugate_gradients, task_system
from ..factors import padded
from ..solvers.small_blocks import solve_coupled_blocks
from .batch_state import BatchGrams, Fits, Plan
from .pytrees import tree_concat, tree_slice


def feature_step(grams: BatchGrams, fits: Fits, plan: Plan, inner: InnerTolerance) -> Fits:
    """Minimise over ``F``, the shared part and the intercepts together."""
    point, parts = fits.factors, []
    for part, width, direct in plan.feature_parts:
        here, some = tree_slice(grams, part), tree_slice(fits, part)
        system = FeatureSystem(here, here.quadratic_at(some.factors), some, width)
        if direct:
            right = system.right()[..., None]
            flat = system.xp.linalg.solve(system.matrix(), right)[..., 0]
        else:
            flat = system.solve(inner).value
        steps = system.steps(flat)
        parts.append({**steps, "F": padded(steps["F"], point.F.shape[-1])})
    steps = tree_concat(parts)
    steps["F"] = steps["F"] * fits.inside[:, None, :]
    return fits.at(point.plus(**steps))


def task_step(quadratic: TaskQuadratic, fits: Fits, plan: Plan, inner: InnerTolerance) -> Fits:
    """Minimise over ``G`` and the deviations of the intercepts."""
    point, parts = fits.factors, []
    for part, width, direct in plan.task_parts:
        some = tree_slice(fits, part)
        hessian, low, ridge, right = task_system(tree_slice(quadratic, part), some, width)
        if fits.intercept:
            # Without deviations the last unknown of every task has nothing to move it.
            free = namespace(ridge).ones_like(ridge)
            free[:, -1] = some.deviates
            hessian = hessian * free[:, None, :, None] * free[:, None, None, :]
            right = right * free[:, None, :]
        if direct:
            step = solve_coupled_blocks(hessian, low, ridge, right).value
        else:
            step = solve_by_conjugate_gradients(hessian, low, ridge, right, width, inner).value
        steps = {"G": padded(step[..., :width], point.G.shape[-1])}
        if fits.intercept:
            steps["random_intercepts"] = step[..., width]
        parts.append(steps)
    steps = tree_concat(parts)
    steps["G"] = steps["G"] * fits.inside[:, None, :]
    return fits.at(point.plus(**steps))


def core_step(quadratic: TaskQuadratic, fits: Fits, plan: Plan) -> Fits:
    """Minimise over ``S``: dense systems of K·K unknowns."""
    point, widest = fits.factors, fits.factors.S.shape[-1]
    xp, parts = namespace(point.G), []
    for part, width, _ in plan.task_parts:
        matrix, gradient, _ = core_system(
            tree_slice(quadratic, part),
            point.G[part, :, :width],
            point.S[part, :width, :width],
            tree_slice(fits.penalties["S"], part),
        )
        step = xp.linalg.solve(matrix, xp.reshape(-gradient, (-1, width * width, 1)))
        step = padded(xp.reshape(step, gradient.shape), widest)
        parts.append(padded(step.mT, widest).mT)
    return fits.at(point.plus(S=tree_concat(parts)))
