"""Errors of tables that cannot be used."""

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
    """Refuse names that are no columns of the table; ``what`` begins the message."""
    names = list(present)
    for name in wanted:
        if name not in names:
            near = get_close_matches(str(name), names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise TableError(
                f"{what}: the table has no column {name!r}{hint} Its columns are {some(names)}."
            )


def require_unique(names: list[str], name: str) -> None:
    """Refuse a file with several columns of one name."""
    twice = [column for column in dict.fromkeys(names) if names.count(column) > 1]
    if twice:
        raise TableError(
            f"{name} has several columns of the same name: {some(twice)}. Rename them."
        )
