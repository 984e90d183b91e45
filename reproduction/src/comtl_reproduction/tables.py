"""Tables of results beside the paper's, as Markdown and for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table as RichTable

from .cells import Row
from .paper import PAPER
from .statistics import mean_and_error, winners


@dataclass(frozen=True)
class Entry:
    """A figure of a table: mean, standard error if known, and whether it is among the best."""

    mean: float
    error: float | None = None
    bold: bool = False

    def text(self, digits: int, mark: tuple[str, str]) -> str:
        """Mean and standard error with so many digits, between marks where it is bold."""
        shown = f"{self.mean:.{digits}f}"
        shown += "" if self.error is None else f" ({self.error:.{digits}f})"
        return shown.join(mark) if self.bold else shown


Entries = Mapping[tuple[str, str], Entry]
"""Entries by name of row and name of column."""


@dataclass(frozen=True)
class Table:
    """Our figures, and the paper's where it has any, with the names of rows and columns in order.

    ``lower_is_better`` is None for figures that are neither good nor bad.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    ours: Entries
    paper: Entries
    lower_is_better: bool | None
    digits: int
    corner: str
    note: str

    @property
    def heading(self) -> str:
        """Title with the direction of what is better."""
        words = {True: " (lower is better)", False: " (higher is better)", None: ""}
        return self.title + words[self.lower_is_better]

    def markdown(self) -> str:
        """Return the table with its heading as Markdown."""
        lines = [[self.corner, *self.columns], ["---"] * (1 + len(self.columns))]
        lines += self._lines(("**", "**"), ("*", "*"), "<br>")
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts = [f"## {self.heading}", body, *([self.note] if self.note else [])]
        return "\n\n".join(parts) + "\n"

    def rich(self) -> RichTable:
        """Return the table for a terminal."""
        table = RichTable(
            title=self.heading, caption=self.note or None, show_lines=bool(self.paper)
        )
        table.add_column(self.corner, style="bold")
        for column in self.columns:
            table.add_column(column, justify="right")
        for line in self._lines(("[bold]", "[/bold]"), ("[italic dim]", "[/italic dim]"), "\n"):
            table.add_row(*line)
        return table

    def _lines(
        self, bold: tuple[str, str], aside: tuple[str, str], newline: str
    ) -> Iterable[list[str]]:
        """Name and cells of each row: our figure, and the paper's below it."""
        for row in self.rows:
            cells = []
            for key in ((row, column) for column in self.columns):
                ours = [self.ours[key].text(self.digits, bold)] if key in self.ours else []
                if key in self.paper:
                    ours.append(f"paper {self.paper[key].text(self.digits, bold)}".join(aside))
                cells.append(newline.join(ours))
            yield [row, *cells]


def printed(name: str) -> Entries:
    """The paper's figures on a set, by method and column."""
    columns = PAPER[name].get("columns") or list(PAPER[name]["pairs"])
    entries = {}
    for line in PAPER[name]["figures"].strip().splitlines():
        method, *figures = line.split()
        for column, mean, error in zip(columns, figures[::2], figures[1::2], strict=True):
            number = float(mean.lstrip("*"))
            entries[method, column] = Entry(number, float(error), mean.startswith("*"))
    return entries


def samples(
    rows: Iterable[Row], value: str, *keys: str
) -> dict[tuple[str, ...], list[tuple[Row, float]]]:
    """Rows and their finite values by key columns, in the order of the rows."""
    found: dict[tuple[str, ...], list[tuple[Row, float]]] = {}
    for row in rows:
        if row[value] != "" and math.isfinite(row[value]):
            key = tuple(row[name] for name in keys)
            found.setdefault(key, []).append((row, float(row[value])))
    return found


def tabulate(
    rows: Iterable[Row],
    value: str,
    *,
    title: str,
    row: str = "method",
    column: str = "data",
    row_order: Sequence[str] = (),
    column_order: Sequence[str] = (),
    paper: Entries | None = None,
    lower_is_better: bool | None = True,
    digits: int = 2,
    note: str = "",
) -> Table:
    """Build a table from rows of a result file: means over repeats, the winners bold.

    Names of ``row_order`` and ``column_order`` come first, others as they come; names without any
    figure are left out, and so are values that are not finite.
    """
    by_column: dict[str, dict[str, dict[str, float]]] = {}
    for (name, method), found in samples(rows, value, column, row).items():
        sample = {line["repeat"]: number for line, number in found}
        by_column.setdefault(name, {})[method] = sample
    ours = {}
    for name, field in by_column.items():
        best = frozenset[str]()
        if lower_is_better is not None:
            best = winners(field, lower_is_better=lower_is_better)
        for method, sample in field.items():
            ours[method, name] = Entry(*mean_and_error(list(sample.values())), method in best)
    paper = paper or {}
    down = _ordered(row_order, [key[0] for key in (*ours, *paper)])
    across = _ordered(column_order, [key[1] for key in (*ours, *paper)])
    return Table(title, down, across, ours, paper, lower_is_better, digits, row, note)


def _ordered(first: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*(name for name in first if name in names), *names]))
