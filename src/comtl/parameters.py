"""Constructor parameters: what each may be, as types; checks before a fit; texts of docstrings."""

import inspect
import re
import textwrap
from collections.abc import Callable, Collection
from dataclasses import MISSING, dataclass, fields
from functools import cache, partial, wraps
from numbers import Integral, Real
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from .phrases import warn_caller

Class = TypeVar("Class", bound=Any)


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


def require_choice(name: str, value: Any, choices: Collection[Any]) -> Any:
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


def require_scaling(name: str, value: Any) -> bool | str:
    """Return True, False or "auto"."""
    if isinstance(value, str):
        require_choice(name, value, ("auto", True, False))
        return value
    return require_flag(name, value)


@dataclass(frozen=True)
class Doc:
    """What a parameter is for; its type and default in words where annotations do not tell."""

    text: str
    type: str | None = None
    default: str | None = None


def one_of(*choices: Any) -> partial[Any]:
    """Check that a parameter is one of the choices."""
    return partial(require_choice, choices=choices)


def at_least(low: int | float) -> partial[Any]:
    """Check that a parameter is a number, whole if ``low`` is, that is large enough."""
    require: Any = require_integer if isinstance(low, int) else require_number
    return partial(require, low=low)


Count = Annotated[int, require_integer]
NonNegative = Annotated[float, require_number]
Flag = Annotated[bool, require_flag]


@cache
def annotations_of(kind: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Type and further annotations of each constructor parameter of a dataclass, in order."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: (
            getattr(hints[field.name], "__origin__", None) or hints[field.name],
            getattr(hints[field.name], "__metadata__", ()),
        )
        for field in fields(kind)
    }


def check_parameters(estimator: Any) -> None:
    """Refuse constructor parameters that are not as annotated; None passes where it is a type."""
    for name, (hint, notes) in annotations_of(estimator.__class__).items():
        value = getattr(estimator, name)
        if value is None and NoneType in get_args(hint):
            continue
        for check in filter(callable, notes):
            check(name, value)


def documented(kind: Class) -> Class:
    """Write parameters, and attributes that base classes describe, into the docstring of a class.

    What the algorithm of a model leaves on it stands in the algorithm's docstring.
    """
    algorithm = kind._algorithm_class
    bases = kind.__mro__[1:] if algorithm is None else (*kind.__mro__[1:], *algorithm.__mro__)
    blocks = sections(kind)
    hints = annotations_of(kind)
    # Keywords of the class itself before those of its bases.
    own = [inspect.get_annotations(base) for base in kind.__mro__]
    depth = {name: place for place in reversed(range(len(own))) for name in own[place]}
    in_order = sorted(fields(kind), key=lambda one: (bool(one.kw_only), depth[one.name]))
    blocks["Parameters"] = "\n".join(_described(field, hints[field.name]) for field in in_order)
    shared = [sections(base).get("Attributes") for base in bases]
    blocks["Attributes"] = "\n".join(filter(None, [blocks.get("Attributes"), *shared]))
    order = ["", "Parameters", "Attributes"]
    kind.__doc__ = "\n\n".join(
        f"{name}\n{'-' * len(name)}\n{blocks[name]}" if name else blocks[name]
        for name in order + [name for name in blocks if name not in order]
    )
    return kind


def sections(kind: type) -> dict[str, str]:
    """Texts of the sections of a class's own docstring by their headings, the first under ''."""
    text = inspect.cleandoc(vars(kind).get("__doc__") or "")
    first, *rest = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return {"": first.strip(), **{name: body.strip() for name, body in pairs}}


def _described(field: Any, annotation: tuple[Any, tuple[Any, ...]]) -> str:
    """A parameter as numpydoc describes it."""
    hint, notes = annotation
    doc = next(note for note in notes if isinstance(note, Doc))
    checks = [note.keywords for note in notes if isinstance(note, partial)]
    choices = next((one["choices"] for one in checks if "choices" in one), None)
    names = [one.__name__ for one in get_args(hint) or [hint]] if doc.type is None else []
    words = doc.type or " or ".join("None" if name == "NoneType" else name for name in names)
    if choices is not None:
        words = "{" + ", ".join(map(_shown, choices)) + "}"
    if field.default is not MISSING:
        words += f", default={doc.default or _shown(field.default)}"
    wrapped = textwrap.wrap(doc.text, 92, break_on_hyphens=False, break_long_words=False)
    return f"{field.name} : {words}\n" + textwrap.indent("\n".join(wrapped), "    ")


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def former_name(old: str, new: str) -> property:
    """Attribute by the name it had, with a warning."""

    def read(self: Any) -> Any:
        text = f"{old} is called {new} now; the old name will go."
        warn_caller(text, FutureWarning)
        return getattr(self, new)

    return property(read, doc=f"Former name of ``{new}``.")


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


def refuses_removed(cls: Class) -> Class:
    """Let the constructor and ``set_params`` of a class refuse removed parameters by name."""

    def checked(method: Callable[..., Any], error: type[Exception]) -> Callable[..., Any]:
        @wraps(method)
        def call(self: Any, *args: Any, **given: Any) -> Any:
            for name in REMOVED.keys() & given:
                raise error(f"{name} of {type(self).__name__} was removed: {REMOVED[name]}")
            return method(self, *args, **given)

        return call

    cls.__init__ = checked(vars(cls)["__init__"], TypeError)
    cls.set_params = checked(cls.set_params, ValueError)
    return cls


FORMER_PARAMETERS = {"basis": "form"}
"""Parameters by the names they had."""


def takes_former(old: str, values: dict[Any, Any]) -> Callable[[Class], Class]:
    """Let a class take a parameter by the name, and by values, that it had, with a warning."""
    new = FORMER_PARAMETERS[old]

    def renamed(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(self: Any, *args: Any, **given: Any) -> Any:
            if old in given:
                value = given.pop(old)
                given[new] = now = values.get(value, value)
                text = f"{old}={value!r} is {new}={now!r} now; the old name will go."
                warn_caller(text, FutureWarning)
            return method(self, *args, **given)

        return call

    def decorated(cls: Class) -> Class:
        cls.__init__, cls.set_params = renamed(cls.__init__), renamed(cls.set_params)
        return cls

    return decorated
