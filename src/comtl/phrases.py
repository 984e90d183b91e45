"""Numbers, names and values as messages and JSON have them, and warnings of whose line it is."""

import math
import os
import re
import sys
import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""All but tab and line feed, and marks that turn the direction of text."""


def count_noun(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def some(names: Iterable[object], limit: int = 8) -> str:
    """Names in quotation marks, a few of them: ``'a', 'b' and 1 more``."""
    listed = list(names)
    shown = ", ".join(repr(name) for name in listed[:limit])
    return shown + (f" and {len(listed) - limit} more" if len(listed) > limit else "")


def visible(text: str) -> str:
    r"""Text with control characters, which a terminal would obey, as escapes: ``\x1b``."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def jsonable(value: Any, digits: int | None = None) -> Any:
    """Arrays as lists, what is not finite as None, numbers to some digits."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return value if digits is None else float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {str(key): jsonable(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item, digits) for item in value]
    return str(value) if isinstance(value, Path) else value


_PASSED = tuple(
    f"{Path(found.origin).parent}{os.sep}"
    for found in map(find_spec, (__package__, "sklearn", "joblib"))
    if found is not None and found.origin is not None
)


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn at the line that called comtl, by way of scikit-learn and joblib or not."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
