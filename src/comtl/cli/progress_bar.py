"""Progress on standard error: a bar in a terminal, else a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

Report = Callable[[int, int], None]
COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TimeElapsedColumn(),
    TextColumn("left"),
    TimeRemainingColumn(),
)


@contextmanager
def progress(title: str, console: Console, *, what: str, every: float = 30.0) -> Iterator[Report]:
    """Yield a function that shows how many of how many ``what`` are done."""
    bar, shown = console.is_terminal, -every
    # One may take minutes, so the speed is averaged over an hour.
    bars = Progress(*COLUMNS, console=console, speed_estimate_period=3600.0)
    task = bars.add_task(title, total=None)

    def report(done: int, total: int) -> None:
        nonlocal shown
        bars.update(task, completed=done, total=total)
        now = time.monotonic()
        if bar or (done < total and now - shown < every):
            return
        shown, left = now, bars.tasks[0].time_remaining
        text = f"{title}: {done} of {total} {what} done"
        text += f", about {left:.0f} s left" if left else ""
        console.print(text, highlight=False, soft_wrap=True)

    with bars if bar else nullcontext():
        yield report
