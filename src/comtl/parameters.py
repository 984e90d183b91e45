"""Checks of constructor parameters: each error names the parameter, the trouble and the remedy."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any


def require_integer(name: str, value: Any, low: int = 1) -> int:
    """Return a whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(
            f"{name} must be an integer, got {value!r} of type {type(value).__name__}; "
            f"pass a whole number of at least {low}."
        )
    if value < low:
        raise ValueError(f"{name} must be at least {low}, got {value!r}.")
    return int(value)


def require_number(name: str, value: Any, *, low: float = 0.0) -> float:
    """Return a finite number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}.")
    number = float(value)
    if not low <= number < float("inf"):
        raise ValueError(f"{name} must be a finite number of at least {low:g}, got {value!r}.")
    return number


def require_level(name: str, value: Any) -> float:
    """Return a probability strictly between 0 and 1."""
    number = require_number(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, such as 0.9, got {value!r}.")
    return number


def require_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """Return one of the choices."""
    if not any(value is c or (isinstance(value, str) and value == c) for c in choices):
        options = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{name} must be one of {options}, got {value!r}.")
    return value


def require_flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool) and type(value).__name__ != "bool":
        raise TypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def former_name(old: str, new: str) -> property:
    """Attribute by the name it had, with a warning."""

    def read(self: Any) -> Any:
        text = f"{old} is called {new} now; the old name will go."
        warnings.warn(text, FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(read, doc=f"Former name of ``{new}``.")
