"""Which classes a file may name, and checks of what it claims of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

SavedClass = TypeVar("SavedClass", bound=type)

Fields = dict[str, Any]

_CLASSES: dict[str, type] = {}
_FORMER: dict[str, tuple[type, Callable[[Fields], Fields]]] = {}

MODULES = {
    "TableModel": "comtl.tables.table_model",
    "Encoder": "comtl.tables.encoder",
    "Column": "comtl.tables.columns",
    "Comparison": "comtl.evaluation.comparison",
}
"""Where classes live that ``import comtl`` leaves out, since they need more than it does."""

FORMER_CLASSES = {
    "Columns": "OutputColumns",
    "RelatedClassifier": "CoregionalisedRidgeClassifier",
    "RelatedRegressor": "CoregionalisedRidgeRegressor",
    "Spread": "PredictiveVariance",
    "Step": "Iteration",
    "TaskErrors": "ErrorModel",
    "Reach": "StepLength",
    "Units": "Scaling",
}
"""Classes by the names that files of earlier versions have for them."""

FORMER_FIELDS = {
    "Column": {"loose": "coerce"},
    "Comparison": {
        "gains": "loss_reduction",
        "gain_errors": "loss_reduction_se",
        "levels": "nominal",
        "covered": "coverage",
    },
    "ErrorModel": {"freedom": "df"},
    "Factors": {"deviations": "random_intercepts"},
    "Iteration": {"reach": "step_length"},
    "LearnedRelation": {"at_rest": "converged"},
    "Prior": {"structure": "covariance", "level": "residual_variance"},
    "RidgedRelation": {"at_rest": "converged"},
    "State": {"pooling": "intercept_penalty", "pools": "estimates_pooling"},
    "TableModel": {"verbatim": "task_as_text"},
}
"""By class, fields by the names that files of earlier versions have for them."""


def saved(kind: SavedClass) -> SavedClass:
    """Let files hold objects of a class, by its name.

    A dataclass is stored by its fields. Names are part of the format: those of a renamed class or
    field go to ``FORMER_CLASSES`` and ``FORMER_FIELDS``.
    """
    _CLASSES[kind.__name__] = kind
    return kind


def formerly(name: str, convert: Callable[[Fields], Fields]) -> Callable[[SavedClass], SavedClass]:
    """Read objects of a class that is gone as those of the class.

    ``convert`` makes its fields of those in the file.
    """

    def registered(kind: SavedClass) -> SavedClass:
        _FORMER[name] = kind, convert
        return kind

    return registered


def reader_of(name: str) -> tuple[type | None, Callable[[Fields], Fields]]:
    """Class that objects of a name are read as, and what makes its fields."""
    return _FORMER.get(name) or (known_class(name), dict)


def known_class(name: str) -> type | None:
    """Class of that name, present or former, or None."""
    if name not in _CLASSES:
        name = FORMER_CLASSES.get(name, name)
    if name not in _CLASSES and name in MODULES:
        import_module(MODULES[name])
    return _CLASSES.get(name)


def is_saved(kind: type) -> bool:
    """Whether files may hold objects of a class."""
    return _CLASSES.get(kind.__name__) is kind


@cache
def field_types(kind: type) -> dict[str, Any]:
    """Types of the fields of a dataclass."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def belongs(value: Any, hint: Any) -> bool:
    """Whether a value is of a type."""
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
