"""``comtl report``: a model as an HTML page."""

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
    help="File of the report.",
)
@click.option("--data", metavar="TABLE", help="Table for a comparison with reference models.")
@encoding_option
@plain_errors()
def report(model: str, out: Path, data: str | None, encoding: str | None) -> None:
    """Write an HTML report of MODEL.

    The scores are those of comtl fit on held-out rows; with --data they are computed again.
    """
    require_file(out)
    fitted = load_model(model)
    if data is not None:
        loaded = read_table(data, encoding=encoding, text=fitted.text_columns)
        with fits_shown("compare", True) as progress:
            comparison = compare_table(fitted, loaded.table, progress)
        notes = (*fitted.notes, *loaded.notes)
        fitted = replace(fitted, comparison=comparison, notes=notes)
    fitted.report(out)
    click.echo(f"Report written to {out}.")
