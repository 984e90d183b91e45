"""The commands of ``comtl``: adapt and report, the list of all, and other distributions' own."""

from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path

import click

from .. import __version__
from ..tables import load_model, read_table
from ..tables.fitting import compare_table
from .fit_command import fit
from .inspect_command import inspect
from .output import facts
from .paths import check_outputs, file_option, force_option, is_model, is_page
from .predict_command import predict
from .running import (
    echo_json,
    echo_notes,
    encoding_option,
    fits_shown,
    json_option,
    plain_errors,
    say,
)

GROUP = "comtl.commands"  # of the entry points of other distributions


@click.command("adapt", short_help="Add new tasks to a model.")
@click.argument("model")
@click.argument("table")
@file_option("--out", required=True, help="File of the new model.")
@force_option
@encoding_option
@json_option
@plain_errors()
def adapt(
    model: str, table: str, out: Path, force: bool, encoding: str | None, as_json: bool
) -> None:
    """Add the tasks in TABLE to MODEL, from a few rows of each.

    The other tasks of MODEL stay the same.
    """
    check_outputs({"--out": (out, is_model)}, {"MODEL": model, "TABLE": table}, force)
    fitted = load_model(model)
    loaded = read_table(table, encoding=encoding, text=fitted.text_columns)
    adapted = fitted.adapt(loaded.table)
    adapted.save(out)
    if as_json:
        echo_json({**facts(adapted), "file": out})
        return
    echo_notes((*loaded.notes, *adapted.notes[len(fitted.notes) :]), err=False)
    say(f"Model of {len(adapted.estimator.tasks_):,} tasks written to {out}.")


@click.command("report", short_help="Write an HTML report of a model.")
@click.argument("model")
@file_option("--out", default=Path("report.html"), help="File of the report.")
@click.option("--data", metavar="TABLE", help="Table for a comparison with reference models.")
@force_option
@encoding_option
@plain_errors()
def report(model: str, out: Path, data: str | None, force: bool, encoding: str | None) -> None:
    """Write an HTML report of MODEL.

    The scores are those of comtl fit on held-out rows; with --data they are computed again.
    """
    check_outputs({"--out": (out, is_page)}, {"MODEL": model, "--data": data}, force)
    fitted = load_model(model)
    if data is not None:
        loaded = read_table(data, encoding=encoding, text=fitted.text_columns)
        with fits_shown("compare", True) as progress:
            comparison = compare_table(fitted, loaded.table, progress)
        notes = (*fitted.notes, *loaded.notes)
        fitted = replace(fitted, comparison=comparison, notes=notes)
    fitted.report(out)
    say(f"Report written to {out}.")


class Commands(click.Group):
    """Our commands, and those of other distributions, which are loaded when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *sorted(entry_points(group=GROUP).names)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is None:
            for point in entry_points(group=GROUP, name=cmd_name):
                return point.load()
        if found is None and cmd_name == "reproduce":
            raise click.ClickException(
                "The paper's experiments are installed by themselves: pip install "
                '"comtl[reproduce]"; in a clone, pip install . ./reproduction'
            )
        return found


comtl = Commands(
    "comtl",
    commands=[fit, predict, adapt, inspect, report],
    help="Multitask learning: models of many related tasks, from a table to predictions.",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
comtl = click.version_option(__version__, package_name="comtl")(comtl)
