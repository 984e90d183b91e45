"""Members of a stack on one table: together, with rows and Grams shared, and each by itself.

`make bench` writes the result beside this file; needs COMTL_DATA.
"""

from __future__ import annotations

import copy
import platform
import time
import warnings

import numpy as np

from comtl import MultitaskRegressor
from comtl.arrays.blocks import single_blas
from comtl.linear import OutputColumns
from comtl.rows.fit_input import FitInput
from comtl.stacking.default_members import default_members
from comtl.stacking.members import Shape, Shared
from comtl.stacking.stack import fit_all
from comtl_reproduction.loaders import load_school

REPEATS = 3


def drawn(tasks: int, rows: int, features: int) -> FitInput:
    """Rows of tasks whose weights are one and a spread of one."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(tasks), rows)
    X = rng.standard_normal((len(task), features))
    weights = 1.0 + rng.standard_normal((tasks, features))
    y = np.einsum("np,np->n", X, weights[task]) + rng.standard_normal(len(task))
    return FitInput(X, y, task)


def school() -> FitInput:
    """All pupils."""
    data = load_school()
    return FitInput(data.X, data.y, data.task)


def seconds(work) -> float:
    """CPU seconds, the least of some."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def measured(rows: FitInput) -> tuple[str, float, float]:
    """Sizes, and seconds of members alone and together."""
    data = rows.read(MultitaskRegressor())
    members = default_members(Shape.of(data), classification=False)

    def alone() -> None:
        with single_blas():
            for member in members:
                copy.copy(member.model)._learn(data, OutputColumns.of(data))

    def together() -> None:
        shared = Shared(data, members)
        fit_all(members, shared.rows(), shared, None)

    size = f"{data.n_observations}, {data.n_features}, {data.n_tasks}"
    return size, seconds(alone), seconds(together)


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    print("# Sharing rows and Gram matrices between members\n")
    print(
        "CPU seconds of all members of `MultitaskRegressor`: fitted separately and jointly; least"
    )
    print("of three runs.\n")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}; one thread.\n")
    print("| rows, features, tasks | alone | together | ratio |\n|" + " --- |" * 4)
    for rows in (school(), drawn(20, 100, 20), drawn(20, 10_000, 20), drawn(20, 10_000, 5)):
        size, alone, together = measured(rows)
        print(f"| {size} | {alone:.2f} | {together:.2f} | {alone / together:.1f} |", flush=True)


if __name__ == "__main__":
    main()
