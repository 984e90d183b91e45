"""Tables of results beside the paper's, as Markdown and for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .cells import Row
from .statistics import mean_and_error, winners

if TYPE_CHECKING:
    from rich.table import Table as RichTable


@dataclass(frozen=True)
class Entry:
    """A figure of a table: mean, standard error if known, and whether it is among the best.

    Examples
    --------
    >>> from comtl_reproduction.tables import Entry
    >>> Entry(1.849, 0.08).text(2)
    '1.85 (0.08)'
    """

    mean: float
    error: float | None = None
    bold: bool = False

    def text(self, digits: int) -> str:
        """Mean and standard error with so many digits."""
        shown = f"{self.mean:.{digits}f}"
        return shown if self.error is None else f"{shown} ({self.error:.{digits}f})"


Entries = Mapping[tuple[str, str], Entry]
"""Entries by name of row and name of column."""


@dataclass(frozen=True)
class Table:
    """Our figures, and the paper's where it has any.

    Parameters
    ----------
    title : str
        What is shown.
    rows, columns : tuple of str
        Names, in their order.
    ours, paper : mapping
        Entries by row and column; any may be missing.
    lower_is_better : bool or None, default=True
        What is said under the title; None for figures that are neither good nor bad.
    digits : int, default=2
        Digits after the point.
    corner : str, default="method"
        Heading of the row names.
    note : str, default=""
        A sentence under the table.

    Examples
    --------
    >>> from comtl_reproduction.tables import Entry, Table
    >>> ours, paper = {("ITL", "syn1"): Entry(1.9, 0.1, True)}, {("ITL", "syn1"): Entry(2.0)}
    >>> table = Table("RMSE", ("ITL",), ("syn1",), ours, paper, digits=1)
    >>> table.markdown().splitlines()[-1]
    '| ITL | **1.9 (0.1)**<br>*paper 2.0* |'
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    ours: Entries
    paper: Entries = field(default_factory=dict)
    lower_is_better: bool | None = True
    digits: int = 2
    corner: str = "method"
    note: str = ""

    @property
    def heading(self) -> str:
        """Title with the direction of what is better."""
        words = {True: " (lower is better)", False: " (higher is better)", None: ""}
        return self.title + words[self.lower_is_better]

    def markdown(self) -> str:
        """Return the table with its heading as Markdown."""
        lines = [[self.corner, *self.columns], ["---"] * (1 + len(self.columns))]
        lines += [
            [row, *(self._cell(row, c, _MARKDOWN) for c in self.columns)] for row in self.rows
        ]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts = [f"## {self.heading}", body, *([self.note] if self.note else [])]
        return "\n\n".join(parts) + "\n"

    def rich(self) -> RichTable:
        """Return the table for a terminal."""
        from rich.table import Table as RichTable

        table = RichTable(
            title=self.heading, caption=self.note or None, show_lines=bool(self.paper)
        )
        table.add_column(self.corner, style="bold")
        for column in self.columns:
            table.add_column(column, justify="right")
        for row in self.rows:
            table.add_row(row, *(self._cell(row, column, _TERMINAL) for column in self.columns))
        return table

    def _cell(self, row: str, column: str, style: _Style) -> str:
        lines = []
        ours, paper = self.ours.get((row, column)), self.paper.get((row, column))
        if ours is not None:
            lines.append(style.strong(ours.text(self.digits), ours.bold))
        if paper is not None:
            lines.append(style.faint(f"paper {style.strong(paper.text(self.digits), paper.bold)}"))
        return style.newline.join(lines)


@dataclass(frozen=True)
class _Style:
    """Marks around bold and around the paper's figures."""

    bold: tuple[str, str]
    aside: tuple[str, str]
    newline: str

    def strong(self, text: str, bold: bool) -> str:
        return text.join(self.bold) if bold else text

    def faint(self, text: str) -> str:
        return text.join(self.aside)


_MARKDOWN = _Style(("**", "**"), ("*", "*"), "<br>")
_TERMINAL = _Style(("[bold]", "[/bold]"), ("[italic dim]", "[/italic dim]"), "\n")


def tabulate(
    rows: Iterable[Row],
    value: str,
    *,
    title: str,
    row: str = "method",
    column: str = "data",
    repeat: str = "repeat",
    row_order: Sequence[str] = (),
    column_order: Sequence[str] = (),
    paper: Entries | None = None,
    lower_is_better: bool | None = True,
    digits: int = 2,
    note: str = "",
) -> Table:
    """Build a table from rows of a result file: means over repeats, the winners bold.

    Parameters
    ----------
    rows : iterable of rows
        At most one for each row name, column name and repeat. Values that are not finite count
        as missing.
    value : str
        Name of the value column.
    title : str
        What is shown.
    row, column, repeat : str
        Key columns that name the table's rows, its columns and the repeats.
    row_order, column_order : sequence of str
        These names first; others follow as they come. Names without any figure are left out.
    paper : mapping, optional
        The paper's entries by row and column.
    lower_is_better : bool or None, default=True
        Whether small values are good; with None nothing is bold.
    digits : int, default=2
        Digits after the point.
    note : str, default=""
        A sentence under the table.

    Examples
    --------
    >>> from comtl_reproduction.tables import tabulate
    >>> rows = [
    ...     {"data": "syn1", "method": "STL", "repeat": "0", "rmse": 4.8},
    ...     {"data": "syn1", "method": "ITL", "repeat": "0", "rmse": 2.0},
    ... ]
    >>> tabulate(rows, "rmse", title="RMSE", row_order=["ITL"]).rows
    ('ITL', 'STL')
    """
    samples: dict[str, dict[str, dict[str, float]]] = {}
    for line in rows:
        number = float(line[value]) if line[value] != "" else math.nan
        if math.isfinite(number):
            by_row = samples.setdefault(line[column], {})
            by_row.setdefault(line[row], {})[line[repeat]] = number
    ours = {}
    for name, by_row in samples.items():
        best = frozenset[str]()
        if lower_is_better is not None:
            best = winners(by_row, lower_is_better=lower_is_better)
        for method, sample in by_row.items():
            ours[method, name] = Entry(*mean_and_error(list(sample.values())), method in best)
    paper = paper or {}
    return Table(
        title,
        _ordered(row_order, [key[0] for key in (*ours, *paper)]),
        _ordered(column_order, [key[1] for key in (*ours, *paper)]),
        ours,
        paper,
        lower_is_better,
        digits,
        row,
        note,
    )


def _ordered(first: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*(name for name in first if name in names), *names]))
