"""Classes that a file may name, and checks of their fields."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

SavedClass = TypeVar("SavedClass", bound=type)

Fields = dict[str, Any]

_CLASSES: dict[str, type] = {}
_FORMER: dict[str, tuple[type, Callable[[Fields], Fields]]] = {}

NUMBERS = {float: int | float | np.floating | np.integer, int: int | np.integer}
"""What a field of numbers may hold, but no bool."""
MODULES = {
    "MultitaskClassifier": "comtl.stacking.multitask",
    "MultitaskRegressor": "comtl.stacking.multitask",
    "TableModel": "comtl.tables.table_model",
    "Encoder": "comtl.tables.encoder",
    "Column": "comtl.tables.columns",
    "Comparison": "comtl.evaluation.comparison",
}
"""Modules of classes that ``import comtl`` does not import."""

FORMER_CLASSES = {
    "Columns": "OutputColumns",
    "LinearTasks": "ColumnWeights",
    "RelatedClassifier": "CoregionalisedRidgeClassifier",
    "RelatedRegressor": "CoregionalisedRidgeRegressor",
    "Spread": "PredictiveVariance",
    "Step": "Iteration",
    "TaskErrors": "ErrorModel",
    "Reach": "StepLength",
    "Units": "Scaling",
}
"""Classes by their names in files of earlier versions."""

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
"""By class, fields by their names in files of earlier versions."""


class ModelFileError(ValueError):
    """A file that cannot be read as a model, or a model that cannot be written."""


def saved(kind: SavedClass) -> SavedClass:
    """Let files hold objects of a class, by its name and those of its fields.

    The names are part of the format: former ones go to ``FORMER_CLASSES`` and ``FORMER_FIELDS``.
    """
    _CLASSES[kind.__name__] = kind
    return kind


def formerly(name: str, convert: Callable[[Fields], Fields]) -> Callable[[SavedClass], SavedClass]:
    """Read objects of a removed class as those of the decorated one, with converted fields."""

    def registered(kind: SavedClass) -> SavedClass:
        _FORMER[name] = kind, convert
        return kind

    return registered


def reader_of(name: str) -> tuple[type | None, Callable[[Fields], Fields]]:
    """Class of a name, present or former, None if there is none, and what makes its fields."""
    if name in _FORMER:
        return _FORMER[name]
    if name not in _CLASSES:
        name = FORMER_CLASSES.get(name, name)
    if name not in _CLASSES and name in MODULES:
        import_module(MODULES[name])
    return _CLASSES.get(name), dict


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
    if hint in NUMBERS:
        return isinstance(value, NUMBERS[hint]) and not isinstance(value, bool)
    if not isinstance(value, origin or hint):
        return False
    if origin is tuple:
        hints = inside[:1] * len(value) if inside[1:] == (Ellipsis,) else inside
        return len(value) == len(hints) and all(map(belongs, value, hints))
    if origin in (dict, Mapping):
        return all(belongs(key, inside[0]) and belongs(v, inside[1]) for key, v in value.items())
    return True
