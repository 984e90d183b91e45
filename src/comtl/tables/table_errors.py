"""What is said of tables that cannot be used."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import final

from ..phrases import some


@final
class TableError(ValueError):
    """A table or a file that cannot be used as it is, and what to do about it, in one line.

    Examples
    --------
    >>> from comtl.tables import TableError
    >>> str(TableError("No column 'age'."))
    "No column 'age'."
    """


def require_columns(wanted: Iterable[str], present: Iterable[str], what: str) -> None:
    """Refuse names that are no columns of the table; ``what`` says who asked for them."""
    names = list(present)
    for name in wanted:
        if name not in names:
            near = get_close_matches(str(name), names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise TableError(
                f"{what}: the table has no column {name!r}{hint} Its columns are {some(names)}."
            )
