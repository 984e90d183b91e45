"""Run the cells that are missing, in this process or in several."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from .cells import Cell, ExperimentError, Store

TimedValues = tuple[int, Mapping[str, Any], float]
Outcomes = Generator[TimedValues, None, None]


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    times: Store,
    *,
    jobs: int = 1,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Compute the missing cells and keep each as it ends; at last put the files in order.

    Results do not depend on ``jobs``: every cell runs with one thread of BLAS. When a cell fails or
    the user interrupts, what has ended stays in the files and the next run goes on from there.

    Parameters
    ----------
    cells : sequence of Cell
        All cells wanted, in the order of the final file.
    store, times : Store
        Where values and seconds go.
    jobs : int, default=1
        Number of processes; 1 runs in this one.
    report : callable
        Told the number of cells done and the number wanted, at the start and after each cell.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from comtl_reproduction.cells import Cell, Store
    >>> from comtl_reproduction.runner import run_cells
    >>> cells = [Cell({"n": n}, dict, {"square": n * n}) for n in range(3)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder, "toy.csv"), ["n"], ["square"])
    ...     run_cells(cells, store, Store(Path(folder, "toy_times.csv"), ["n"], ["seconds"]))
    ...     [row["square"] for row in store.rows()]
    [0.0, 1.0, 4.0]
    """
    if len({store.key(cell) for cell in cells}) < len(cells):
        raise ValueError("two cells have the same keys.")
    missing = [index for index, cell in enumerate(cells) if cell not in store]
    done = len(cells) - len(missing)
    report(done, len(cells))
    outcomes = _here(cells, missing) if jobs == 1 else _in_processes(cells, missing, jobs)
    with closing(outcomes):
        for index, values, seconds in outcomes:
            # Seconds first: a cell counts as done by its values.
            times.append(cells[index], {"seconds": seconds})
            store.append(cells[index], values)
            done += 1
            report(done, len(cells))
    for file in (times, store):
        file.finish(cells)


def _here(cells: Sequence[Cell], missing: Sequence[int]) -> Outcomes:
    for index in missing:
        yield _timed(index, cells[index])


def _in_processes(cells: Sequence[Cell], missing: Sequence[int], jobs: int) -> Outcomes:
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


def _timed(index: int, cell: Cell) -> TimedValues:
    begun = time.perf_counter()
    try:
        with threadpool_limits(1):
            values = cell.work(**cell.arguments)
    except Exception as error:
        text = " ".join(str(error).split())
        raise ExperimentError(f"cell {cell.name} failed: {type(error).__name__}: {text}") from error
    return index, values, time.perf_counter() - begun
