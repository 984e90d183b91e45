"""How far a run is, on standard error: a bar in a terminal, else a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Report = Callable[[int, int], None]


@contextmanager
def progress(
    title: str, console: Console, *, every: float = 30.0, what: str = "cells"
) -> Iterator[Report]:
    """Yield a function that is told the number of cells done and wanted, and shows them.

    Parameters
    ----------
    title : str
        Name of the run.
    console : rich.console.Console
        Where to show it.
    every : float, default=30.0
        Seconds between two lines where the console is no terminal.
    what : str, default="cells"
        What is counted.

    Examples
    --------
    >>> import sys
    >>> from rich.console import Console
    >>> from comtl.experiments.display import progress
    >>> with progress("toy", Console(file=sys.stdout)) as report:
    ...     report(1, 3)
    ...     report(3, 3)
    toy: 1 of 3 cells done
    toy: 3 of 3 cells done
    """
    if not console.is_terminal:
        yield _lines(title, console, every, what)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    # Cells may take minutes each, and the speed is taken over this long.
    with Progress(*columns, console=console, speed_estimate_period=3600.0) as bars:
        bar = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)


def _lines(title: str, console: Console, every: float, what: str) -> Report:
    begun = time.monotonic()
    before: int | None = None
    shown = begun

    def report(done: int, total: int) -> None:
        nonlocal before, shown
        now = time.monotonic()
        first = before is None
        before = done if before is None else before
        if not first and done < total and now - shown < every:
            return
        shown = now
        text = f"{title}: {done} of {total} {what} done"
        if before < done < total:
            left = (now - begun) / (done - before) * (total - done)
            text += f", about {left:.0f} s left"
        console.print(text, highlight=False, soft_wrap=True)

    return report
