"""Location and spread of a target, safe at any size."""

from __future__ import annotations

import numpy as np

from ..arrays import namespace, weighted_mean


def target_units(
    y: np.ndarray, weights: np.ndarray, *, center: bool, scale: bool
) -> tuple[float, float]:
    """Weighted mean and standard deviation of the target."""
    xp = namespace(y)
    unit = target_unit(float(xp.max(xp.abs(y))), float(xp.finfo(y.dtype).max), scale=scale)
    small = xp.astype(y / unit, xp.float64)
    mean = weighted_mean(small, weights) if center else 0.0
    spread = weighted_mean((small - mean) ** 2, weights) ** 0.5
    return scaled_units(mean, spread, unit, scale=scale)


def target_unit(largest: float, limit: float, *, scale: bool) -> float:
    """Size of the target to sum it up in, so that squares stay below ``limit``."""
    unit = largest or 1.0
    if not scale and not unit < limit**0.25:
        raise ValueError(
            "y has values too large to square safely; rescale it or leave standardize=True."
        )
    return unit


def scaled_units(mean: float, spread: float, unit: float, *, scale: bool) -> tuple[float, float]:
    """Shift and scale of the target, from its mean and spread over ``unit``."""
    # A constant target leaves rounding only; its own size will do.
    return mean * unit, (spread if spread > 1e-12 else 1.0) * unit if scale else 1.0
