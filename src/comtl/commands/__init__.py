"""The commands of ``comtl``, one a file; a new one is added to the list below."""

from __future__ import annotations

import click

from .. import __version__
from ..experiments.catalogue import EXPERIMENTS
from .reproduce import reproduce_command

comtl = click.Group(
    "comtl",
    commands=[reproduce_command(EXPERIMENTS)],
    help="Co-clustering for multitask learning.",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
comtl = click.version_option(__version__, package_name="comtl")(comtl)
