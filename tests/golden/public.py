"""What a user sees of the public interface: parameters, defaults and what docstrings describe."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from golden.store import FOLDER

MODULES = (
    "comtl",
    "comtl.baselines",
    "comtl.datasets",
    "comtl.evaluation",
    "comtl.plot",
    "comtl.tables",
)
DESCRIBED = re.compile(r"^(\w[\w ]*)(?=\n-+$)|^(\w+_?(?:, \w+)*)(?= : )", re.MULTILINE)
"""Headings of a docstring's sections, and the names that they describe."""
FILE = FOLDER / "public.json"


def public() -> dict[str, str]:
    """By name the signature, and after it what the docstring describes."""
    found = {}
    for module in MODULES:
        for name in import_module(module).__all__:
            value = getattr(import_module(module), name)
            if callable(value):
                found[f"{module}.{name}"] = described(value)
            if inspect.isclass(value):
                for method, function in methods(value):
                    found[f"{module}.{name}.{method}"] = described(function)
    return found


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods that comtl defines: those of scikit-learn change with its version."""
    for name, value in inspect.getmembers(kind, callable):
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("comtl"):
            yield name, value


def described(value: Any) -> str:
    signature = "" if inspect.isclass(value) and issubclass(value, Exception) else plain(value)
    parts = DESCRIBED.finditer(inspect.getdoc(value) or "")
    return " | ".join([signature, *(part.group() for part in parts)])


def plain(value: Any) -> str:
    """Signature without annotations."""
    signature, empty = inspect.signature(value), inspect.Parameter.empty
    parameters = [one.replace(annotation=empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=empty))


def write_public() -> None:
    FILE.write_text(json.dumps(public(), indent=0, sort_keys=True) + "\n")


def read_public() -> dict[str, str]:
    return json.loads(FILE.read_text())


if __name__ == "__main__":
    write_public()
