"""``comtl predict``: predictions for the rows of a table."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..saving.atomic import write_atomically
from ..tables import TableError, TableModel, load_model, read_table
from ..tables.table_errors import require_columns
from ..tables.values import as_table
from .running import echo_json, echo_notes, encoding_option, json_option, plain_errors, require_file

PREDICTION = "prediction"


@click.command("predict", short_help="Predict the rows of a table.")
@click.argument("model")
@click.argument("table")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="CSV, TSV or parquet file for the predictions.",
    show_default="CSV on stdout",
)
@click.option(
    "--interval",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    metavar="LEVEL",
    help="Also bounds that hold the target with this probability, such as 0.9.",
)
@click.option("--proba", is_flag=True, help="Also the probability of each class.")
@click.option(
    "--id",
    "identifiers",
    multiple=True,
    metavar="COL",
    help="Column to keep beside the predictions. May be repeated.",
)
@click.option(
    "--unseen",
    type=click.Choice(["mean", "refuse"]),
    default="mean",
    help="Tasks that the model does not know.",
)
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
    encoding: str | None,
    as_json: bool,
) -> None:
    """Predict the rows of TABLE with MODEL, a file that comtl fit wrote; - reads stdin.

    Writes a row for each row of TABLE, in its order: the task, the prediction, and what else is
    asked for. Notes go to stderr.
    """
    require_file(out)
    known = load_model(model)
    text = (*known.text_columns, *identifiers)
    loaded = read_table(table, encoding=encoding, text=text)
    rows = as_table(loaded.table)
    require_columns(identifiers, rows.column_names, "--id")
    asked = known.prepare(rows, unseen)
    names = dict.fromkeys([*identifiers, known.task])
    columns: dict[str, Any] = {name: rows.column(name).to_pylist() for name in names}
    answers = _answers(known, asked, interval, proba)
    for name in columns.keys() & answers.keys():
        raise TableError(
            f"Column {name!r} has the name of a column of predictions; rename it in the table."
        )
    columns |= answers
    if out is not None:
        write_atomically(out, _written(columns, out.suffix.lower()))
    notes = (*loaded.notes, *asked.notes)
    if as_json:
        listed = {name: _listed(values) for name, values in columns.items()}
        records = [
            dict(zip(listed, row, strict=True)) for row in zip(*listed.values(), strict=True)
        ]
        shown = {"rows": len(records), "notes": notes, "file": out}
        echo_json(shown if out is not None else {**shown, "predictions": records})
        return
    echo_notes(notes)
    if out is None:
        click.echo(_written(columns, ".csv").decode(), nl=False)


def _answers(model: TableModel, asked: Any, interval: float | None, proba: bool) -> dict[str, Any]:
    columns: dict[str, Any] = {PREDICTION: model.values(asked)}
    if interval is not None:
        columns["lower"], columns["upper"] = model.bounds(asked, interval)
    if proba:
        chances = model.chances(asked)
        assert model.classes is not None
        for place, label in enumerate(model.classes.tolist()):
            columns[f"probability {label}"] = chances[:, place]
    return columns


def _listed(values: Any) -> list[Any]:
    return np.asarray(values).tolist() if isinstance(values, np.ndarray) else list(values)


def _written(columns: dict[str, Any], suffix: str) -> bytes:
    """Content of a file of this kind."""
    import pandas as pd

    frame = pd.DataFrame(columns)
    if suffix == ".parquet":
        content = io.BytesIO()
        frame.to_parquet(content, index=False)
        return content.getvalue()
    if suffix not in (".csv", ".tsv", ".txt", ""):
        raise TableError(f"--out ends in {suffix}; predictions go to .csv, .tsv or .parquet files.")
    delimiter = "\t" if suffix == ".tsv" else ","
    return frame.to_csv(index=False, sep=delimiter, lineterminator="\n").encode()
