"""Constructor parameters that are gone: refused with what to do instead, and left out of files."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

_LINKS = (
    "fit without it and apply sklearn.covariance.graphical_lasso to "
    "model.task_relation_.toarray(), as in examples/plot_coclusters.py."
)
REMOVED = {
    "relation_penalty": _LINKS,
    "alpha_relation": _LINKS,
    "warm_start": "checkpoint= continues a fit that was interrupted, and estimators that end in CV "
    "fit a path of penalties.",
}
"""Advice for each, for one release."""

Class = TypeVar("Class", bound=type)


def refuses(*names: str) -> Callable[[Class], Class]:
    """Let the constructor of a class refuse removed parameters by name."""

    def wrapped(cls: Class) -> Class:
        construct = vars(cls)["__init__"]

        @wraps(construct)
        def checked(self: Any, *args: Any, **given: Any) -> None:
            for name in names:
                if name in given:
                    kind = type(self).__name__
                    raise TypeError(f"{name} of {kind} was removed: {REMOVED[name]}")
            construct(self, *args, **given)

        cls.__init__ = checked  # type: ignore[misc]
        return cls

    return wrapped
