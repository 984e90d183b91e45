"""Whether a value is of the type that an annotation names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np


@cache
def field_types(kind: type) -> dict[str, Any]:
    """Types of the fields of a dataclass.

    Examples
    --------
    >>> from comtl.extrapolation import Reach
    >>> from comtl.saving.types import field_types
    >>> field_types(Reach)["share"]
    <class 'float'>
    """
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def belongs(value: Any, hint: Any) -> bool:
    """Whether a value is of a type.

    Examples
    --------
    >>> from comtl.saving.types import belongs
    >>> belongs({"a": 1.0}, dict[str, float]), belongs("a", float | None)
    (True, False)
    """
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(belongs(value, one) for one in inside)
    if hint is None or hint is NoneType:
        return value is None
    if hint is float:
        numbers = int | float | np.floating | np.integer
        return isinstance(value, numbers) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(inside) == 2 and inside[1] is Ellipsis:
            return all(belongs(item, inside[0]) for item in value)
        return len(value) == len(inside) and all(map(belongs, value, inside))
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and all(
            belongs(key, inside[0]) and belongs(item, inside[1]) for key, item in value.items()
        )
    if origin is not None:
        return isinstance(value, origin)
    return isinstance(value, hint)
