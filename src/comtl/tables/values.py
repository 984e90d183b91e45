"""Values of tables: how they are written, and columns as NumPy arrays or levels of text."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, final

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..phrases import count_noun, some

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
DECIMALS = {".": ",", ",": "."}
"""Decimal marks, and the mark that may then stand between thousands."""
SIGNS = "€$£¥₹%"
SPACES = "\u00a0\u202f\u2009 '’"
LIKENESS = 0.7
"""Least ratio of difflib for a name that may be meant: 0.8 of two letters swapped in five."""
LARGEST = 1e100
"""Numbers beyond this overflow when they are squared and summed."""


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
    missing = [name for name in wanted if name not in names]
    if missing:
        alike = {name.casefold(): name for name in names}
        words = [str(name).casefold() for name in missing]
        near = [one for word in words for one in get_close_matches(word, alike, 1, LIKENESS)]
        near += [one for one in alike for word in words if one.startswith(word)]
        hint = f"; did you mean {some(dict.fromkeys(alike[one] for one in near))}?" if near else "."
        raise TableError(
            f"{what}: the table has no column {some(missing)}{hint} Its columns are {some(names)}."
        )


def require_unique(names: list[str], name: str) -> None:
    """Refuse a file with several columns of one name."""
    twice = [column for column in dict.fromkeys(names) if names.count(column) > 1]
    if twice:
        raise TableError(
            f"{name} has several columns of the same name: {some(twice)}. Rename them."
        )


def as_table(frame: Any) -> pa.Table:
    """Frame of any make (pandas, polars, Arrow) as an Arrow table."""
    if not nw.dependencies.is_into_dataframe(frame):
        raise TableError(
            f"frame must be a pandas, polars or Arrow table, got {type(frame).__name__}; for files "
            "use read_table(path).table."
        )
    try:
        # Before pandas 3 an index would become a column.
        table = nw.maybe_reset_index(nw.from_native(frame, eager_only=True)).to_arrow()
    except (pa.ArrowException, nw.exceptions.NarwhalsError, TypeError, ValueError) as error:
        first = " ".join(str(error).split())[:200]
        raise TableError(
            f"The frame has a column of mixed types or a name twice ({first}); give each column "
            "one type, for example with astype(str), and another name."
        ) from error
    wrong = [name for name in table.column_names if not isinstance(name, str)]
    if wrong:
        raise TableError(f"Columns must have names that are text, got {some(wrong)}.")
    if not table.num_rows:
        raise TableError("The table has columns and no rows; give it at least a few.")
    return table


def type_of(column: pa.ChunkedArray) -> str:
    """One of "number", "bool", "text", "date", "nothing" and "other"."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = {
        "nothing": (pa.types.is_null,),
        "bool": (pa.types.is_boolean,),
        "number": (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
        "text": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
        "date": (pa.types.is_temporal,),
    }
    return next((name for name, ones in tests.items() if any(one(kind) for one in ones)), "other")


def plain(column: pa.ChunkedArray) -> pa.Array:
    """Column in one piece, text as plain text."""
    whole = column.combine_chunks()
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    return whole.cast(pa.string()) if type_of(column) == "text" else whole


def numbers_of(
    column: pa.ChunkedArray, name: str, *, coerce: bool = False, decimal: str = ""
) -> np.ndarray:
    """Numbers as float64, NaN where missing; text must be plain numbers.

    With ``coerce`` words count as missing, but for those with a digit, which may be numbers. With
    a ``decimal`` mark numbers may have signs and marks between thousands.
    """
    kind, whole = type_of(column), plain(column)
    if kind == "text":
        whole = null_missing(whole)
        if decimal:
            bare = pc.replace_substring_regex(whole, f"[{SIGNS}{SPACES}{DECIMALS[decimal]}]", "")
            bare = pc.replace_substring(bare, decimal, ".")
            whole = pc.if_else(matches(_signed(decimal), whole), bare, whole)
        if coerce:
            whole = pc.if_else(matches(f"{INFINITE}|.*[0-9].*", whole), whole, None)
        wrong = unmatched(ANY_NUMBER, whole)
        if len(wrong):
            raise TableError(
                f"Column {name!r} should hold plain numbers but holds text such as "
                f"{wrong[0].as_py()!r}: write numbers as 1234.5, without signs or spaces, and "
                "leave unknown ones empty."
            )
    elif kind not in ("number", "bool", "nothing"):
        raise TableError(f"Column {name!r} should hold numbers but holds {whole.type}.")
    values = whole.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(float)
    if np.isinf(values).any():
        count = count_noun(int(np.isinf(values).sum()), "infinite value")
        raise TableError(
            f"Column {name!r} has {count}, the first in row "
            f"{np.isinf(values).argmax() + 1}; leave these fields empty or drop the rows."
        )
    if (np.abs(values[~np.isnan(values)]) > LARGEST).any():
        raise TableError(f"Column {name!r} has numbers beyond {LARGEST:g}; use another unit.")
    return values


def null_missing(text: Any) -> Any:
    """Text without spaces around it, null where it means that a number is missing."""
    bare = pc.utf8_trim_whitespace(text)
    return pc.if_else(pc.is_in(bare, pa.array(MISSING_NUMBERS)), None, bare)


def matches(pattern: str, text: Any) -> Any:
    """Whether each text matches a pattern, spaces around it aside; null where it is null."""
    return pc.match_substring_regex(pc.utf8_trim_whitespace(text), f"^({pattern})$")


def unmatched(pattern: str, text: Any) -> Any:
    """Text that does not match a pattern; without nulls."""
    return text.filter(pc.invert(matches(pattern, text)))


def are_numbers(text: Any) -> bool:
    """Whether text is all plain numbers or null, none of which is a code with a leading zero."""
    return not len(unmatched(ANY_NUMBER, text)) and pc.any(matches(CODE, text)).as_py() is False


def _signed(decimal: str) -> str:
    """Pattern of numbers with this decimal mark, a sign of money or per cent, and thousands."""
    between = f"[{SPACES}{DECIMALS[decimal]}]"
    digits = rf"(\d{{1,3}}({between}\d{{3}})+|0|[1-9]\d*|0(?:[{decimal}]))"
    number = rf"{digits}?([{decimal}]\d+)?"
    return rf"[+-]?[{SIGNS}]?[{SPACES}]*[+-]?{number}[{SPACES}]*[{SIGNS}]?"


def decimal_of(text: pa.Array) -> str | None:
    """Decimal mark of numbers with signs, empty if it may be either, ``None`` for other text."""
    known = null_missing(text).drop_null()
    signs = {sign for sign in SIGNS if pc.any(pc.match_substring(known, sign)).as_py()}
    if not len(known) or len(signs) > 1 or len(unmatched(r".*\d.*", known)):
        return None
    fit = [mark for mark in DECIMALS if not len(unmatched(_signed(mark), known))]
    if len(fit) == 2 and pc.any(pc.match_substring_regex(known, "[.,]")).as_py():
        return ""
    return fit[0] if fit else None


def levels_of(
    column: pa.ChunkedArray, missing: tuple[str, ...] = MISSING
) -> tuple[np.ndarray, list[str]]:
    """Codes of the values, -1 where missing, and the sorted levels as text."""
    whole = plain(column).dictionary_encode()
    codes = pc.fill_null(whole.indices, -1).to_numpy(zero_copy_only=False).astype(np.intp)
    # NaN among numbers is missing too.
    words = ["" if v is None or v != v else str(v) for v in whole.dictionary.to_pylist()]
    levels = sorted({word for word in words if word.strip() not in missing})
    numbers = {level: number for number, level in enumerate(levels)}
    code = np.array([*(numbers.get(word, -1) for word in words), -1], dtype=np.intp)
    return code[codes], levels
