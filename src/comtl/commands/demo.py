"""``comtl demo``: the main job on a built-in data set."""

from __future__ import annotations

import click

from ..demo import main
from .running import plain_errors


@click.command("demo", short_help="Show the main job on a built-in data set.")
@plain_errors()
def demo() -> None:
    """Fit the models to a built-in data set, compare them on held-out rows, show the clusters."""
    main(lambda text: click.echo(text, nl=False))
