"""What all commands share: errors in one line, interruptions, progress, JSON."""

import errno
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ..phrases import jsonable, visible

INTERRUPTED = 130
"""Exit status of an interrupted command, as in shells."""
Report = Callable[[int, int], None]
COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TimeElapsedColumn(),
    TextColumn("left"),
    TimeRemainingColumn(),
)

encoding_option = click.option(
    "--encoding", metavar="NAME", help="Encoding of a CSV file.", show_default="UTF-8"
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")


@contextmanager
def on_cluster(scheduler: str | None) -> Iterator[None]:
    """Run the jobs of fits on the workers of a Dask cluster, if one is named."""
    if scheduler is None:
        yield
        return
    import joblib
    from distributed import Client

    try:
        client = Client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise click.ClickException(
            f"No Dask scheduler answers at --scheduler {scheduler}: start one with dask scheduler, "
            "and workers with dask worker."
        ) from error
    with client, joblib.parallel_config(backend="dask"):
        yield


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors of data into one line, and interruptions into their exit status."""
    with warnings.catch_warnings():
        # The notes say what a user should know of a fit or a prediction.
        for kind in (UserWarning, FutureWarning, DeprecationWarning):
            warnings.simplefilter("ignore", kind)
        try:
            yield
        except KeyboardInterrupt:
            click.echo("Interrupted; no file was written.", err=True)
            raise SystemExit(INTERRUPTED) from None
        except MemoryError as error:
            raise click.ClickException(
                "The table does not fit into memory: use fewer rows or columns."
            ) from error
        except (OSError, ValueError, TypeError) as error:
            message = " ".join(str(error).split())
            if isinstance(error, OSError):
                if error.errno == errno.EPIPE:
                    raise
                if error.strerror and error.filename:
                    message = f"{error.filename}: {error.strerror}."
            raise click.ClickException(_for_terminal(message)) from error
        except click.ClickException as error:
            raise type(error)(_for_terminal(error.message)) from error


def _for_terminal(message: str) -> str:
    """Message in the letters that standard error has."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    return visible(message).encode(encoding, "backslashreplace").decode(encoding)


@contextmanager
def progress(title: str, console: Console, *, what: str, every: float = 30.0) -> Iterator[Report]:
    """Show how many ``what`` of all are done: a bar in a terminal, else a line now and then."""
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


@contextmanager
def fits_shown(title: str, shown: bool) -> Iterator[Report | None]:
    """Progress of fits on standard error, or nothing."""
    if not shown:
        yield None
        return
    with progress(title, Console(stderr=True), what="fits") as report:
        yield report


def echo_json(value: dict[str, Any]) -> None:
    """Write one JSON object, in ASCII for every terminal; NaN becomes null."""
    click.echo(json.dumps(jsonable(value), allow_nan=False))


def say(text: str, *, err: bool = False) -> None:
    """Write text for people, who may have named things by what a terminal would obey."""
    # With the stream named, click keeps to its encoding.
    click.echo(visible(text), file=sys.stderr if err else sys.stdout)


def echo_notes(notes: tuple[str, ...], *, err: bool = True) -> None:
    """Write notes, a line each."""
    for note in notes:
        say(f"Note: {note}", err=err)
