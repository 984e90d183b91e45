"""A tiny experiment: squares, each call noted in a file. As a script it runs in a folder."""

import sys
import time
from pathlib import Path

import numpy as np

from comtl_reproduction.cells import Cell
from comtl_reproduction.experiment import Experiment, Options, run_experiment
from comtl_reproduction.tables import tabulate

METHODS = ("STL", "ITL")


def work(method, repeat, folder, pause):
    with Path(folder, "calls").open("a") as file:
        file.write(f"{method} {repeat}\n")
    time.sleep(pause)
    rng = np.random.default_rng(repeat)
    # A product large enough for BLAS to use threads, where it may.
    square = rng.standard_normal((200, 200)) @ rng.standard_normal((200, 200))
    return {"rmse": np.linalg.norm(square) + METHODS.index(method), "note": "a, b"}


def toy(folder, pause=0.0):
    return Experiment(
        name="toy",
        title="A toy",
        methods=METHODS,
        key_columns=("data", "method", "repeat"),
        value_columns=("rmse", "note"),
        cells=lambda options: [
            Cell(
                {"data": "syn1", "method": method, "repeat": repeat},
                work,
                {"method": method, "repeat": repeat, "folder": str(folder), "pause": pause},
            )
            for method in METHODS
            if options.wants(method)
            for repeat in range(options.repeats)
        ],
        summary=lambda rows: [tabulate(rows, "rmse", title="RMSE")],
    )


if __name__ == "__main__":
    where, wait, processes = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    run_experiment(toy(where, wait), Options(), where, jobs=processes)
