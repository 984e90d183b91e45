"""Disks that are full or read-only: a tmpfs of its own for each trial."""

from __future__ import annotations

import os
import subprocess
from contextlib import chdir
from functools import cache
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from comtl.baselines import IndependentRegressor
from comtl.cli.commands import comtl as command
from comtl.saving import load
from small_tables import pupils

from .attack import Figures, LostFileError
from .kills import FIT


@cache
def model(tasks: int) -> IndependentRegressor:
    """A model whose file grows with its tasks."""
    rows = np.random.default_rng(0).normal(size=(2 * tasks, 3))
    return IndependentRegressor().fit(rows, rows[:, 0], task=np.repeat(np.arange(tasks), 2))


def trial(rng: np.random.Generator, folder: Path, figures: Figures) -> str:
    size = int(rng.integers(16, 400))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(folder)], capture_output=True
    )
    if os.geteuid() != 0 or mounted.returncode:
        return "skipped: no tmpfs can be mounted here"
    try:
        return on_small_disk(rng, folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def on_small_disk(rng: np.random.Generator, folder: Path) -> str:
    """Write to a disk until it is full, or after it has become read-only."""
    path = folder / "m.comtl"
    old = None
    outcome = "written"
    for _ in range(rng.integers(1, 6)):
        tasks = int(rng.integers(1, 4000))
        read_only = rng.random() < 0.2
        if read_only:
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        try:
            model(tasks // 100 * 100 + 1).save(path)
            assert not read_only
            old = path.read_bytes()
        except OSError as error:
            outcome = "refused"
            assert error.errno, error
        if read_only:
            subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        left = sorted(one.name for one in folder.iterdir())
        if old is not None and path.read_bytes() != old:
            raise LostFileError("the old file is gone or torn")
        assert left == ([] if old is None else ["m.comtl"]), left
    if old is not None:
        load(path)
    if rng.random() < 0.1:
        return command_on_full_disk(rng, folder)
    return outcome


def command_on_full_disk(rng: np.random.Generator, folder: Path) -> str:
    """A command that cannot write says so in a line, and leaves nothing behind."""
    table = pupils()
    room = os.statvfs(folder).f_bavail * 4096
    (folder / "filling").write_bytes(bytes(max(0, room - int(rng.integers(0, 40_000)))))
    before = {one.name for one in folder.iterdir()}
    with chdir(folder.parent):
        table.to_csv(f"{folder.name}-train.csv", index=False)
        arguments = list(FIT)
        arguments[1] = f"{folder.name}-train.csv"
        out = str(folder / "new.comtl")
        told = [*arguments, "--model", "hierarchical", "--no-score", "--quiet", "--out", out]
        result = CliRunner().invoke(command, told)
        Path(arguments[1]).unlink()
    if result.exit_code == 0:
        load_path = folder / "new.comtl"
        assert load_path.exists()
        return "written"
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.stderr.count("\n") == 1 and "space" in result.stderr, result.stderr
    assert {one.name for one in folder.iterdir()} == before
    return "refused"
