"""Array libraries that estimators are tested on beside NumPy, without a GPU.

The strict reference library has devices that refuse to be mixed, and to be read by NumPy: what
works there copies nothing to the host on the sly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

NAMES = ("torch", "strict")


@dataclass(frozen=True)
class Library:
    """A library, one of its devices, and a type of numbers."""

    name: str
    convert: Callable[[np.ndarray], Any]
    device: Any
    module: Any
    width: int = 64

    def __call__(self, values: Any) -> Any:
        """Array of the library on the device; floats in the type, other numbers as they are."""
        values = np.asarray(values)
        if values.dtype.kind == "f":
            values = values.astype(f"float{self.width}")
        return self.convert(values)

    @property
    def dtype(self) -> Any:
        return getattr(self.module, f"float{self.width}")

    @property
    def rtol(self) -> float:
        return 1e-8 if self.width == 64 else 5e-3

    def assert_same(self, found: Any, expected: Any, rtol: float | None = None) -> None:
        """Compare an array of the library with one of NumPy: where it lies, type and numbers."""
        from comtl.arrays import to_numpy

        expected = np.asarray(expected)
        assert type(found) is type(self.convert(np.ones(1))), f"left the library: {type(found)}"
        assert found.device == self.device, f"left the device: {found.device}"
        if expected.dtype.kind == "f":
            assert found.dtype == self.dtype, f"another type: {found.dtype}"
        assert tuple(found.shape) == expected.shape
        scale = np.abs(expected).max(initial=1e-12) if expected.dtype.kind == "f" else 1.0
        rtol = self.rtol if rtol is None else rtol
        np.testing.assert_allclose(to_numpy(found), expected, rtol=rtol, atol=rtol * float(scale))


def make(name: str, width: int = 64) -> Library:
    """Return the library, or skip the test where it is not installed."""
    if name == "torch":
        torch = pytest.importorskip("torch", reason="torch is not installed")
        return Library(name, torch.asarray, torch.device("cpu"), torch, width)
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    device = strict.Device("device1")
    return Library(name, lambda a: strict.asarray(a, device=device), device, strict, width)
