"""Which library an array belongs to and where it lies: the namespace that the engine works in."""

import sys
from functools import partial
from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
from scipy import sparse

Array = Any
"""An array of any library that follows the array API standard."""

HOST = (np.ndarray, np.generic, sparse.sparray, sparse.spmatrix)
_MAKERS = frozenset({"arange", "empty", "eye", "full", "linspace", "ones", "zeros"})
"""Functions that make an array out of nothing, where the library likes if no device is given."""
_READ_BY_NUMPY = (
    array_api_compat.is_numpy_array,
    array_api_compat.is_dask_array,
    array_api_compat.is_jax_array,
    array_api_compat.is_ndonnx_array,
    array_api_compat.is_pydata_sparse_array,
)
"""Arrays that are read by way of NumPy: of NumPy itself, lazy ones, and such as cannot be changed
in place."""


class Space:
    """Namespace of a library whose new arrays lie on one device."""

    def __init__(self, library: Any, device: Any) -> None:
        self._library, self.device = library, device

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._library, name)
        if name in _MAKERS:
            found = partial(found, device=self.device)
        setattr(self, name, found)  # The next time it is found at once.
        return found

    def asarray(self, values: Any, *, dtype: Any = None, copy: bool | None = None) -> Array:
        """Array on the device; what NumPy holds is copied, never shared."""
        if isinstance(values, np.ndarray):
            values = np.array(values)  # torch warns of arrays that may not be written to
        return self._library.asarray(values, dtype=dtype, copy=copy, device=self.device)


_SPACES: dict[tuple[type, Any], Space] = {}
_WHERE: dict[type, bool] = {}
"""What was found out about types of arrays: asked for at every step."""


def device_key(values: Array) -> Any:
    """What tells the device of an array from others, to be looked up by."""
    device = getattr(values, "device", None)
    return getattr(device, "id", device)  # CuPy's devices have no hash of their own.


def namespace(*arrays: Array) -> Any:
    """Array namespace of dense arrays, on the device of the first; SciPy's count as NumPy."""
    if type(arrays[0]) is np.ndarray and len(arrays) == 1:  # called hundreds of times a sweep
        return array_api_compat.numpy
    if len(arrays) == 1:
        space = _SPACES.get((type(arrays[0]), device_key(arrays[0])))
        if space is not None:
            return space
    if all(isinstance(a, np.ndarray | sparse.sparray | sparse.spmatrix) for a in arrays):
        return array_api_compat.numpy
    dense = [a.data if is_device_sparse(a) else a for a in arrays if not sparse.issparse(a)]
    first = dense[0]
    key = type(first), device_key(first)
    if key not in _SPACES or any(type(a) is not type(first) for a in dense):
        library = array_api_compat.array_namespace(*dense)
        _SPACES[key] = Space(library, array_api_compat.device(first))
    return _SPACES[key]


def is_device_sparse(values: Any) -> bool:
    """Whether values are sparse rows on a device, as comtl holds them."""
    return getattr(values, "packed_on_device", False) is True


def is_sparse(values: Any) -> bool:
    """Whether values are sparse rows of SciPy or on a device: ``data``, ``indices``, ``indptr``."""
    return sparse.issparse(values) or is_device_sparse(values)


def on_device(values: Any) -> bool:
    """Whether values are an array of another library (torch, CuPy, ...), used where it lies."""
    kind = type(values)
    if kind not in _WHERE:
        _WHERE[kind] = not isinstance(values, HOST) and (
            is_device_sparse(values)
            or is_cupy_sparse(values)
            or (
                array_api_compat.is_array_api_obj(values)
                and not any(known(values) for known in _READ_BY_NUMPY)
            )
        )
    return _WHERE[kind]


def is_cupy_sparse(values: Any) -> bool:
    """Whether values are a sparse matrix of CuPy, without importing it."""
    module = sys.modules.get("cupyx.scipy.sparse")
    return module is not None and bool(module.issparse(values))


def is_torch_sparse(values: Any) -> bool:
    """Whether values are a tensor of torch in a sparse layout."""
    return array_api_compat.is_torch_array(values) and "strided" not in str(values.layout)


def device_name(values: Any) -> str:
    """Library and device of an array, to be shown to a user."""
    if not on_device(values):
        return "numpy"
    held = values.data if is_device_sparse(values) or is_cupy_sparse(values) else values
    return f"{_library(held)} on {held.device}"


def _library(values: Any) -> str:
    return type(values).__module__.partition(".")[0]


def to_numpy(values: Any) -> Any:
    """Copy an array on a device to NumPy, the only way off a device; others stay as they are."""
    if not on_device(values):
        return values
    if array_api_compat.is_torch_array(values):
        return values.detach().cpu().numpy()
    if array_api_compat.is_cupy_array(values):
        return values.get()
    library = array_api_compat.array_namespace(values)
    host = library.__array_namespace_info__().default_device()
    return np.array(array_api_compat.to_device(values, host))


def asarray_like(values: Any, like: Array, dtype: Any = None) -> Array:
    """Array in the library and on the device of ``like``, from NumPy or from the same library."""
    if not on_device(like):
        return np.asarray(values, dtype=dtype)
    held = [one.data if is_device_sparse(one) else one for one in (values, like)]
    if on_device(values) and len(set(map(_library, held))) > 1:
        raise TypeError(
            f"arrays of two libraries were given, {device_name(like)} and {device_name(values)}; "
            "convert one of them."
        )
    xp = namespace(like)
    if on_device(values):
        values = array_api_compat.to_device(values, xp.device)
        return values if dtype is None or values.dtype == dtype else xp.astype(values, dtype)
    return xp.asarray(np.asarray(values), dtype=dtype)
