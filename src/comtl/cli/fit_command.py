"""``comtl fit``: fit a model to a table."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..tables import fit_table, read_table
from ..tables.dates import ORDERS
from ..tables.encoder import Encoder
from ..tables.fitting import FORMER_MODELS, FORMS, KINDS, MODELS
from ..tables.values import DECIMALS
from .output import facts, headline, show_columns, show_scores, verdict
from .paths import check_outputs, file_option, force_option, is_model, is_page
from .running import (
    echo_json,
    echo_notes,
    encoding_option,
    fits_shown,
    json_option,
    on_cluster,
    plain_errors,
    say,
)


class _Model(click.Choice):
    """A model by its name, present or former."""

    def convert(self, value: Any, *context: Any) -> Any:
        return value if value in FORMER_MODELS else super().convert(value, *context)


@click.command("fit", short_help="Fit a model to a table.")
@click.argument("table")
@click.option("--task", required=True, metavar="COL", help="Column that names the task of a row.")
@click.option("--target", required=True, metavar="COL", help="Column to predict.")
@click.option("--model", type=_Model(MODELS), default="auto", help="Model.")
@click.option(
    "--form",
    type=click.Choice(FORMS),
    default="auto",
    help="Form of model auto: what it tries beside straight lines.",
)
@click.option("--kind", type=click.Choice(KINDS), default="auto", help="Kind of problem.")
@file_option("--out", default=Path("model.comtl"), help="File of the model.")
@file_option("--report", help="File of an HTML report.")
@click.option("--drop", multiple=True, metavar="COL", help="Leave a column out. May be repeated.")
@click.option("--category", multiple=True, metavar="COL", help="Treat a column as a category.")
@click.option("--number", multiple=True, metavar="COL", help="Treat a column as numbers.")
@click.option(
    "--missing",
    type=click.Choice(["impute", "refuse"]),
    default="impute",
    help="Missing values: fill and mark them, or raise an error.",
)
@click.option(
    "--date-format",
    type=click.Choice(ORDERS),
    help="Order of year, month and day in dates that do not tell it.",
)
@click.option(
    "--decimal",
    type=click.Choice(list(DECIMALS)),
    help="Decimal mark of numbers that do not tell it.",
)
@click.option("--weight", metavar="COL", help="Column with the weights of the rows.")
@click.option("--no-score", is_flag=True, help="Skip the comparison on held-out rows.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="Processes.")
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler; its workers do the fits.")
@force_option
@click.option("--quiet", is_flag=True, help="Print errors only.")
@encoding_option
@json_option
@plain_errors()
def fit(
    table: str,
    out: Path,
    report: Path | None,
    force: bool,
    no_score: bool,
    quiet: bool,
    encoding: str | None,
    as_json: bool,
    scheduler: str | None,
    **options: Any,
) -> None:
    """Fit a model to TABLE, a CSV, TSV, parquet or Arrow file, also with .gz, or - for stdin.

    Prints the type of each column, and compares the model with reference models on held-out rows.
    Predict with: comtl predict model.comtl new.csv
    """
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise click.ClickException(f"--report writes HTML: name a file with .html, not {report}.")
    outputs = {"--out": (out, is_model), "--report": (report, is_page)}
    check_outputs(outputs, {"TABLE": table}, force)
    if (former := options["model"]) in FORMER_MODELS:
        options |= {"model": "auto", "form": FORMER_MODELS[former]}
        click.echo(
            f"Note: --model {former} is --form {options['form']} now; the old name will go.",
            err=True,
        )
    loaded = read_table(table, encoding=encoding, text=options["category"])
    silent = quiet or as_json

    def seen(encoder: Encoder, notes: list[str]) -> None:
        if not silent:
            show_columns(encoder.columns)

    if scheduler is not None:
        options["jobs"] = -1
    with on_cluster(scheduler), fits_shown("fit", not quiet) as progress:
        model = fit_table(loaded.table, score=not no_score, progress=progress, seen=seen, **options)
    model = replace(model, notes=(*loaded.notes, *model.notes))
    model.save(out)
    if report is not None:
        model.report(report)
    if as_json:
        echo_json({**facts(model), "file": out, "report": report})
    if silent:
        return
    if model.comparison is not None:
        show_scores(model.comparison)
    echo_notes(model.notes, err=False)
    say(headline(model))
    if model.comparison is not None:
        say(verdict(model.comparison, model.model))
    say(f"Model written to {out}" + (f", report to {report}." if report else "."))
