"""One path that 4 processes of 8 threads save to and read from: every read is a whole model."""

from __future__ import annotations

import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import comtl
from comtl.saving import ModelFileError

from .attack import LIMIT, Figures, LostFileError

PROCESSES, THREADS = 4, 8
SAVES, READS = 32, 64  # of each thread
WIDTHS = 2, 40, 900
"""Columns of the models, so that files are of several sizes and fill many blocks."""


def trial(rng: np.random.Generator, folder: Path, figures: Figures) -> str:
    path = folder / "m.comtl"
    model_of(WIDTHS[0]).save(path)
    command = [sys.executable, "-m", "soak.paths", str(path)]
    seeds = [str(seed) for seed in rng.integers(2**31, size=PROCESSES)]
    place = Path(__file__).parents[1]
    writers = [
        subprocess.Popen(
            [*command, seed],
            cwd=place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for seed in seeds
    ]
    said = [writer.communicate(timeout=LIMIT)[0] for writer in writers]
    if any(writer.returncode for writer in writers):
        raise LostFileError("\n".join(said))
    left = sorted(one.name for one in folder.iterdir())
    assert left == [path.name], f"left behind: {left}"
    count = PROCESSES * THREADS
    figures.setdefault("saves of one path", []).append(count * SAVES)
    figures.setdefault("reads of it meanwhile", []).append(count * READS)
    return "whole"


def model_of(width: int) -> comtl.BiFactorRegressor:
    """A model of so many columns."""
    X = np.random.default_rng(0).normal(size=(8, width))
    model = comtl.BiFactorRegressor(1, max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, X[:, 0], task=np.repeat([0, 1], 4))


def write_and_read(path: Path, seed: int) -> None:
    """Save models at random, and look that each read finds one of them."""
    models = [model_of(width) for width in WIDTHS]
    known = {one.n_features_in_: one.coef_ for one in models}

    def work(rng: np.random.Generator) -> None:
        for read in rng.permutation(np.repeat([False, True], [SAVES, READS])):
            if not read:
                models[rng.integers(len(models))].save(path)
                continue
            try:
                found = comtl.load(path)
            except (ModelFileError, OSError) as error:
                raise LostFileError(f"{path.name} is torn: {error}") from error
            np.testing.assert_array_equal(found.coef_, known[found.n_features_in_])

    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(work, np.random.default_rng(seed).spawn(THREADS)):
            pass


if __name__ == "__main__":
    write_and_read(Path(sys.argv[1]), int(sys.argv[2]))
