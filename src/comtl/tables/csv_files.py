"""Read CSV and TSV text, strictly."""

import csv
import io
from collections.abc import Collection
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from ..phrases import count_noun
from .values import TableError, are_numbers, null_missing, require_unique, unmatched

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
MOST_RECORDS = 20
"""Records by which the delimiter is checked."""


def read_delimited(text: bytes, name: str, keep: Collection[str] = ()) -> tuple[pa.Table, list]:
    """Table of UTF-8 text, columns in ``keep`` as text, and notes on what was left out."""
    try:
        start = text[: 1 << 20].decode("utf-8", errors="ignore")
        delimiter, header = _header(start, name)
    except csv.Error as error:
        raise TableError(f"{name} is not a CSV file: {error}. Save it as CSV.") from error
    table = _strings(text, delimiter, len(header), name)
    names, notes = _named(header, table, name)
    if not table.num_rows:
        raise TableError(f"{name} has a header and no rows; give it at least a few.")
    columns = {
        column: table.column(number) if column in keep else _typed(table.column(number))
        for number, column in names.items()
    }
    return pa.table(columns), notes


def _header(start: str, name: str) -> tuple[str, list[str]]:
    """Delimiter and names of the columns."""
    candidates = []
    for delimiter in DELIMITERS:
        reader = csv.reader(io.StringIO(start, newline=""), delimiter=delimiter)
        records = [record for record in islice(reader, MOST_RECORDS) if record]
        if not records:
            raise TableError(f"{name} is empty; give a table with a header line.")
        # The last record may be incomplete, where the text is long.
        alike = all(len(record) == len(records[0]) for record in records[1 : MOST_RECORDS - 1])
        several = alike and len(records[0]) > 1
        candidates.append((several, len(records[0]), delimiter, records[0]))
    _, _, delimiter, header = max(candidates, key=lambda one: one[:2])
    return delimiter, [column.strip() for column in header]


def _strings(text: bytes, delimiter: str, width: int, name: str) -> pa.Table:
    """All fields as text, the header left out."""
    wrong = []

    def refuse(row: pacsv.InvalidRow) -> str:
        wrong.append(row)
        return "error"

    if text.count(b'"') % 2:
        raise TableError(
            f'{name} has an odd number of quotation marks ("): one is never closed. Close it, or '
            "double it where it is part of the text."
        )
    try:
        return pacsv.read_csv(
            io.BytesIO(text),
            # Without threads rows are counted, so that a wrong one can be named.
            read_options=pacsv.ReadOptions(
                use_threads=False,
                autogenerate_column_names=True,
                # A slice would do as well, but before pyarrow 24 if_else spoils slices of text.
                skip_rows_after_names=1,
                block_size=1 << 24,
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse
            ),
            convert_options=pacsv.ConvertOptions(
                column_types={f"f{number}": pa.string() for number in range(width)},
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if wrong:
            raise TableError(
                f"{name}: row {wrong[0].number} (the header is row 1) has "
                f"{count_noun(wrong[0].actual_columns, 'field')}, the header has {width}, "
                f"separated by {DELIMITERS[delimiter]}. Repair the row, or quote "
                "fields that hold a delimiter."
            ) from error
        raise TableError(f"{name} cannot be read: {error}. Save it again as CSV.") from error


def _named(header: list[str], table: pa.Table, name: str) -> tuple[dict[int, str], list[str]]:
    """Names of the columns to keep by their numbers, and notes on the others."""
    names, notes = {}, []
    for number, column in enumerate(header):
        if column:
            names[number] = column
        elif pc.all(pc.equal(table.column(number), "")).as_py() in (True, None):
            notes.append(f"Column {number + 1} has neither name nor values: left out.")
        elif number == 0:
            notes.append("The first column has no name and is taken for row numbers: left out.")
        else:
            raise TableError(f"{name}: column {number + 1} has no name; give it one in the header.")
    require_unique(list(names.values()), name)
    return names, notes


def _typed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers where every value is one or missing; else the text, empty as missing."""
    numbers = null_missing(column)
    if are_numbers(numbers):
        if len(unmatched(r"-?\d+", numbers)):
            return numbers.cast(pa.float64())
        try:
            return numbers.cast(pa.int64())
        except pa.ArrowInvalid:
            # Too many digits for a number: identifiers.
            return column
    return pc.if_else(pc.equal(pc.utf8_trim_whitespace(column), ""), None, column)
