"""Infer the type of a column, and refuse what is ambiguous."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..phrases import count_noun
from .columns import CATEGORY, DATE, NUMBER, YES_NO, Column
from .dates import are_dates, dates_of, order_of, parts_of, shown_date
from .values import (
    MISSING_NUMBERS,
    NUMBER_PATTERN,
    are_numbers,
    decimal_of,
    levels_of,
    matches,
    null_missing,
    numbers_of,
    type_of,
    unmatched,
)

YES_NO_WORDS = {
    frozenset(pair): pair
    for pair in (("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("off", "on"))
}
"""Words for no and yes, in lower case."""
TIME = r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[aApP][mM])?"
DECORATED = r"[($€£¥₹+\- ]*\pN[\pN\pZ\s.,'’_]*([eE][+-]?\d+)?[\pZ\s%€$£¥₹)]*"
"""A number with signs around it or between its digits, which may be of any script."""
MAX_CATEGORY_LEVELS = 10
"""Levels that a category may have in any case."""
MOST_LEVELS = 2000
"""Levels by which the format of a column is inferred."""
LONG = 40
"""Letters beyond which text that hardly repeats is prose."""


@dataclass(frozen=True)
class SkippedColumn:
    """A column that is left out, or refused, and why."""

    name: str
    why: str
    refused: bool

    @classmethod
    def left_out(cls, name: str, what: str) -> SkippedColumn:
        """A column without any information."""
        return cls(name, f"Column {name!r} {what}: left out.", False)


def infer_column(
    values: pa.ChunkedArray,
    name: str,
    forced: str | None = None,
    *,
    order: str | None = None,
    decimal: str | None = None,
) -> Column | SkippedColumn:
    """Column as it will be encoded, or why it will not; ``forced`` is a kind the user named.

    So may be ``order``, of year, month and day in dates, and ``decimal``, the mark of numbers.
    """
    kind = type_of(values)
    if kind == "date" and forced is None:
        if not (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
            return SkippedColumn(name, f"Column {name!r} holds times: {_instead(name)}", True)
        return _date(values, name, "ymd")
    if kind == "other":
        why = f"Column {name!r} is of type {values.type}: leave it out with --drop {quote(name)}."
        return SkippedColumn(name, why, True)
    if forced == NUMBER or (forced is None and kind == "number"):
        return _number(values, name, coerce=forced == NUMBER)
    codes, levels = levels_of(values)
    if not levels:
        return SkippedColumn.left_out(name, "has no values")
    if forced == CATEGORY:
        return _category(codes, levels, name)
    words = _no_and_yes(levels)
    if words is not None:
        gaps = codes < 0
        fill = float(np.median(codes[~gaps] == levels.index(words[1])))
        return Column(name, YES_NO, words, fill, bool(gaps.any()), int(gaps.sum()))
    mark = decimal_of(pa.array(levels))
    if are_numbers(null_missing(pa.array(levels))) and not (decimal == "," and mark == ""):
        return _number(values, name)
    mark = decimal if mark == "" and decimal else mark
    if mark == "":
        why = (
            f"Column {name!r} holds numbers such as {levels[0]!r}, whose comma may be a decimal "
            "mark or stand between thousands: pass --decimal , for the first or --decimal . for "
            f"the second, or leave it out with --drop {quote(name)}."
        )
        return SkippedColumn(name, why, True)
    if mark:
        return _number(values, name, decimal=mark)
    if are_dates(pa.array(levels[:MOST_LEVELS])):
        order = order or order_of(pa.array(levels))
        if not order:
            why = (
                f"Column {name!r} holds dates such as {levels[0]!r}, of which the day may be the "
                "first number or the second: say which by --date-format dmy or --date-format mdy, "
                f"or leave it out with --drop {quote(name)}."
            )
            return SkippedColumn(name, why, True)
        return _date(values, name, order)
    why = _refusal(codes, levels, name)
    return SkippedColumn(name, why, True) if why else _category(codes, levels, name)


def _no_and_yes(levels: list[str]) -> tuple[str, str] | None:
    """Words for no and yes as they are written here, or None if the levels are others."""
    written = {level.strip().lower(): level for level in levels}
    pair = YES_NO_WORDS.get(frozenset(written))
    # Two spellings of one word are left to be levels, which shows them.
    if pair is None or len(written) != len(levels):
        return None
    return written[pair[0]], written[pair[1]]


def _refusal(codes: np.ndarray, levels: list[str], name: str) -> str:
    """Why text cannot be used as it is; empty where it can."""
    sample, flag = pa.array(levels[:MOST_LEVELS]), quote(name)
    times, digits, plain, decorated = (
        pc.mean(matches(pattern, sample)).as_py()
        for pattern in (TIME, r"\d+", NUMBER_PATTERN, DECORATED)
    )
    if times > 0.8:
        return f"Column {name!r} holds times, such as {levels[0]!r}: {_instead(name)}"
    # Digits alone, some with a leading zero, are postcodes and the like.
    if digits < 1.0:
        others = unmatched(NUMBER_PATTERN, sample)
        example = others[0].as_py() if len(others) else ""
        remedy = f"take it as names with --category {flag}, or leave it out with --drop {flag}."
        if decorated > 0.5 and decorated > plain:
            return (
                f"Column {name!r} holds numbers with signs, such as {example!r}: write plain "
                f"numbers (1234.5), {remedy}"
            )
        if plain > 0.5:
            return (
                f"Column {name!r} mixes numbers and text such as {example!r}: --number {flag} "
                f"takes words as missing; or {remedy}"
            )
    rows = int((codes >= 0).sum())
    if len(levels) * 2 > rows and pc.mean(pc.utf8_length(sample)).as_py() > LONG:
        return f"Column {name!r} holds free text: leave it out with --drop {flag}."
    if len(levels) > MAX_CATEGORY_LEVELS and len(levels) * 2 > rows:
        return (
            f"Column {name!r} has {count_noun(len(levels), 'different text')} in {rows:,} rows, as "
            f"names or identifiers have: leave it out with --drop {flag}, or keep it with "
            f"--category {flag}."
        )
    return ""


def _instead(name: str) -> str:
    return (
        "make a column with a number of it (such as hours) and leave it out "
        f"with --drop {quote(name)}, or take it as names with --category {quote(name)}."
    )


def _number(
    values: pa.ChunkedArray, name: str, *, coerce: bool = False, decimal: str = ""
) -> Column | SkippedColumn:
    numbers = numbers_of(values, name, coerce=coerce, decimal=decimal)
    gaps = np.isnan(numbers)
    if gaps.all():
        codes, words = levels_of(values, MISSING_NUMBERS)
        if words:
            rows = count_noun(int((codes >= 0).sum()), "row")
            why = f"Column {name!r} holds no number, but in {rows} text such as {words[0]!r}: "
            flag = quote(name)
            why += f"leave out --number {flag}, or pass --category {flag} or --drop {flag}."
            return SkippedColumn(name, why, True)
        return SkippedColumn.left_out(name, "has no values")
    known = numbers[~gaps]
    if not gaps.any() and (known == known[0]).all():
        return SkippedColumn.left_out(name, f"is {known[0]:g} in every row")
    fill = float(np.median(known))
    return Column(name, NUMBER, (), fill, bool(gaps.any()), int(gaps.sum()), coerce, decimal)


def _date(values: pa.ChunkedArray, name: str, order: str) -> Column | SkippedColumn:
    seconds = dates_of(values, name, order)
    gaps = np.isnan(seconds)
    known = seconds[~gaps]
    if not len(known):
        return SkippedColumn.left_out(name, "has no values")
    if not gaps.any() and (known == known[0]).all():
        return SkippedColumn.left_out(name, f"is {shown_date(float(known[0]))} in every row")
    fill, missing = float(np.quantile(known, 0.5, method="nearest")), int(gaps.sum())
    return Column(name, DATE, parts_of(known), fill, missing > 0, missing, order=order)


def _category(codes: np.ndarray, levels: list[str], name: str) -> Column | SkippedColumn:
    gaps = int((codes < 0).sum())
    if len(levels) == 1 and not gaps:
        return SkippedColumn.left_out(name, f"is {levels[0]!r} in every row")
    return Column(name, CATEGORY, tuple(levels), 0.0, gaps > 0, gaps)
