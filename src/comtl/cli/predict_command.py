"""``comtl predict``: predict the rows of a table."""

import io
import re
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..saving.writing import write_atomically
from ..tables import TableError, TableModel, load_model, read_table
from ..tables.table_model import PreparedRows
from ..tables.values import as_table, require_columns
from .paths import are_predictions, check_outputs, file_option, force_option
from .running import echo_json, echo_notes, encoding_option, json_option, plain_errors

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How text begins that spreadsheets run."""
NUMBER = re.compile(r"[+-]?[\d.,]+(e[+-]?\d+)?", re.IGNORECASE)
FORMULA_NOTE = (
    "Text that a spreadsheet would run as a formula is written behind an apostrophe; --raw writes "
    "it as it is."
)
SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", "")


@click.command("predict", short_help="Predict the rows of a table.")
@click.argument("model")
@click.argument("table")
@file_option(
    "--out", help="CSV, TSV or parquet file of the predictions.", show_default="CSV on stdout"
)
@click.option(
    "--interval",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    metavar="LEVEL",
    help="Also write intervals of this probability, such as 0.9.",
)
@click.option("--proba", is_flag=True, help="Also write the probability of each class.")
@click.option(
    "--id",
    "identifiers",
    multiple=True,
    metavar="COL",
    help="Column to copy to the predictions. May be repeated.",
)
@click.option(
    "--unseen",
    type=click.Choice(["mean", "refuse"]),
    default="mean",
    help="Tasks that are not in the model: predict by the mean of all, or raise an error.",
)
@click.option(
    "--raw",
    is_flag=True,
    help="Write text as it is, also where a spreadsheet would run it as a formula.",
)
@force_option
@encoding_option
@json_option
@plain_errors()
def predict(
    model: str,
    table: str,
    out: Path | None,
    interval: float | None,
    proba: bool,
    identifiers: tuple[str, ...],
    unseen: str,
    raw: bool,
    force: bool,
    encoding: str | None,
    as_json: bool,
) -> None:
    """Predict the rows of TABLE with MODEL, a file that comtl fit wrote; - reads stdin.

    Writes the task and the prediction of each row of TABLE, in its order, and what the options
    add. Notes go to stderr.
    """
    inputs = {"MODEL": model, "TABLE": table}
    check_outputs({"--out": (out, are_predictions)}, inputs, force)
    if out is not None and out.suffix.lower() not in SUFFIXES:
        raise TableError(
            f"--out ends in {out.suffix}; predictions go to .csv, .tsv or .parquet files."
        )
    fitted = load_model(model)
    text = (*fitted.text_columns, *identifiers)
    loaded = read_table(table, encoding=encoding, text=text)
    rows = as_table(loaded.table)
    require_columns(identifiers, rows.column_names, "--id")
    prepared = fitted.prepare(rows, unseen)
    names = dict.fromkeys([*identifiers, fitted.task])
    columns: dict[str, Any] = {name: rows.column(name).to_pylist() for name in names}
    predictions = _predictions(fitted, prepared, interval, proba)
    for name in columns.keys() & predictions.keys():
        raise TableError(
            f"Column {name!r} has the name of a column of predictions; rename it in the table."
        )
    columns |= predictions
    suffix = ".csv" if out is None else out.suffix.lower()
    notes = (*loaded.notes, *prepared.notes)
    if not (raw or suffix == ".parquet" or (as_json and out is None)):
        columns, changed = without_formulas(columns)
        notes += (FORMULA_NOTE,) if changed else ()
    if out is not None:
        write_atomically(out, _written(columns, suffix))
    if as_json:
        shown: dict[str, Any] = {"rows": rows.num_rows, "notes": notes, "file": out}
        if out is None:
            rows_of = zip(*columns.values(), strict=True)
            shown["predictions"] = [dict(zip(columns, row, strict=True)) for row in rows_of]
        echo_json(shown)
        return
    echo_notes(notes)
    if out is None:
        # Bytes: what reads them wants UTF-8, also where the terminal has another encoding.
        click.echo(_written(columns, suffix), nl=False)


def _predictions(
    model: TableModel, rows: PreparedRows, interval: float | None, proba: bool
) -> dict[str, Any]:
    columns: dict[str, Any] = {"prediction": model.values(rows)}
    if interval is not None:
        columns["lower"], columns["upper"] = model.bounds(rows, interval)
    if proba:
        probabilities = model.chances(rows)
        for label, column in zip(model.estimator.classes_, probabilities.T, strict=True):
            columns[f"probability {label}"] = column
    return columns


def _written(columns: dict[str, Any], suffix: str) -> bytes:
    """Content of a file with this suffix."""
    import pandas as pd

    frame = pd.DataFrame(columns)
    if suffix == ".parquet":
        content = io.BytesIO()
        frame.to_parquet(content, index=False)
        return content.getvalue()
    delimiter = "\t" if suffix == ".tsv" else ","
    return frame.to_csv(index=False, sep=delimiter, lineterminator="\n").encode()


def without_formulas(columns: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Columns with an apostrophe before text that a spreadsheet would run, and whether any has."""
    quoted, changed = {}, False
    for name, values in columns.items():
        if not isinstance(values, np.ndarray) or values.dtype.kind in "OU":
            old, values = list(values), list(map(_quoted, values))
            changed |= old != values
        quoted[_quoted(name)] = values
    return quoted, changed or list(quoted) != list(columns)


def _quoted(value: Any) -> Any:
    runs = isinstance(value, str) and value.startswith(FORMULAS) and not NUMBER.fullmatch(value)
    return f"'{value}" if runs else value
