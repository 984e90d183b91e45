"""``comtl adapt``: new tasks for a fitted model."""

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
    "--out", type=click.Path(path_type=Path), required=True, help="File of the new model."
)
@encoding_option
@json_option
@plain_errors()
def adapt(model: str, table: str, out: Path, encoding: str | None, as_json: bool) -> None:
    """Add the tasks in TABLE to MODEL, from a few rows of each.

    The other tasks of MODEL stay the same. Models by --model bifactor, trifactor, pooled and
    separate can be adapted.
    """
    require_file(out)
    fitted = load_model(model)
    loaded = read_table(table, encoding=encoding, text=fitted.text_columns)
    adapted = fitted.adapt(loaded.table)
    adapted.save(out)
    if as_json:
        echo_json({**facts(adapted), "file": out})
        return
    echo_notes((*loaded.notes, *adapted.notes[len(fitted.notes) :]), err=False)
    click.echo(f"Model of {len(adapted.estimator.tasks_):,} tasks written to {out}.")
