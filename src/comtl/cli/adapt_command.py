"""``comtl adapt``: new tasks for a model that is fitted."""

from __future__ import annotations

from pathlib import Path

import click

from ..tables import load_model, read_table
from .output import facts
from .running import echo_json, echo_notes, encoding_option, json_option, plain_errors, require_file


@click.command("adapt", short_help="Add new tasks to a model.")
@click.argument("model")
@click.argument("table")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Where the new model goes."
)
@encoding_option
@json_option
@plain_errors()
def adapt(model: str, table: str, out: Path, encoding: str | None, as_json: bool) -> None:
    """Add the tasks in TABLE to MODEL; a few rows of each suffice.

    The tasks that MODEL knows stay as they are. Models by --model bifactor, trifactor, pooled and
    separate can be adapted.
    """
    require_file(out)
    known = load_model(model)
    loaded = read_table(table, encoding=encoding, text=known.text_columns)
    made = known.adapt(loaded.table)
    made.save(out)
    if as_json:
        echo_json({**facts(made), "file": out})
        return
    echo_notes((*loaded.notes, *made.notes[len(known.notes) :]), err=False)
    click.echo(f"Model of {len(made.estimator.tasks_):,} tasks written to {out}.")
