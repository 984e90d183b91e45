"""The commands of ``comtl``, one a file; a new one is added to the list below.

Other distributions add theirs as entry points of the group ``comtl.commands``.
"""

from __future__ import annotations

from importlib.metadata import entry_points

import click

from .. import __version__
from .adapt_command import adapt
from .fit_command import fit
from .inspect_command import inspect
from .predict_command import predict
from .report_command import report

GROUP = "comtl.commands"


class Commands(click.Group):
    """Our commands, and those of other distributions, which are loaded when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return [*super().list_commands(ctx), *sorted(entry_points(group=GROUP).names)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Command of a name, if there is one."""
        found = super().get_command(ctx, cmd_name)
        if found is None:
            for point in entry_points(group=GROUP, name=cmd_name):
                return point.load()
        if found is None and cmd_name == "reproduce":
            raise click.ClickException(
                "The paper's experiments are installed by themselves: in a clone of comtl, "
                'pip install ".[reproduce]"'
            )
        return found


comtl = Commands(
    "comtl",
    commands=[fit, predict, adapt, inspect, report],
    help="Multitask learning: models of many related tasks, from a table to predictions.",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
comtl = click.version_option(__version__, package_name="comtl")(comtl)
