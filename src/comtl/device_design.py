"""Sizes and moments of the columns of rows that lie on a device, block by block."""

from __future__ import annotations

from .arrays import Array, is_packed, namespace, row_parts


def device_largest(X: Array) -> Array:
    """Largest absolute value of each column."""
    if is_packed(X):
        return X.column_extent()
    xp = namespace(X)
    largest = xp.zeros(X.shape[1], dtype=X.dtype)
    for block in row_parts(X):
        largest = xp.maximum(largest, xp.max(xp.abs(block), axis=0))
    return largest


def device_moments(X: Array, unit: Array, weights: Array, center: bool) -> tuple[Array, Array]:
    """Weighted mean and central second moment of the columns over ``unit``, in two passes.

    Summed up in double precision whatever the type of the rows.
    """
    xp = namespace(X)
    weights, unit = xp.astype(weights, xp.float64), xp.astype(unit, xp.float64)
    if is_packed(X):
        return X.column_moments(unit, weights, center)
    total = xp.sum(weights)
    mean = xp.zeros(X.shape[1], dtype=xp.float64)
    shares = row_parts(weights, like=X)
    if center:
        for block, share in zip(row_parts(X), shares, strict=True):
            mean = mean + share @ xp.astype(block, xp.float64) / unit
        mean = mean / total
    second = xp.zeros(X.shape[1], dtype=xp.float64)
    for block, share in zip(row_parts(X), shares, strict=True):
        gap = xp.astype(block, xp.float64) / unit - mean
        second = second + share @ gap**2
    return mean, second / total
