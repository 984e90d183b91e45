"""Which classes a file may name: a reader makes nothing else."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)

Fields = dict[str, Any]

_CLASSES: dict[str, type] = {}
_FORMER: dict[str, tuple[type, Callable[[Fields], Fields]]] = {}

MODULES = {
    "TableModel": "comtl.tables.model",
    "Encoder": "comtl.tables.encoder",
    "Column": "comtl.tables.columns",
    "Comparison": "comtl.comparison",
}
"""Where classes live that ``import comtl`` leaves out, since they need more than it does."""


def saved(kind: Class) -> Class:
    """Let files hold objects of a class, by its name.

    A dataclass is stored by its fields. The name is part of the format: see :func:`formerly`.

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


def formerly(name: str, convert: Callable[[Fields], Fields] = dict) -> Callable[[Class], Class]:
    """Read objects of a class that is gone, or has another name now, as those of the class.

    ``convert`` makes its fields of those in the file.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from comtl.saving.registry import formerly, reader_of
    >>> @formerly("Place")
    ... @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    >>> reader_of("Place")[0] is Point
    True
    """

    def registered(kind: Class) -> Class:
        _FORMER[name] = kind, convert
        return kind

    return registered


def reader_of(name: str) -> tuple[type | None, Callable[[Fields], Fields]]:
    """Class that objects of a name are read as, and what makes its fields."""
    return _FORMER.get(name) or (known_class(name), dict)


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
