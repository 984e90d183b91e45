"""``comtl report``: a model as a page to read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ..tables import load_model, read_table
from ..tables.fitting import compare_table
from .running import encoding_option, fits_shown, plain_errors, require_file


@click.command("report", short_help="Write an HTML report of a model.")
@click.argument("model")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    help="Where the report goes.",
)
@click.option("--data", metavar="TABLE", help="Table to compare with reference models on.")
@encoding_option
@plain_errors()
def report(model: str, out: Path, data: str | None, encoding: str | None) -> None:
    """Write an HTML report of MODEL.

    The scores are those that comtl fit found on held-out rows; with --data they are made anew.
    """
    require_file(out)
    known = load_model(model)
    if data is not None:
        loaded = read_table(data, encoding=encoding, text=known.text_columns)
        with fits_shown("compare", True) as progress:
            found = compare_table(known, loaded.table, progress)
        known = replace(known, comparison=found, notes=(*known.notes, *loaded.notes))
    known.report(out)
    click.echo(f"Report written to {out}.")
