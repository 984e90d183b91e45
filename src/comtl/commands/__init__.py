"""The commands of ``comtl``, one a file; a new one is added to the list below."""

from __future__ import annotations

import click

from .. import __version__
from ..experiments.catalogue import EXPERIMENTS
from .adapt import adapt
from .demo import demo
from .fit import fit
from .inspect import inspect
from .predict import predict
from .report import report
from .reproduce import reproduce_command

comtl = click.Group(
    "comtl",
    commands=[fit, predict, adapt, inspect, report, demo, reproduce_command(EXPERIMENTS)],
    help="Multitask learning: models of many related tasks, from a table to predictions.",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
comtl = click.version_option(__version__, package_name="comtl")(comtl)
