"""The feature step of many fits: ``F``, the shared part and the intercepts together."""

from __future__ import annotations

from ..engine.feature_step import FeatureSystem, solve_by_conjugate_gradients
from ..engine.recipe import InnerTolerance
from ..factors import padded
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
            flat = solve_by_conjugate_gradients(system, inner).value
        steps = system.steps(flat)
        parts.append({**steps, "F": padded(steps["F"], point.F.shape[-1])})
    steps = tree_concat(parts)
    steps["F"] = steps["F"] * fits.inside[:, None, :]
    return fits.at(point.plus(**steps))
