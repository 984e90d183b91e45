"""How values are written in tables: numbers, missing values, yes and no, dates."""

from __future__ import annotations

import re
from collections.abc import Iterable

NUMBER_PATTERN = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
"""A number as every program reads it."""
CODE = r"[+-]?0\d+"
"""Digits with a leading zero, as in postcodes: a name rather than a number."""
INFINITE = r"[+-]?([iI]nf|INF|[iI]nfinity|INFINITY)"
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
"""What stands for nothing in any column."""
MISSING_NUMBERS = (*MISSING, "na", "NAN", "None", "none", "-", "?", ".")
"""What stands for nothing among numbers."""
YES_NO = {
    frozenset(pair): pair
    for pair in (("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("off", "on"))
}
"""Words for no and yes, in lower case."""
DATE = (
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?"
    r"|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})([T ].*)?"
    r"|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[aApP][mM])?"
    r"|\d{1,2}[ -](?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ -]\d{2,4}"
)
DRESSED = r"[($€£¥₹+\- ]*\d[\d\s.,'’_]*([eE][+-]?\d+)?[\s%€$£¥₹)]*"
"""A number with signs around it or between its digits."""


def share(pattern: str, values: Iterable[str]) -> float:
    """Share of the values that are of a pattern, spaces around them aside."""
    known = list(values)
    found = re.compile(pattern)
    hits = sum(found.fullmatch(value.strip()) is not None for value in known)
    return hits / len(known) if known else 0.0


def first_not(pattern: str, values: Iterable[str]) -> str:
    """First value that is not of a pattern; empty where all are."""
    found = re.compile(pattern)
    return next((v for v in values if found.fullmatch(v.strip()) is None), "")


def are_numbers(values: Iterable[str]) -> bool:
    """Tell whether text is all plain numbers, none of which is a code with a leading zero."""
    known = list(values)
    return (
        bool(known)
        and share(f"{NUMBER_PATTERN}|{INFINITE}", known) == 1.0
        and share(CODE, known) == 0.0
    )


def yes_no(values: Iterable[str]) -> tuple[str, str] | None:
    """Words for no and yes as they are written here, or None if the values are others."""
    written = {value.strip().lower(): value for value in values}
    pair = YES_NO.get(frozenset(written))
    # Two spellings of one word are left to be levels, which shows them.
    if pair is None or len(written) != len(set(values)):
        return None
    return written[pair[0]], written[pair[1]]
