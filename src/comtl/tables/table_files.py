"""Tables from files: CSV and TSV, parquet, Arrow; each also compressed by gzip, or from a pipe."""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet

from .csv_files import read_delimited
from .values import TableError, require_unique

PIPE = "-"
SHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""How archives and spreadsheets begin."""
MOST_EXPANSION = 200
"""How many times larger than its file of gzip a table may be, beside 256 MiB."""
WIDE = (b"\xff\xfe", b"\xfe\xff")
"""How text of two bytes a letter begins."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """A table read from a file, and notes on how it was read."""

    table: pa.Table
    notes: tuple[str, ...] = ()


def read_table(
    path: str | os.PathLike[str], *, encoding: str | None = None, text: Collection[str] = ()
) -> Loaded:
    r"""Read a table from a file; its first bytes decide the format.

    Parameters
    ----------
    path : path, or "-" for standard input
        CSV, TSV, parquet or Arrow (feather), each also compressed by gzip.
    encoding : str, optional
        Encoding of text; by default UTF-8.
    text : collection of str
        Columns of a CSV file that stay text also where they could be numbers.

    Returns
    -------
    Loaded
        The table and notes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from comtl.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pupils.csv"
    ...     _ = path.write_text("school,score\nNorth,1.5\nSouth,2\n")
    ...     read_table(path).table.to_pydict()
    {'school': ['North', 'South'], 'score': [1.5, 2.0]}
    """
    name = "standard input" if str(path) == PIPE else str(path)
    content = _content(path, name)
    if content.startswith(b"\x1f\x8b"):
        try:
            content = _unpacked(content, name)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise TableError(
                f"{name} is incomplete or damaged (gzip: {error}); copy it again."
            ) from error
    if not content.strip():
        raise TableError(f"{name} is empty; give a table with a header line.")
    if content.startswith(b"PAR1"):
        return Loaded(_binary(parquet.read_table, content, name))
    if content.startswith((b"ARROW1", b"FEA1")):
        return Loaded(_binary(feather.read_table, content, name))
    if content.startswith(SHEETS):
        raise TableError(f"{name} is a spreadsheet or an archive; save the sheet as CSV (UTF-8).")
    table, notes = read_delimited(_utf8(content, name, encoding), name, text)
    return Loaded(table, tuple(notes))


def _unpacked(content: bytes, name: str) -> bytes:
    """Content of a file of gzip, unless it is made to fill the memory."""
    most = MOST_EXPANSION * len(content) + 2**28
    unpacked = gzip.GzipFile(fileobj=io.BytesIO(content)).read(most + 1)
    if len(unpacked) > most:
        raise TableError(
            f"{name} unpacks to more than {MOST_EXPANSION} times its size; if that is right, "
            "unpack it with gunzip and name the unpacked file."
        )
    return unpacked


def _content(path: str | os.PathLike[str], name: str) -> bytes:
    if str(path) == PIPE:
        return sys.stdin.buffer.read()
    file = Path(path)
    if file.is_dir():
        raise TableError(f"{name} is a folder; name the file in it.")
    try:
        return file.read_bytes()
    except FileNotFoundError as error:
        raise TableError(f"There is no file {name}; check the name and the folder.") from error
    except PermissionError as error:
        raise TableError(f"{name} may not be read: ask for permission to read it.") from error
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror or error}.") from error


def _binary(read: Callable[[io.BytesIO], pa.Table], content: bytes, name: str) -> pa.Table:
    try:
        table = read(io.BytesIO(content))
        table.validate(full=True)
        names = table.column_names
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        first = " ".join(str(error).split())[:100]
        raise TableError(f"{name} is incomplete or damaged ({first}); copy it again.") from error
    require_unique(names, name)
    if not table.num_rows:
        raise TableError(f"{name} has columns and no rows; give it at least a few.")
    # Row numbers that pandas writes beside the columns.
    kept = [column for column in names if not column.startswith("__index_level_")]
    return table.select(kept)


def _utf8(content: bytes, name: str, encoding: str | None) -> bytes:
    if encoding is not None:
        try:
            return content.decode(encoding).removeprefix("\ufeff").encode()
        except LookupError as error:
            raise TableError(
                f"--encoding {encoding} is unknown; try utf-8, latin-1, cp1252 or utf-16."
            ) from error
        except UnicodeError as error:
            raise TableError(
                f"{name} is not {encoding}: {error}. Name another --encoding, or leave it out "
                "for UTF-8."
            ) from error
    if content.startswith(WIDE):
        raise TableError(f"{name} is not UTF-8 but UTF-16: pass --encoding utf-16.")
    if b"\x00" in content:
        raise TableError(
            f"{name} holds null bytes: it is no text, or text in another encoding. Save it as CSV "
            "(UTF-8), or pass --encoding utf-16-le."
        )
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"{name} is not UTF-8 (line {line}): pass --encoding cp1252 for files from Windows, "
            "--encoding latin-1 for older ones, or save it as UTF-8."
        ) from error
    return content
