"""What an experiment is, and how one is run from its cells to its tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from comtl.saving.writing import write_atomically

from .cells import Cell, ExperimentError, Row, Store, run_cells
from .loaders.files import locate
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
    ``files`` names the data files that the cells read.
    """

    name: str
    title: str
    methods: tuple[str, ...]
    key_columns: tuple[str, ...]
    value_columns: tuple[str, ...]
    cells: Callable[[Options], list[Cell]]
    summary: Callable[[Sequence[Row]], list[Table]]
    figures: Callable[[Sequence[Row], Path], list[Path]] = lambda rows, stem: []
    files: Callable[[Options], Sequence[str]] = lambda options: ()

    def file_name(self, options: Options) -> str:
        """First part of the names of its files."""
        return self.name + ("-quick" if options.quick else "")

    def store(self, options: Options, folder: Path) -> Store:
        """The finished cells in a folder."""
        path = folder / f"{self.file_name(options)}.csv"
        return Store(path, self.key_columns, self.value_columns)


QUICK_NOTE = (
    "Quick version: one repeat and fewer sets, methods or settings; not comparable to the paper."
)
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


def require_data(experiment: Experiment, options: Options, folder: Path) -> None:
    """Refuse to begin an experiment of which a cell is missing and needs data that are not here."""
    store = experiment.store(options, folder)
    if all(cell in store for cell in experiment.cells(options)):
        return
    try:
        for name in experiment.files(options):
            locate(name)
    except (FileNotFoundError, ValueError) as error:
        raise ExperimentError(f"{experiment.name} cannot begin: {error}") from error


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
    name, store = experiment.file_name(options), experiment.store(options, folder)
    times = Store(folder / f"{name}_times.csv", experiment.key_columns, ["seconds"])
    run_cells(experiment.cells(options), store, times, jobs=jobs, report=report)
    rows = store.rows()
    tables = experiment.summary(rows)
    if options.quick:
        tables = [replace(table, note=f"{QUICK_NOTE} {table.note}".strip()) for table in tables]
    figures = experiment.figures(rows, folder / name)
    parts = [f"# {experiment.title}\n", *(table.markdown() for table in tables)]
    parts += [f"![{path.stem}]({path.name})\n" for path in figures if path.suffix == ".png"]
    page = folder / f"{name}.md"
    write_atomically(page, "\n".join(parts).encode("utf-8"))
    return Outcome(tables, [store.path, times.path, page, *figures])
