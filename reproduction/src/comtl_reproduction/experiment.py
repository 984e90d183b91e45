"""What an experiment is, and how one is run from its cells to its tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from comtl.saving.writing import write_atomically

from .cells import Cell, Row, Store, run_cells
from .tables import Table


@dataclass(frozen=True)
class Options:
    """What a user may ask of every experiment; no methods named means all.

    A quick run is a small version that ends within a minute or so, with files of its own.
    """

    quick: bool = False
    repeats: int = 5
    methods: tuple[str, ...] = ()

    def wants(self, method: str) -> bool:
        """Whether a method is asked for."""
        return not self.methods or method in self.methods

    def seeds(self) -> range:
        """Numbers of the repeats; a quick run has one."""
        return range(1 if self.quick else self.repeats)


@dataclass(frozen=True)
class Experiment:
    """An experiment: its cells, and what is made of the finished ones.

    ``name`` is that of the command line and of the files, ``title`` heads the page. ``cells`` come
    in the order of the result file. ``summary`` and ``figures`` are given the rows of the file,
    which may be of fewer or more cells than wanted; figures also the first part of their name.
    """

    name: str
    title: str
    methods: tuple[str, ...]
    key_columns: tuple[str, ...]
    value_columns: tuple[str, ...]
    cells: Callable[[Options], list[Cell]]
    summary: Callable[[Sequence[Row]], list[Table]]
    figures: Callable[[Sequence[Row], Path], list[Path]] = lambda rows, stem: []


KEYS = ("data", "method", "repeat")
"""Key columns of the tables of the paper."""


def table_cells(work: Callable[..., Any], order: Sequence[str], **values: Any) -> list[Cell]:
    """Cells of a table: all choices of the ``KEYS``, the first of the order changing last."""
    cells = []
    for choice in product(*(values[name] for name in order)):
        chosen = dict(zip(order, choice, strict=True))
        keys = {name: chosen[name] for name in KEYS}
        cells.append(Cell(keys, work, keys))
    return cells


@dataclass(frozen=True)
class Outcome:
    """What a run has made: its tables, and the files that hold rows, page and figures."""

    tables: list[Table]
    files: list[Path]


def run_experiment(
    experiment: Experiment,
    options: Options,
    folder: Path,
    *,
    jobs: int = 1,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome:
    """Compute the cells that are missing in a folder, then write the page and the figures.

    Page and figures show all rows of the result file, also those of methods run before.
    """
    name = experiment.name + ("-quick" if options.quick else "")
    store = Store(folder / f"{name}.csv", experiment.key_columns, experiment.value_columns)
    times = Store(folder / f"{name}_times.csv", experiment.key_columns, ["seconds"])
    run_cells(experiment.cells(options), store, times, jobs=jobs, report=report)
    rows = store.rows()
    tables = experiment.summary(rows)
    figures = experiment.figures(rows, folder / name)
    parts = [f"# {experiment.title}\n", *(table.markdown() for table in tables)]
    parts += [f"![{path.stem}]({path.name})\n" for path in figures if path.suffix == ".png"]
    page = folder / f"{name}.md"
    write_atomically(page, "\n".join(parts).encode("utf-8"))
    return Outcome(tables, [store.path, times.path, page, *figures])
