"""Cells of an experiment, the CSV file that keeps the finished ones, and the run of the others."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from comtl.saving.writing import to_disk, write_atomically

Row = Mapping[str, Any]
"""One finished cell: key columns as text, value columns as numbers where they are numbers."""
Texts = tuple[str, ...]


class ExperimentError(Exception):
    """What stops an experiment, in one line that says what to do about it."""


@dataclass(frozen=True)
class Cell:
    """Smallest piece of an experiment that is computed and kept by itself.

    Its keys tell it from the others. ``work`` is a function at the top level of a module, so that
    other processes find it, and returns a mapping of the value columns.
    """

    keys: Mapping[str, Any]
    work: Callable[..., Mapping[str, Any]]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The keys in one line, for messages."""
        return ", ".join(f"{key}={value}" for key, value in self.keys.items())


def as_text(value: Any) -> str:
    """Write a number with all its digits, or a short text as it is."""
    text = str(np.asarray(value).item())
    if "\n" in text or "\r" in text:
        raise ValueError(f"a value is a number or one line of text, got {text!r}.")
    return text


def as_value(text: str) -> float | str:
    """Read a number, or else the text as it is."""
    try:
        return float(text)
    except ValueError:
        return text


@final
class Store:
    """Finished cells of an experiment in one CSV file, a row each.

    Rows are appended as cells end, in any order; :meth:`finish` puts them in the order of the
    cells, so that the file tells nothing of interruptions or of the number of processes.
    """

    def __init__(self, path: Path, keys: Sequence[str], values: Sequence[str]) -> None:
        self.path = Path(path)
        self._keys, self._values = tuple(keys), tuple(values)
        self._found = self._read()

    def __contains__(self, cell: Cell) -> bool:
        return self.key(cell) in self._found

    def key(self, cell: Cell) -> Texts:
        """Key columns of a cell, as they stand in the file."""
        return _texts("keys", cell, cell.keys, self._keys)

    def append(self, cell: Cell, values: Mapping[str, Any]) -> None:
        """Put a finished cell on disk at once."""
        key, texts = self.key(cell), _texts("values", cell, values, self._values)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            file.seek(0)
            content = file.read()
            whole = _whole_lines(content)
            if whole != content:
                file.truncate(len(whole))
            file.write(_encoded([*([] if whole else [self._header]), key + texts]))
            to_disk(file)
        self._found[key] = texts

    def finish(self, cells: Sequence[Cell]) -> None:
        """Rewrite the file in the order of the cells; rows of other cells follow, sorted."""
        # Another run, say of other methods, may have added rows meanwhile.
        found = self._read()
        wanted = [key for key in map(self.key, cells) if key in found]
        others = sorted(found.keys() - set(wanted))
        self._found = {key: found[key] for key in wanted + others}
        lines = [key + texts for key, texts in self._found.items()]
        write_atomically(self.path, _encoded([self._header, *lines]))

    def rows(self) -> list[Row]:
        """Return all rows: keys as text, values as numbers where they are numbers."""
        return [
            dict(zip(self._header, (*key, *map(as_value, texts)), strict=True))
            for key, texts in self._found.items()
        ]

    @property
    def _header(self) -> Texts:
        return self._keys + self._values

    def _read(self) -> dict[Texts, Texts]:
        if not self.path.exists():
            return {}
        text = _whole_lines(self.path.read_bytes()).decode("utf-8")
        lines = [tuple(line) for line in csv.reader(io.StringIO(text, newline=""))]
        width = len(self._header)
        if lines and (lines[0] != self._header or any(len(line) != width for line in lines)):
            raise ExperimentError(
                f"{self.path} does not have the columns {','.join(self._header)} throughout: it is "
                "of another version or damaged. Move it away, or write to another folder (--out)."
            )
        count = len(self._keys)
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


def _whole_lines(content: bytes) -> bytes:
    """Leave out what a crash has torn off after the last newline: that cell is not done."""
    return content[: content.rfind(b"\n") + 1]


Outcomes = Generator[tuple[int, Mapping[str, Any], float], None, None]


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    times: Store,
    *,
    jobs: int = 1,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Compute the missing cells and keep each as it ends; at last put the files in order.

    Results do not depend on ``jobs``, the number of processes: every cell runs with one thread of
    BLAS. When a cell fails or the user interrupts, what has ended stays in the files and the next
    run goes on from there. ``report`` is told the number of cells done and wanted.
    """
    if len({store.key(cell) for cell in cells}) < len(cells):
        raise ValueError("two cells have the same keys.")
    missing = [index for index, cell in enumerate(cells) if cell not in store]
    done = len(cells) - len(missing)
    report(done, len(cells))
    with closing(_outcomes(cells, missing, jobs)) as outcomes:
        for index, values, seconds in outcomes:
            # Seconds first: a cell counts as done by its values.
            times.append(cells[index], {"seconds": seconds})
            store.append(cells[index], values)
            done += 1
            report(done, len(cells))
    for file in (times, store):
        file.finish(cells)


def _outcomes(cells: Sequence[Cell], missing: Sequence[int], jobs: int) -> Outcomes:
    if jobs == 1:
        yield from (_timed(index, cells[index]) for index in missing)
        return
    with parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
        # One cell at a time, so that each is on disk as soon as it ends.
        pool = Parallel(return_as="generator_unordered", batch_size=1)
    try:
        yield from pool(delayed(_timed)(index, cells[index]) for index in missing)
    except TerminatedWorkerError:
        raise ExperimentError(
            "a process was killed, perhaps for lack of memory. What is finished is kept: the same "
            "command goes on, with fewer processes (--jobs) if memory is short."
        ) from None


def _timed(index: int, cell: Cell) -> tuple[int, Mapping[str, Any], float]:
    begun = time.perf_counter()
    try:
        with threadpool_limits(1):
            values = cell.work(**cell.arguments)
    except Exception as error:
        text = " ".join(str(error).split())
        raise ExperimentError(f"fit {cell.name} failed: {type(error).__name__}: {text}") from error
    return index, values, time.perf_counter() - begun
