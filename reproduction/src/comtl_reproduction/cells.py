"""Cells of an experiment, and the CSV file that keeps the finished ones."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np

from comtl.saving.atomic import to_disk, write_atomically

Row = Mapping[str, Any]
"""One finished cell: key columns as text, value columns as numbers where they are numbers."""
Texts = tuple[str, ...]


class ExperimentError(Exception):
    """What stops an experiment, in one line that says what to do about it."""


@dataclass(frozen=True)
class Cell:
    """Smallest piece of an experiment that is computed and kept by itself.

    Parameters
    ----------
    keys : mapping
        Value of each key column; what tells this cell from the others.
    work : callable
        A function at the top level of a module, so that other processes find it.
    arguments : mapping
        Keyword arguments of ``work``, which returns a mapping of the value columns.

    Examples
    --------
    >>> from comtl_reproduction.cells import Cell
    >>> cell = Cell({"data": "syn1", "repeat": 0}, dict, {"rmse": 0.5})
    >>> cell.name
    'data=syn1, repeat=0'
    >>> cell.work(**cell.arguments)
    {'rmse': 0.5}
    """

    keys: Mapping[str, Any]
    work: Callable[..., Mapping[str, Any]]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The keys in one line, for messages."""
        return ", ".join(f"{key}={value}" for key, value in self.keys.items())


def as_text(value: Any) -> str:
    """Write a number with all its digits, or a short text as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl_reproduction.cells import as_text
    >>> as_text(np.float64(0.1)), as_text(np.int64(3)), as_text("syn1")
    ('0.1', '3', 'syn1')
    """
    text = str(np.asarray(value).item())
    if "\n" in text or "\r" in text:
        raise ValueError(f"a value is a number or one line of text, got {text!r}.")
    return text


def as_value(text: str) -> float | str:
    """Read a number, or else the text as it is.

    Examples
    --------
    >>> from comtl_reproduction.cells import as_value
    >>> as_value("0.1"), as_value("ridge")
    (0.1, 'ridge')
    """
    try:
        return float(text)
    except ValueError:
        return text


@final
class Store:
    """Finished cells of an experiment in one CSV file, a row each.

    Rows are appended as cells end, in any order; :meth:`finish` puts them in the order of the
    cells, so that the file tells nothing of interruptions or of the number of processes.

    Parameters
    ----------
    path : path
        The file; it need not exist.
    key_columns, value_columns : sequence of str
        Its header.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from comtl_reproduction.cells import Cell, Store
    >>> cell = Cell({"data": "syn1"}, dict, {"rmse": 0.5})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder, "toy.csv"), ["data"], ["rmse"])
    ...     store.append(cell, {"rmse": 0.5})
    ...     cell in store, store.rows()
    (True, [{'data': 'syn1', 'rmse': 0.5}])
    """

    def __init__(
        self, path: Path, key_columns: Sequence[str], value_columns: Sequence[str]
    ) -> None:
        self.path = Path(path)
        self.key_columns, self.value_columns = tuple(key_columns), tuple(value_columns)
        self._found = self._read()

    def __contains__(self, cell: Cell) -> bool:
        return self.key(cell) in self._found

    def key(self, cell: Cell) -> Texts:
        """Key columns of a cell, as they stand in the file."""
        return _texts("keys", cell, cell.keys, self.key_columns)

    def append(self, cell: Cell, values: Mapping[str, Any]) -> None:
        """Put a finished cell on disk at once."""
        key, texts = self.key(cell), _texts("values", cell, values, self.value_columns)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            _cut_torn_line(file)
            header = [] if file.seek(0, os.SEEK_END) else [self._header]
            file.write(_encoded([*header, key + texts]))
            to_disk(file)
        self._found[key] = texts

    def finish(self, cells: Sequence[Cell]) -> None:
        """Rewrite the file in the order of the cells; rows of other cells follow, sorted."""
        # Another run, say of other methods, may have added rows meanwhile.
        self._found = found = self._read()
        wanted = [key for key in map(self.key, cells) if key in found]
        others = sorted(found.keys() - set(wanted))
        self._found = {key: found[key] for key in wanted + others}
        lines = [key + texts for key, texts in self._found.items()]
        write_atomically(self.path, _encoded([self._header, *lines]))

    def rows(self) -> list[Row]:
        """Return all rows: keys as text, values as numbers where they are numbers."""
        return [
            dict(zip(self.key_columns, key, strict=True))
            | dict(zip(self.value_columns, map(as_value, texts), strict=True))
            for key, texts in self._found.items()
        ]

    @property
    def _header(self) -> Texts:
        return self.key_columns + self.value_columns

    def _read(self) -> dict[Texts, Texts]:
        if not self.path.exists():
            return {}
        content = self.path.read_bytes()
        # What follows the last newline was torn off by a crash: that cell is not done.
        whole = content[: content.rfind(b"\n") + 1].decode("utf-8")
        lines = [tuple(line) for line in csv.reader(io.StringIO(whole, newline=""))]
        width = len(self._header)
        if lines and (lines[0] != self._header or any(len(line) != width for line in lines)):
            raise ExperimentError(
                f"{self.path} does not have the columns {','.join(self._header)} throughout: it is "
                "of another version or damaged. Move it away, or write to another folder (--out)."
            )
        count = len(self.key_columns)
        return {line[:count]: line[count:] for line in lines[1:]}


def _texts(kind: str, cell: Cell, values: Mapping[str, Any], columns: Texts) -> Texts:
    if set(values) != set(columns):
        raise ValueError(
            f"cell {cell.name}: {kind} are {sorted(values)}, the columns {sorted(columns)}."
        )
    return tuple(as_text(values[name]) for name in columns)


def _encoded(lines: Sequence[Texts]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode("utf-8")


def _cut_torn_line(file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 1, 0))
    if size and file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
