"""Processes killed at random moments: commands that write, and fits with checkpoints."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import comtl
from comtl.engine import progress
from comtl.saving.writing import PARTS, write_atomically
from comtl.tables import load_model
from small_tables import problem, pupils

from .attack import Figures, LostFileError

FIT = ("fit", "train.csv", "--task", "school", "--target", "score", "--drop", "passed")
COMMANDS: dict[str, tuple[str, ...]] = {
    "m.comtl": (*FIT, "--model", "hierarchical", "--no-score", "--out", "m.comtl"),
    "two.comtl": (*FIT, "--no-score", "--jobs", "2", "--out", "two.comtl"),
    "page.html": ("report", "old.comtl", "--out", "page.html"),
    "guess.csv": ("predict", "old.comtl", "train.csv", "--interval", "0.9", "--out", "guess.csv"),
    "guess.parquet": ("predict", "old.comtl", "train.csv", "--out", "guess.parquet"),
    "larger.comtl": ("adapt", "pooled.comtl", "more.csv", "--out", "larger.comtl"),
}
"""Commands by the file that they write."""
ROWS = 600


class Child:
    """A Python process in a session of its own, which has imported what it needs."""

    def __init__(self, folder: Path, code: str, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()
        self.begun = time.monotonic()

    def seconds(self) -> float:
        """Wait for the end; how long the work took."""
        code = self.process.wait()
        self.process.stdout.close()
        assert code == 0, code
        return time.monotonic() - self.begun

    def kill_after(self, seconds: float) -> bool:
        """Kill the session after some time of work; whether it was at work still."""
        try:
            self.process.wait(max(0.0, seconds - (time.monotonic() - self.begun)))
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
        killed = self.process.wait() != 0
        self.process.stdout.close()
        return killed


COMMAND = """
import sys, comtl.cli.fit_command, comtl.cli.commands as commands, comtl.stacking, comtl.show.page
print(flush=True)
commands.comtl(sys.argv[1:])
"""


@cache
def prepared() -> tuple[Path, dict[str, float]]:
    """Folder with tables and with what each command writes, and how long each takes."""
    folder = Path(tempfile.mkdtemp(prefix="soak-kills-"))
    table = pupils(ROWS, 20)
    table.to_csv(folder / "train.csv", index=False)
    table.head(40).assign(school="new").to_csv(folder / "more.csv", index=False)
    for name, model in (("old", "hierarchical"), ("pooled", "pooled")):
        out = ("--model", model, "--no-score", "--out", f"{name}.comtl")
        Child(folder, COMMAND, *FIT, *out).seconds()
    took = {name: Child(folder, COMMAND, *told).seconds() for name, told in COMMANDS.items()}
    return folder, took


def trial(rng: np.random.Generator, folder: Path, figures: Figures) -> str:
    if rng.random() < 0.4:
        return checkpoint_trial(rng, folder)
    source, took = prepared()
    name = str(rng.choice(list(COMMANDS)))
    shutil.copytree(source, folder, dirs_exist_ok=True)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    old = rng.random() < 0.7
    if not old:
        (folder / name).unlink()
    killed = Child(folder, COMMAND, *COMMANDS[name]).kill_after(rng.uniform(0, 1.1 * took[name]))
    for other, content in before.items():
        if other != name and (folder / other).read_bytes() != content:
            raise LostFileError(f"{other} was changed")
    if (folder / name).exists():
        check_whole(folder / name)
    elif old or not killed:
        raise LostFileError(f"{name} is gone")
    write_atomically(folder / "next", b"")
    left = [path.name for path in folder.iterdir() if path.name.startswith(PARTS[0])]
    assert not left, left
    return "killed" if killed else "finished"


def check_whole(path: Path) -> None:
    """Raise LostFileError if a file of a command is not whole."""
    import pandas as pd

    try:
        if path.suffix == ".comtl":
            load_model(path)
        elif path.suffix == ".html":
            assert path.read_text().endswith("</html>\n")
        else:
            read = pd.read_csv if path.suffix == ".csv" else pd.read_parquet
            assert len(read(path)) == ROWS
    except Exception as error:
        raise LostFileError(f"{path.name} is torn: {error}") from error


FITS: dict[str, Any] = {
    "TriFactorRegressor": comtl.TriFactorRegressor(2, 2, max_iter=60, tol=0.0, random_state=0),
    "BiFactorRegressorCV": comtl.BiFactorRegressorCV(
        2, alphas=(0.1, 1.0, 10.0), cv=3, random_state=0
    ),
    "MultitaskRegressor": comtl.MultitaskRegressor(cv=3),
    "MultitaskRegressor, two jobs": comtl.MultitaskRegressor(cv=3, n_jobs=2),
    "MultitaskRegressor, Dask": comtl.MultitaskRegressor(cv=3, n_jobs=2),
}
"""Fits that keep checkpoints."""
WORK = """
import sys, comtl.stacking
from soak.kills import FITS, fitted
if sys.argv[1].endswith("Dask"):
    import joblib
    from distributed import Client, LocalCluster
    cluster = LocalCluster(2, threads_per_worker=1, processes=False, dashboard_address=None)
    Client(cluster)
    joblib.parallel_config(backend="dask")
print(flush=True)
fitted(FITS[sys.argv[1]], sys.argv[2])
"""


def fitted(model: Any, path: str | None = None) -> Any:
    """Clone of a model, fitted with a checkpoint that is written at every step."""
    from sklearn.base import clone

    X, y, task = problem(type(model), tasks=8, rows=15)
    progress.EVERY = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).set_params(checkpoint=path).fit(X, y, task=task)


@cache
def in_peace(name: str) -> tuple[np.ndarray, float]:
    """Weights that a fit comes to, and the seconds that it takes."""
    begun = time.monotonic()
    coef = fitted(FITS[name]).coef_
    return coef, time.monotonic() - begun


def checkpoint_trial(rng: np.random.Generator, folder: Path) -> str:
    """Kill a fit up to three times, and let it end: the weights are those of a fit in peace."""
    name = str(rng.choice(list(FITS)))
    coef, took = in_peace(name)
    path = str(folder / "fit.ckpt")
    killed = 0
    for _ in range(rng.integers(1, 4)):
        killed += Child(folder, WORK, name, path).kill_after(rng.uniform(0, 1.2 * took))
    np.testing.assert_array_equal(fitted(FITS[name], path).coef_, coef)
    assert not (folder / "fit.ckpt").exists()
    return "resumed" if killed else "finished"
