"""Memory, open files and threads after many calls of one kind in a process of its own."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np

from .attack import Figures

WORK = ("fit", "fit the stack", "predict", "save and load", "report", "fit a table", "command")
MOST = 64.0
"""KiB that a call may leave behind, by the trend over the second half of the calls."""


def trial(rng: np.random.Generator, folder: Path, figures: Figures) -> str:
    name = str(rng.choice(WORK))
    calls = {"fit the stack": 30, "fit a table": 40, "command": 40}.get(name, 80)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    command = [sys.executable, "-m", "soak.growth", name, str(calls)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    figures.setdefault(name, []).append(found["kib"])
    assert found["files"] <= 0 and found["threads"] <= 0, found
    assert found["kib"] <= MOST, (name, found)
    return "steady"


def measure(name: str, calls: int) -> dict[str, float]:
    """Growth of this process over calls of one kind, once the first half has filled caches."""
    import comtl
    from comtl.tables import fit_table
    from small_tables import problem, pupils

    X, y, task = problem(comtl.BiFactorRegressor, tasks=8, rows=20)
    model = comtl.BiFactorRegressor(2).fit(X, y, task=task)
    stack = comtl.MultitaskRegressor(cv=2)
    table = pupils(200, 6)
    table.to_csv("train.csv", index=False)

    def save_and_load() -> None:
        model.save("m.comtl")
        comtl.load("m.comtl")

    def run_command() -> None:
        from click.testing import CliRunner

        from comtl.cli.commands import comtl as command

        told = ["fit", "train.csv", "--task", "school", "--target", "score", "--drop", "passed"]
        told += ["--model", "hierarchical", "--no-score", "--quiet", "--out", "t.comtl"]
        assert CliRunner().invoke(command, told).exit_code == 0

    work = {
        "fit": lambda: comtl.HierarchicalRegressor().fit(X, y, task=task),
        "fit the stack": lambda: stack.fit(X, y, task=task),
        "predict": lambda: model.predict(X, task=task),
        "save and load": save_and_load,
        "report": lambda: model.report("page.html"),
        "fit a table": lambda: fit_table(
            table, task="school", target="score", model="pooled", score=False, drop=("passed",)
        ),
        "command": run_command,
    }[name]
    sizes, files, threads = [], 0, 0
    for call in range(calls):
        work()
        gc.collect()
        if call == calls // 2:
            files, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
        sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4.0)
    half = np.array(sizes[calls // 2 :])
    return {
        "kib": float(np.polyfit(np.arange(len(half)), half, 1)[0]),
        "files": len(os.listdir("/proc/self/fd")) - files,
        "threads": threading.active_count() - threads,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
