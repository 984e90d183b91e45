"""Preconditioned conjugate gradients on a positive semidefinite operator, or on many at once."""

from collections.abc import Callable
from typing import Any

from ..arrays import Array, dot, namespace
from . import Solution


def conjugate_gradient(
    operator: Callable[[Array], Array],
    right: Array,
    *,
    preconditioner: Callable[[Array], Array] | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    many: bool = False,
) -> Solution:
    """Solve ``operator(x) = right`` from zero until the residual falls by ``tol``.

    A warm start is a change of unknown: solve for the step from the point at hand. Every iterate
    lowers ``½⟨x, operator(x)⟩ - ⟨right, x⟩``, so stopping early is safe. With ``many`` the leading
    axis holds systems of their own, and one that is done stays where it is.
    """
    xp = namespace(right)
    inner = _inner_of_many if many else dot
    x, residual = xp.zeros_like(right), xp.asarray(right, copy=True)
    size = inner(right, right)
    least = tol**2 * size
    going = size > 0.0
    if not many and not going:
        return Solution(x, "cg")
    scaled = residual if preconditioner is None else preconditioner(residual)
    direction = xp.asarray(scaled, copy=True)
    power = inner(residual, scaled)
    iterations = 0
    while iterations < max_iter:
        image = operator(direction)
        curvature = inner(direction, image)
        # Roundoff at the end of the road: no direction of descent is left.
        going = going & (curvature > 0.0) & (power > 0.0)
        if not many and not going:
            break
        step = _ratio(power, curvature, going)
        # In place, since these vectors are the largest arrays of a fit with many features.
        x += step * direction
        residual -= step * image
        iterations, size = iterations + 1, inner(residual, residual)
        going = going & (size > least)
        if not (bool(xp.any(going)) if many else going):
            break  # Before the preconditioner, which may well cost more than the operator.
        scaled = residual if preconditioner is None else preconditioner(residual)
        fresh = inner(residual, scaled)
        direction *= _ratio(fresh, power, going)
        direction += scaled
        power = fresh
    done = size <= least
    return Solution(x, "cg", bool(xp.all(done)) if many else done, iterations)


def _inner_of_many(left: Array, right: Array) -> Array:
    """Inner products by the leading axis, as many axes as there were."""
    xp, count = namespace(left), left.shape[0]
    flat = xp.vecdot(xp.reshape(left, (count, -1)), xp.reshape(right, (count, -1)))
    return xp.reshape(flat, (count,) + (1,) * (left.ndim - 1))


def _ratio(top: Any, bottom: Any, going: Any) -> Any:
    """Ratio; of many, zero for systems that are done."""
    if isinstance(going, bool):
        return top / bottom
    xp = namespace(top)
    none = xp.zeros_like(top)
    return xp.where(going, top / xp.where(going, bottom, none + 1.0), none)
