"""Run the attacks for a time, print what came of them, and write docs/reliability.md.

python tests/soak [--minutes 60] [--seed 0] [--only NAME] [--trial NUMBER]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from statistics import median

# Set before NumPy is imported, here and in the processes that trials start.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
TESTS = Path(__file__).resolve().parents[1]
sys.path[0] = str(TESTS)

from soak import ATTACKS  # noqa: E402
from soak.attack import BAD, Attack  # noqa: E402

PROCESSES = 2
PAGE = TESTS.parent / "docs" / "reliability.md"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(ATTACKS))
    parser.add_argument("--trial", type=int, help="one trial of --only, to repeat a failure")
    told = parser.parse_args(arguments)
    if told.trial is not None:
        ATTACKS[told.only].run_one(told.seed, told.trial)
        return int(bool(ATTACKS[told.only].failures))
    attacks = [attack for name, attack in ATTACKS.items() if told.only in (None, name)]
    attacks.sort(key=lambda attack: -attack.share)
    begun, unit = time.monotonic(), 60 * told.minutes / sum(attack.share for attack in attacks)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, context, max_tasks_per_child=1) as pool:
        seconds = [unit * attack.share * min(PROCESSES, len(attacks)) for attack in attacks]
        jobs = [
            pool.submit(attack.run, told.seed, some)
            for attack, some in zip(attacks, seconds, strict=True)
        ]
        done = [job.result() for job in jobs]
    done.sort(key=lambda attack: list(ATTACKS).index(attack.name))
    text = report(done, told.seed, (time.monotonic() - begun) / 60)
    print(text)
    if told.only is None and told.minutes >= 60:
        PAGE.write_text(text)
    return int(any(attack.failures for attack in done))


def report(attacks: Sequence[Attack], seed: int, minutes: float) -> str:
    """The page of what came of the attacks."""
    lines = [
        "# Reliability",
        "",
        "`make soak` attacks the library for an hour by chance, `make soak ARGS='--seed 1'` with",
        "other numbers; a short part runs in the tests (`tests/test_soak.py`). The last full run:",
        f"seed {seed}, {minutes:.0f} minutes, comtl {version('comtl')}, Python "
        f"{platform.python_version()}, NumPy {version('numpy')}, scikit-learn "
        f"{version('scikit-learn')}.",
        "",
        "| attack | trials | what came of them | lost | wrong | hangs | other errors |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for attack in attacks:
        counts = attack.counts
        good = ", ".join(
            f"{n:,} {name}" for name, n in counts.most_common() if name not in BAD.values()
        )
        bad = " | ".join(str(counts[name]) for name in BAD.values())
        lines.append(f"| {attack.what} | {counts.total():,} | {good} | {bad} |")
    lines += ["", *MEANING]
    growth = next((attack.figures for attack in attacks if attack.name == "growth"), {})
    for attack in attacks:
        if attack.figures and attack.figures is not growth:
            sums = [f"{sum(values):,.0f} {name}" for name, values in attack.figures.items()]
            lines += ["", f"Of {attack.what}: {', '.join(sums)}."]
    lines += ["", "Memory that a call leaves behind (trend over the second half of the calls):"]
    lines += ["", "| call | runs | KiB a call, median | most |", "| --- | ---: | ---: | ---: |"]
    for name, kib in sorted(growth.items()):
        lines.append(f"| {name} | {len(kib)} | {median(kib):.1f} | {max(kib):.1f} |")
    return "\n".join(lines) + "\n"


MEANING = (
    "- **refused**: an error that says what is wrong, and nothing written. **loaded**: a forged",
    "  file with a right checksum that holds a whole model, though with other numbers.",
    "- **lost**: a file of the user gone or torn. **wrong**: a result that differs from the",
    "  reference: the same fit alone, in peace, on tame numbers, or in extended precision.",
    "- **killed**: killed at work, and the old file or the new one is there, whole; **resumed**:",
    "  the fit went on from its checkpoint to the same weights, bit by bit.",
)


if __name__ == "__main__":
    sys.exit(main())
