"""``comtl reproduce``: run the paper's experiments."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile

import click
from joblib import cpu_count
from rich.console import Console

from comtl.cli.running import INTERRUPTED, progress

from .cells import ExperimentError
from .convergence import CONVERGENCE
from .experiment import Experiment, Options, require_data, run_experiment
from .newsgroups import NEWSGROUPS
from .regressions import SCHOOL, SYNTHETIC
from .sensitivity import SENSITIVITY
from .sentiment import SENTIMENT

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (SYNTHETIC, SCHOOL, SENTIMENT, NEWSGROUPS, SENSITIVITY, CONVERGENCE)
}
"""Experiments by the name that the command line knows them by."""
ALL = "all"


def reproduce_command(experiments: Mapping[str, Experiment]) -> click.Command:
    """Return the command that runs one of these experiments, or all."""

    @click.command("reproduce", short_help="Run an experiment of the paper.")
    @click.argument("name", type=click.Choice([*experiments, ALL]))
    @click.option("--quick", is_flag=True, help="A small version, with files of its own.")
    @click.option("--repeats", type=click.IntRange(min=1), default=5, help="Random repeats.")
    @click.option("--methods", metavar="A,B", default="", help="Only these.", show_default="all")
    @click.option(
        "--jobs",
        type=click.IntRange(min=1),
        default=cpu_count,
        help="Processes.",
        show_default="cores available",
    )
    @click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("results"),
        help="Folder for results.",
    )
    @click.option(
        "--data",
        type=click.Path(exists=True, file_okay=False, resolve_path=True),
        help="Folder of the real data sets, which are not shipped.",
        show_default="the environment variable COMTL_DATA",
    )
    def reproduce(
        name: str, quick: bool, repeats: int, methods: str, jobs: int, out: Path, data: str | None
    ) -> None:
        """Run an experiment of the paper, or all of them.

        Writes <name>.csv, <name>_times.csv, <name>.md and figures. Interrupted at any time, the
        same command goes on where it stopped.
        """
        chosen = list(experiments.values()) if name == ALL else [experiments[name]]
        wanted = known_methods(methods, chosen)
        runs = {}
        for experiment in chosen:
            # With "all", a method may be known to some experiments only.
            mine = tuple(method for method in wanted if method in experiment.methods)
            if mine or not wanted:
                runs[experiment] = Options(quick, repeats, mine)
        if data is not None:
            # Processes that are started find it there.
            os.environ["COMTL_DATA"] = data
        try:
            for experiment, options in runs.items():
                require_data(experiment, options, out)
            _check_writable(out)
            for experiment, options in runs.items():
                _run(experiment, options, out, jobs)
        except KeyboardInterrupt:
            click.echo("Interrupted. What is finished is kept: the same command goes on.", err=True)
            raise SystemExit(INTERRUPTED) from None
        except (ExperimentError, OSError) as error:
            raise click.ClickException(" ".join(str(error).split())) from error

    return reproduce


def _check_writable(folder: Path) -> None:
    """Find out before any work that results cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise click.ClickException(
            f"--out {folder} cannot be written to ({error.strerror}); name another folder."
        ) from error


def known_methods(text: str, experiments: Sequence[Experiment]) -> tuple[str, ...]:
    """Names of methods as the experiments spell them, from a list with commas."""
    known = {m.casefold(): m for experiment in experiments for m in experiment.methods}
    names = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [part for part in names if part.casefold() not in known]
    if unknown:
        raise click.BadParameter(
            f"unknown: {', '.join(unknown)}. Known are {', '.join(known.values())}.",
            param_hint="--methods",
        )
    return tuple(dict.fromkeys(known[part.casefold()] for part in names))


def _run(experiment: Experiment, options: Options, out: Path, jobs: int) -> None:
    with progress(experiment.name, Console(stderr=True), what="fits") as report:
        made = run_experiment(experiment, options, out, jobs=jobs, report=report)
    console = Console()
    for table in made.tables:
        console.print(table.rich())
    for path in made.files:
        click.echo(path)


reproduce = reproduce_command(EXPERIMENTS)
