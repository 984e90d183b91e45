"""Reading arrays that lie on a device: tensors of torch, arrays of CuPy."""

from typing import Any

import numpy as np

from ..arrays.backends import (
    Array,
    asarray_like,
    device_name,
    is_cupy_sparse,
    is_device_sparse,
    is_torch_sparse,
    namespace,
    to_numpy,
)
from ..arrays.blocks import Block, RowBlocks
from ..arrays.packed import DeviceCSR

LARGEST = 1e152
"""Largest number that X and y may hold: squares, weighted and summed, must not overflow."""


def device_rows(estimator: Any, X: Array) -> Array:
    """Rows of float64 or float32, if the estimator works on a device."""
    if not getattr(estimator, "_on_devices", False):
        raise TypeError(
            f"{type(estimator).__name__} does not work on arrays of {device_name(X)}. Convert "
            "them to NumPy first, or use one of the public estimators of comtl."
        )
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(X.shape)}D array instead: X has the shape "
            f"{tuple(X.shape)}. Reshape your data to one row a sample."
        )
    return as_rows(X)


def refuse_empty(features: Array, shape: tuple[int, ...]) -> None:
    """Raise if no rows or no columns are left of an X of this shape."""
    if 0 in features.shape:
        what = "sample(s)" if features.shape[0] == 0 else "feature(s)"
        raise ValueError(
            f"Found array with 0 {what} (shape={tuple(shape)}) while a minimum of 1 is required."
        )


def as_rows(X: Array) -> Array:
    """Rows of float64 or float32; others become float64. Nothing is copied that need not be."""
    if is_torch_sparse(X) or is_cupy_sparse(X) or is_device_sparse(X):
        packed = DeviceCSR.of(X)
        values = as_rows(packed.data)
        return packed if values is packed.data else packed.astype(values.dtype)
    if getattr(X, "requires_grad", False):
        X = X.detach()
    xp = namespace(X)
    if X.dtype in (xp.float64, xp.float32):
        return X
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError("Complex data not supported: X must hold real numbers.")
    return xp.astype(X, xp.float64)


def device_target(y: Array, X: Array) -> tuple[Array, np.ndarray]:
    """Targets of a regression beside the rows, and which of a two-dimensional y are missing."""
    target = asarray_like(y, X, X.dtype)
    if getattr(target, "requires_grad", False):
        target = target.detach()
    if target.ndim not in (1, 2):
        raise ValueError(f"y must have one or two dimensions, got shape {tuple(target.shape)}.")
    if target.ndim == 1:
        check_device_finite(target, "y")
        return target, np.zeros(0, dtype=bool)
    xp = namespace(X)
    if bool(xp.any(xp.isinf(target))):
        raise ValueError("Input y contains infinity or a value too large.")
    refuse_huge(target, "y")
    return target, to_numpy(xp.isnan(target))


def refuse_huge(values: Array, name: str) -> None:
    """Refuse numbers beyond the largest; those of single precision are all below."""
    xp = namespace(values)
    if values.dtype == xp.float64 and bool(xp.any(xp.abs(values) > LARGEST)):
        raise ValueError(
            f"{name} holds numbers beyond {LARGEST:g}, too large to square; remove them, or divide "
            "by a constant."
        )


def check_device_finite(values: Array, name: str = "X") -> None:
    """Refuse NaN and infinity, block by block on the device."""
    values = values.data if is_device_sparse(values) else values
    xp = namespace(values)

    def check(block: Block) -> None:
        flat = xp.reshape(block.rows, (-1,))
        with np.errstate(over="ignore", invalid="ignore"):
            square = xp.matmul(flat, flat)
        if bool(xp.isfinite(square)):
            return
        if bool(xp.all(xp.isfinite(flat))):
            refuse_huge(flat, name)
            return
        if bool(xp.any(xp.isnan(flat))):
            raise ValueError(f"Input {name} contains NaN.")
        raise ValueError(f"Input {name} contains infinity or a value too large for {flat.dtype}.")

    RowBlocks(values if values.ndim == 2 else values[:, None]).total(check, 1)
