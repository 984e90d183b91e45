"""What an experiment is, and how one is run from its cells to its tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from comtl.saving.atomic import write_atomically

from .cells import Cell, Row, Store
from .runner import run_cells
from .tables import Table


@dataclass(frozen=True)
class Options:
    """What a user may ask of every experiment.

    Parameters
    ----------
    quick : bool, default=False
        A small version that ends within a minute or so, with files of its own.
    repeats : int, default=5
        Number of random repeats.
    methods : tuple of str, default=()
        Methods to run; none named means all.
    """

    quick: bool = False
    repeats: int = 5
    methods: tuple[str, ...] = ()

    def wants(self, method: str) -> bool:
        """Whether a method is asked for.

        Examples
        --------
        >>> from comtl_reproduction.experiment import Options
        >>> Options().wants("ITL"), Options(methods=("STL",)).wants("ITL")
        (True, False)
        """
        return not self.methods or method in self.methods


def no_figures(rows: Sequence[Row], stem: Path) -> list[Path]:
    """Draw nothing.

    Examples
    --------
    >>> from pathlib import Path
    >>> from comtl_reproduction.experiment import no_figures
    >>> no_figures([], Path("toy"))
    []
    """
    return []


@dataclass(frozen=True)
class Experiment:
    """An experiment: its cells, and what is made of the finished ones.

    Parameters
    ----------
    name : str
        Name on the command line and of the files.
    title : str
        Heading of its page.
    methods : tuple of str
        Names that ``Options.methods`` may hold.
    key_columns, value_columns : tuple of str
        Header of the result file.
    cells : callable
        From options to the cells wanted, in the order of the result file.
    summary : callable
        From the rows of the file to tables. Rows may be of fewer or more cells than wanted.
    figures : callable
        From the rows and the stem of the files (folder and first part of the name, to which a
        suffix is added) to the files written.

    Examples
    --------
    >>> from comtl_reproduction.cells import Cell
    >>> from comtl_reproduction.experiment import Experiment, Options
    >>> from comtl_reproduction.tables import tabulate
    >>> toy = Experiment(
    ...     name="toy",
    ...     title="A toy",
    ...     methods=("STL", "ITL"),
    ...     key_columns=("data", "method", "repeat"),
    ...     value_columns=("rmse",),
    ...     cells=lambda options: [
    ...         Cell({"data": "syn1", "method": method, "repeat": r}, dict, {"rmse": r + 1.0})
    ...         for method in ("STL", "ITL")
    ...         if options.wants(method)
    ...         for r in range(options.repeats)
    ...     ],
    ...     summary=lambda rows: [tabulate(rows, "rmse", title="RMSE")],
    ... )
    >>> len(toy.cells(Options(repeats=3, methods=("ITL",))))
    3
    """

    name: str
    title: str
    methods: tuple[str, ...]
    key_columns: tuple[str, ...]
    value_columns: tuple[str, ...]
    cells: Callable[[Options], list[Cell]]
    summary: Callable[[Sequence[Row]], list[Table]]
    figures: Callable[[Sequence[Row], Path], list[Path]] = no_figures

    def stem(self, options: Options, folder: Path) -> Path:
        """Folder and first part of the name of every file of a run."""
        return folder / (f"{self.name}-quick" if options.quick else self.name)


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

    Parameters
    ----------
    experiment : Experiment
        What to run.
    options : Options
        How.
    folder : path
        Where ``<name>.csv``, ``<name>_times.csv``, ``<name>.md`` and figures go; a quick run has
        ``<name>-quick`` instead.
    jobs : int, default=1
        Number of processes.
    report : callable
        Told the number of cells done and wanted.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from comtl_reproduction.catalogue import EXPERIMENTS
    >>> from comtl_reproduction.experiment import Options, run_experiment
    >>> options = Options(quick=True, repeats=1, methods=("BiFactor",))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = run_experiment(EXPERIMENTS["convergence"], options, Path(folder))
    >>> [path.name for path in made.files][:2]
    ['convergence-quick.csv', 'convergence-quick_times.csv']
    """
    stem = experiment.stem(options, folder)
    store = Store(_named(stem, ".csv"), experiment.key_columns, experiment.value_columns)
    times = Store(_named(stem, "_times.csv"), experiment.key_columns, ["seconds"])
    run_cells(experiment.cells(options), store, times, jobs=jobs, report=report)
    rows = store.rows()
    tables = experiment.summary(rows)
    figures = experiment.figures(rows, stem)
    page = _named(stem, ".md")
    write_atomically(page, _page(experiment, tables, figures).encode("utf-8"))
    return Outcome(tables, [store.path, times.path, page, *figures])


def _named(stem: Path, end: str) -> Path:
    return stem.with_name(stem.name + end)


def _page(experiment: Experiment, tables: Sequence[Table], figures: Sequence[Path]) -> str:
    images = [path for path in figures if path.suffix == ".png"]
    parts = [f"# {experiment.title}\n", *(table.markdown() for table in tables)]
    parts += [f"![{path.stem}]({path.name})\n" for path in images]
    return "\n".join(parts)
