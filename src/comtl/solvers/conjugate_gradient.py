"""Preconditioned conjugate gradients on a positive semidefinite operator, or on many at once."""

from __future__ import annotations

from collections.abc import Callable

from ..arrays import Array, dot, namespace, norm
from . import Solution


def conjugate_gradient(
    operator: Callable[[Array], Array],
    right: Array,
    *,
    preconditioner: Callable[[Array], Array] | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> Solution:
    """Solve ``operator(x) = right`` from zero until the residual falls by ``tol``.

    A warm start is a change of unknown: solve for the step from the point at hand. Every iterate
    lowers ``½⟨x, operator(x)⟩ - ⟨right, x⟩``, so stopping early is safe.
    """
    xp = namespace(right)
    x = xp.zeros_like(right)
    residual = xp.asarray(right, copy=True)
    start = norm(right)
    if start == 0.0:
        return Solution(x, "cg")
    scaled = residual if preconditioner is None else preconditioner(residual)
    direction = xp.asarray(scaled, copy=True)
    power = dot(residual, scaled)
    iterations, size = 0, start
    while iterations < max_iter:
        image = operator(direction)
        curvature = dot(direction, image)
        # Roundoff at the end of the road: no direction of descent is left.
        if not curvature > 0.0 or not power > 0.0:
            break
        step = power / curvature
        # In place, since these vectors are the largest arrays of a fit with many features.
        x += step * direction
        residual -= step * image
        iterations, size = iterations + 1, norm(residual)
        if size <= tol * start:
            break  # Before the preconditioner, which may well cost more than the operator.
        scaled = residual if preconditioner is None else preconditioner(residual)
        fresh = dot(residual, scaled)
        direction *= fresh / power
        direction += scaled
        power = fresh
    return Solution(x, "cg", size <= tol * start, iterations)


def conjugate_gradients(
    operator: Callable[[Array], Array],
    right: Array,
    *,
    preconditioner: Callable[[Array], Array],
    tol: float,
    max_iter: int,
) -> Array:
    """Solve many systems ``right`` (B, ...) at once; one that is done stays where it is."""
    xp = namespace(right)
    shape = right.shape[:1] + (1,) * (right.ndim - 1)
    none = xp.zeros(shape, dtype=right.dtype)
    one = none + 1.0

    def inner(left: Array, other: Array) -> Array:
        flat = (right.shape[0], -1)
        return xp.reshape(xp.vecdot(xp.reshape(left, flat), xp.reshape(other, flat)), shape)

    x, residual = xp.zeros_like(right), right
    least = tol**2 * inner(right, right)
    scaled = direction = preconditioner(residual)
    power = inner(residual, scaled)
    going = least > 0.0
    for _ in range(max_iter):
        image = operator(direction)
        curvature = inner(direction, image)
        going = going & (curvature > 0.0) & (power > 0.0)
        step = xp.where(going, power / xp.where(going, curvature, one), none)
        x = x + step * direction
        residual = residual - step * image
        going = going & (inner(residual, residual) > least)
        if not bool(xp.any(going)):
            break
        scaled = preconditioner(residual)
        fresh = inner(residual, scaled)
        direction = scaled + xp.where(going, fresh / xp.where(going, power, one), none) * direction
        power = fresh
    return x
