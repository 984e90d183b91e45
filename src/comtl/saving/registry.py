"""Which classes a file may name: a reader makes nothing else."""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar

Class = TypeVar("Class", bound=type)

_CLASSES: dict[str, type] = {}

MODULES = {
    "TableModel": "comtl.tables.model",
    "Encoder": "comtl.tables.encoder",
    "Column": "comtl.tables.columns",
    "Comparison": "comtl.comparison",
}
"""Where classes live that ``import comtl`` leaves out, since they need more than it does."""


def saved(kind: Class) -> Class:
    """Let files hold objects of a class, by its name.

    A dataclass is stored by its fields. The name is part of the format: a class that is renamed
    is registered under its old name too.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from comtl.saving.registry import known_class, saved
    >>> @saved
    ... @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    >>> known_class("Point") is Point
    True
    """
    _CLASSES[kind.__name__] = kind
    return kind


def known_class(name: str) -> type | None:
    """Class of that name, or None.

    Examples
    --------
    >>> from comtl.saving.registry import known_class
    >>> known_class("os.system") is None
    True
    """
    if name not in _CLASSES and name in MODULES:
        import_module(MODULES[name])
    return _CLASSES.get(name)


def is_saved(kind: type) -> bool:
    """Whether files may hold objects of a class.

    Examples
    --------
    >>> from comtl.saving.registry import is_saved
    >>> is_saved(object)
    False
    """
    return _CLASSES.get(kind.__name__) is kind
