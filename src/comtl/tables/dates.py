"""Dates of tables: how they are written, and what of them becomes features."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .values import TableError, null_missing, plain, type_of

ORDERS = ("ymd", "dmy", "mdy")
"""Orders of year, month and day."""
TREND, YEAR, WEEKDAY, HOUR = "trend", "year", "weekday", "hour"
"""Parts of a date that may become features."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
LEAST_SPAN = 180.0
"""Days from which the season counts."""
ORIGIN = np.datetime64("2000-01-01", "s")
YEAR_LENGTH = 365.2425
CENTURY = 69
"""Years of two digits from this one on are of the century before."""
_TIME = (
    r"(?:[T ]+(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,]\d+)?)?)?(?: ?(?P<p>[aApP])[mM])?"
    r"(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?"
)
_NUMBERS = r"(?P<a>\d{1,4})(?P<s>[-/.]) ?(?P<b>\d{1,2})[-/.] ?(?P<c>\d{1,4})"
_NAME = "(?P<b>(?i:" + "|".join(MONTHS) + "))[a-z]*"
PATTERNS = tuple(
    f"^{date},?{_TIME}$"
    for date in (
        _NUMBERS,
        rf"(?P<a>\d{{1,2}})(?P<s>[ .-])+{_NAME}[., -]+(?P<c>\d{{4}}|\d{{2}})",
        rf"{_NAME}[. ]+(?P<a>\d{{1,2}})(?P<s>,)? +(?P<c>\d{{4}})",
    )
)
"""Dates in numbers, and with names of months."""


def are_dates(text: pa.Array) -> bool:
    """Whether most of the texts are dates."""
    known = null_missing(text).drop_null()
    found = [pc.match_substring_regex(known, pattern) for pattern in PATTERNS]
    likely = pc.or_(pc.or_(*found[:2]), found[2])
    return bool(len(known)) and float(pc.mean(likely).as_py()) > 0.8


def order_of(text: pa.Array) -> str:
    """Order of year, month and day in which all texts are dates; empty where two make sense."""
    known = null_missing(text).drop_null()
    fit = [order for order in ORDERS if not np.isnat(_parsed(known, order)).any()]
    if len(fit) == 1:
        return fit[0]
    if fit and all(np.array_equal(_parsed(known, fit[0]), _parsed(known, one)) for one in fit):
        return fit[0]
    if fit:
        return ""
    # The order that fits most, whose exceptions are named when the column is read.
    wrong = [int(np.isnat(_parsed(known, order)).sum()) for order in ORDERS]
    return ORDERS[int(np.argmin(wrong))]


def dates_of(column: pa.ChunkedArray, name: str, order: str) -> np.ndarray:
    """Seconds since 2000, NaN where missing."""
    kind, whole = type_of(column), plain(column)
    if kind == "text":
        text = null_missing(whole)
        found = _parsed(pc.fill_null(text, ""), order)
        wrong = np.isnat(found) & text.is_valid().to_numpy(zero_copy_only=False)
        if wrong.any():
            row = int(wrong.argmax())
            raise TableError(
                f"Column {name!r} should hold dates (of the order {order}) but row {row + 1} is "
                f"{text[row].as_py()!r}: correct it, leave it empty, or say what comes first by "
                "--date-format."
            )
    elif kind == "date" and (pa.types.is_date(whole.type) or pa.types.is_timestamp(whole.type)):
        stamps = whole.cast(pa.timestamp("s", getattr(whole.type, "tz", None)), safe=False)
        found = stamps.cast(pa.int64()).to_numpy(zero_copy_only=False)
        gaps = ~stamps.is_valid().to_numpy(zero_copy_only=False)
        found = np.where(gaps, 0, found).astype("datetime64[s]")
        found[gaps] = np.datetime64("NaT")
    elif kind == "nothing":
        found = np.full(len(whole), np.datetime64("NaT", "s"))
    else:
        raise TableError(f"Column {name!r} should hold dates but holds {whole.type}.")
    gap = (found - ORIGIN).astype(float)
    return np.where(np.isnat(found), np.nan, gap)


def parts_of(seconds: np.ndarray) -> tuple[str, ...]:
    """Parts of known dates that vary enough to tell anything."""
    days = np.floor(seconds / 86400.0)
    tells = {
        TREND: True,
        YEAR: np.ptp(days) >= LEAST_SPAN,
        WEEKDAY: len(np.unique(days % 7.0)) > 1,
        HOUR: np.ptp(seconds - 86400.0 * days) > 0.0,
    }
    return tuple(part for part, one in tells.items() if one)


def shown_date(seconds: float) -> str:
    """A date as people write it."""
    date = ORIGIN + np.timedelta64(int(seconds), "s")
    return str(date.astype("datetime64[D]") if seconds % 86400 == 0 else date).replace("T", " ")


def names_of(name: str, parts: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the features of a column of dates."""
    found = {
        TREND: (name,),
        YEAR: (f"{name} year (cos)", f"{name} year (sin)"),
        WEEKDAY: tuple(f"{name} {day}" for day in DAYS),
        HOUR: (f"{name} hour (cos)", f"{name} hour (sin)"),
    }
    return tuple(one for part in parts for one in found[part])


def features_of(seconds: np.ndarray, parts: tuple[str, ...]) -> np.ndarray:
    """Days since 2000, place in the year and in the day as angles, and days of the week."""
    days = np.floor(seconds / 86400.0)
    year, hour = (
        2.0 * np.pi * turn for turn in (days / YEAR_LENGTH, (seconds - 86400.0 * days) / 86400.0)
    )
    # The first of January 2000 was a Saturday.
    weekday = ((days.astype(np.int64) + 5) % 7)[:, None] == np.arange(7)
    found = {
        TREND: seconds[:, None] / 86400.0,
        YEAR: np.column_stack([np.cos(year), np.sin(year)]),
        WEEKDAY: weekday.astype(float),
        HOUR: np.column_stack([np.cos(hour), np.sin(hour)]),
    }
    return np.hstack([found[part] for part in parts])


def _parsed(text: pa.Array, order: str) -> np.ndarray:
    """Texts as dates, NaT for what is none in this order."""
    found = np.full(len(text), np.datetime64("NaT", "s"))
    for number, pattern in enumerate(PATTERNS):
        parts = pc.extract_regex(text, pattern)
        inside = np.flatnonzero(parts.is_valid().to_numpy(zero_copy_only=False))
        if len(inside):
            parts = parts.take(pa.array(inside))
            found[inside] = _assembled(parts, order if number == 0 else "dmy", number > 0)
    return found


def _assembled(parts: pa.StructArray, order: str, named: bool) -> np.ndarray:
    """Dates of the parts of texts, NaT where there is no such day."""

    def numbers(field: str) -> np.ndarray:
        text = pc.struct_field(parts, field)
        filled = pc.if_else(pc.fill_null(pc.equal(text, ""), True), "0", text)
        return filled.cast(pa.int64()).to_numpy(zero_copy_only=False)

    def digits(field: str) -> np.ndarray:
        return pc.utf8_length(pc.struct_field(parts, field)).to_numpy(zero_copy_only=False)

    place = dict(zip(order, "abc", strict=True))
    year, day = numbers(place["y"]), numbers(place["d"])
    if named:
        short = pc.utf8_lower(pc.utf8_slice_codeunits(pc.struct_field(parts, "b"), 0, 3))
        month = pc.index_in(short, pa.array(MONTHS)).to_numpy(zero_copy_only=False) + 1
    else:
        month = numbers(place["m"])
    long = digits(place["y"])
    year = np.where(long == 2, year + np.where(year < CENTURY, 2000, 1900), year)
    dots = pc.equal(pc.struct_field(parts, "s"), ".").to_numpy(zero_copy_only=False)
    valid = ((long == 4) | (long == 2) & (order != "ymd")) & (digits(place["d"]) <= 2)
    # Nobody writes the month first between dots.
    valid &= (month >= 1) & (month <= 12) & (day >= 1) & ~(dots & (order == "mdy"))
    first = ((year - 1970) * 12 + np.where(valid, month, 1) - 1).astype("datetime64[M]")
    date = first.astype("datetime64[D]") + (day - 1)
    valid &= date.astype("datetime64[M]") == first
    hour, minute, second = (numbers(field) for field in "HMS")
    half = pc.utf8_lower(pc.struct_field(parts, "p")).to_numpy(zero_copy_only=False)
    hour = np.where((half == "p") | (half == "a"), hour % 12, hour) + 12 * (half == "p")
    valid &= (hour < 25) & (minute < 60) & (second < 61)
    found = date.astype("datetime64[s]") + (3600 * hour + 60 * minute + second)
    return np.where(valid, found, np.datetime64("NaT", "s"))
