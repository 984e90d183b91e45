"""EM iterations with extrapolation, compared with plain ones.

`make bench` writes the result beside this file.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from comtl import HierarchicalRegressor
from comtl.hierarchical import em as evidence
from small_tables import Split, tables

MODELS = (("diagonal", 1), ("factor", 1), ("factor", 3))
NEVER, MOST = 10**9, 3000


def fitted(split: Split, structure: str, count: int, plain: int) -> tuple[int, float, float]:
    """Iterations, CPU seconds and log likelihood of a fit with so many plain iterations first."""
    X, y, task, train = split
    usual, evidence.MIN_PLAIN_STEPS = evidence.MIN_PLAIN_STEPS, plain
    start = time.process_time()
    try:
        model = HierarchicalRegressor(structure, n_components=count, max_iter=MOST)
        model.fit(X[train], y[train], task=task[train])
    finally:
        evidence.MIN_PLAIN_STEPS = usual
    return model.n_iter_, time.process_time() - start, model.log_evidence_


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    print("# Extrapolated EM iterations\n")
    print(
        f"`HierarchicalRegressor` at its default `tol`, at most {MOST} iterations: all plain EM, or"
    )
    print("extrapolated from the 11th or the 41st on. Iterations, CPU seconds, and log likelihood")
    print("relative to plain EM; one split of each table.\n")
    print("| set | structure | plain | from the 11th | from the 41st |")
    print("| --- | --- | --- | --- | --- |")
    for name, _, splits in tables():
        for structure, count in MODELS:
            found = [fitted(splits[0], structure, count, plain) for plain in (NEVER, 10, 40)]
            top = found[0][2]
            cells = [f"{steps}, {cpu:.2f} s" for steps, cpu, _ in found]
            gains = ["", *(f", {value - top:+.3f}" for _, _, value in found[1:])]
            text = " | ".join(np.char.add(cells, gains))
            label = structure + (f" {count}" if structure == "factor" else "")
            print(f"| {name} | {label} | {text} |", flush=True)


if __name__ == "__main__":
    main()
