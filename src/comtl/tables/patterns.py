"""How values are written in tables: numbers, missing values, yes and no, dates."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

NUMBER_PATTERN = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
"""A number as every program reads it."""
CODE = r"[+-]?0\d+"
"""Digits with a leading zero, as in postcodes: a name rather than a number."""
INFINITE = r"[+-]?([iI]nf|INF|[iI]nfinity|INFINITY)"
ANY_NUMBER = f"{NUMBER_PATTERN}|{INFINITE}"
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
"""What means missing in any column."""
MISSING_NUMBERS = (*MISSING, "na", "NAN", "None", "none", "-", "?", ".")
"""What means missing among numbers."""
YES_NO_WORDS = {
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
DECORATED = r"[($€£¥₹+\- ]*\d[\d\s.,'’_]*([eE][+-]?\d+)?[\s%€$£¥₹)]*"
"""A number with signs around it or between its digits."""


def missing_words(as_text: bool) -> tuple[str, ...]:
    """Words that mean missing; only the empty one where words are taken as text."""
    return ("",) if as_text else MISSING


def share(pattern: str, values: Collection[str]) -> float:
    """Share of the values that match a pattern, spaces around them aside."""
    matches = sum(re.fullmatch(pattern, value.strip()) is not None for value in values)
    return matches / len(values) if values else 0.0


def first_not(pattern: str, values: Iterable[str]) -> str:
    """First value that does not match a pattern; empty where all do."""
    return next((v for v in values if re.fullmatch(pattern, v.strip()) is None), "")


def are_numbers(values: Collection[str]) -> bool:
    """Whether text is all plain numbers, none of which is a code with a leading zero."""
    return bool(values) and all(
        re.fullmatch(ANY_NUMBER, value.strip()) and not re.fullmatch(CODE, value.strip())
        for value in values
    )


def yes_no(values: Iterable[str]) -> tuple[str, str] | None:
    """Words for no and yes as they are written here, or None if the values are others."""
    written = {value.strip().lower(): value for value in values}
    pair = YES_NO_WORDS.get(frozenset(written))
    # Two spellings of one word are left to be levels, which shows them.
    if pair is None or len(written) != len(set(values)):
        return None
    return written[pair[0]], written[pair[1]]
