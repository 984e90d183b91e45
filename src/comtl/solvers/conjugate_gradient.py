"""Preconditioned conjugate gradients on a positive semidefinite operator."""

from __future__ import annotations

from collections.abc import Callable

from ..arrays import Array, dot, namespace, norm
from .base import Solution


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

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.solvers.conjugate_gradient import conjugate_gradient
    >>> conjugate_gradient(lambda x: 2.0 * x, np.array([2.0, 4.0])).value
    array([1., 2.])
    """
    xp = namespace(right)
    x = xp.zeros_like(right)
    residual = xp.asarray(right, copy=True)
    start = norm(right)
    if start == 0.0:
        return Solution(x, "cg", True, {"iterations": 0, "residual": 0.0})
    scaled = residual if preconditioner is None else preconditioner(residual)
    direction = xp.asarray(scaled, copy=True)
    power = dot(residual, scaled)
    iterations, size = 0, start
    while iterations < max_iter and size > tol * start:
        image = operator(direction)
        curvature = dot(direction, image)
        # Roundoff at the end of the road: no direction of descent is left.
        if not curvature > 0.0 or not power > 0.0:
            break
        step = power / curvature
        # In place, since these vectors are the largest arrays of a fit with many features.
        x += step * direction
        residual -= step * image
        scaled = residual if preconditioner is None else preconditioner(residual)
        fresh = dot(residual, scaled)
        direction *= fresh / power
        direction += scaled
        power = fresh
        size = norm(residual)
        iterations += 1
    stats = {"iterations": iterations, "residual": size / start}
    return Solution(x, "cg", size <= tol * start, stats)
