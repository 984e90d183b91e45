"""Copies of fitted models whose arrays are held by NumPy, whatever library they were fitted in."""

from __future__ import annotations

import copy
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

from .arrays import on_device, to_numpy
from .own_rows import OwnRows

Model = TypeVar("Model")


def numpy_copy(value: Model) -> Model:
    """Return the value with every array on a device, however deep, copied to NumPy.

    What holds no such array is returned as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.conversion import numpy_copy
    >>> numpy_copy({"a": (np.ones(1), "text")})
    {'a': (array([1.]), 'text')}
    """
    return _converted(value)


def _converted(value: Any) -> Any:
    if on_device(value):
        return to_numpy(value)
    if isinstance(value, OwnRows):
        return value.to_scipy()
    if isinstance(value, BaseEstimator) or type(value) in (list, tuple, dict):
        parts = _parts(value)
        fresh = {name: _converted(part) for name, part in parts.items()}
        if all(fresh[name] is parts[name] for name in parts):
            return value
        if isinstance(value, BaseEstimator):
            made = copy.copy(value)
            vars(made).update(fresh)
            return made
        return fresh if type(value) is dict else type(value)(fresh.values())
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        fresh = {name: _converted(part) for name, part in parts.items()}
        changed = {name: part for name, part in fresh.items() if part is not parts[name]}
        return replace(value, **changed) if changed else value
    return value


def _parts(value: Any) -> dict[Any, Any]:
    if isinstance(value, BaseEstimator):
        return dict(vars(value))
    return value if type(value) is dict else dict(enumerate(value))
