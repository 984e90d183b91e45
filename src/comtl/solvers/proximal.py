"""Accelerated proximal gradients on a quadratic plus a penalty with a proximal step."""

import math
from collections.abc import Callable

from ..arrays import Array, dot, namespace, norm
from ..penalties import Penalty
from . import Solution


def proximal_gradient(
    operator: Callable[[Array], Array],
    gradient: Array,
    start: Array,
    penalty: Penalty,
    *,
    bound: Array | None = None,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> Solution:
    """Minimise ``½⟨d, operator(d)⟩ + ⟨gradient, d⟩ + penalty(start + d)`` over the point.

    ``operator`` and ``gradient`` hold the smooth part of the penalty already. ``bound`` is the
    largest curvature, one a row where the operator keeps rows apart; it is found by power iteration
    where it is not given. Momentum restarts whenever it points uphill; the best point seen is
    returned, so the value never rises.
    """
    xp = namespace(start)
    if bound is None:
        bound = xp.asarray(largest_eigenvalue(operator, start) or 1.0, dtype=start.dtype)
    zero = xp.zeros_like(start)
    point, ahead, image, image_ahead = start, start, zero, zero
    best, best_value = start, penalty.proximal_value(start)
    momentum, iterations, change, scale = 1.0, 0, float("inf"), 0.0
    while iterations < max_iter and change > tol * scale:
        iterations += 1
        fresh = penalty.prox(ahead - (image_ahead + gradient) / bound, 1.0 / bound)
        step = fresh - start
        fresh_image = operator(step)
        move = fresh - ahead
        if dot(move, fresh_image - image_ahead) > (1.0 + 1e-12) * dot(move, bound * move):
            # The power iteration fell short of the largest curvature.
            bound = 2.0 * bound
            continue
        change, scale = norm(move), max(norm(fresh), 1e-300)
        value = 0.5 * dot(step, fresh_image) + dot(gradient, step) + penalty.proximal_value(fresh)
        if value < best_value:
            best, best_value = fresh, value
        if dot(ahead - fresh, fresh - point) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5)
        weight = (momentum - 1.0) / following
        ahead = fresh + weight * (fresh - point)
        image_ahead = fresh_image + weight * (fresh_image - image)
        point, image, momentum = fresh, fresh_image, following
    return Solution(best, "proximal", change <= tol * scale, iterations)


def largest_eigenvalue(operator: Callable[[Array], Array], like: Array, steps: int = 30) -> float:
    """Upper estimate of an operator's largest eigenvalue by power iteration."""
    xp = namespace(like)
    # A fixed vector without symmetry, so that results do not depend on a seed.
    vector = xp.cos(xp.arange(math.prod(like.shape), dtype=like.dtype) ** 2 + 1.0)
    vector = xp.reshape(vector, like.shape)
    value = 0.0
    for _ in range(steps):
        length = norm(vector)
        if length == 0.0:
            return 0.0
        vector = operator(vector / length)
        value = norm(vector)
    return value
