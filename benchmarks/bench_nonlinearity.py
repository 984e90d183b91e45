"""Marginal likelihood of mixed models with hinges and without, on the sets of bench_hinges.

``COMTL_DATA=DIR python benchmarks/bench_nonlinearity.py > benchmarks/bench_nonlinearity.md``
"""

from __future__ import annotations

import warnings
from typing import Any
from unittest import mock

import bench_hinges

from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.evaluation import nonlinearity_evidence
from comtl.evaluation.nonlinearity import MIN_LOG_EVIDENCE


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


if __name__ == "__main__":
    main()
