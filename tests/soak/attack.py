"""An attack, its trials, and what came of them."""

from __future__ import annotations

import signal
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

Figures = dict[str, list[float]]
Trial = Callable[[np.random.Generator, Path, Figures], str]

LIMIT = 300.0
"""Seconds after which a trial counts as a hang."""


class LostFileError(AssertionError):
    """A file of the user is gone or torn."""


@dataclass(eq=False)
class Attack:
    """Trials of one kind; each returns what came of it in a word, or raises."""

    name: str
    what: str
    trial: Trial
    share: int = 1
    """Of the time of all attacks."""
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    figures: Figures = field(default_factory=dict)
    """What trials measure, by name."""

    def run(self, seed: int, seconds: float) -> Attack:
        """Repeat trials for a time, from the first number on."""
        end, number = time.monotonic() + seconds, 0
        while number == 0 or time.monotonic() < end:
            self.run_one(seed, number)
            number += 1
        print(f"{self.name}: {dict(self.counts)}", flush=True)
        return self

    def run_one(self, seed: int, number: int) -> None:
        """Run one trial, and count what came of it."""
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode()), number])
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            try:
                with time_limit(LIMIT):
                    outcome = self.trial(rng, Path(folder), self.figures)
            # Whatever a trial does not expect is a failure of the library.
            except Exception as error:
                outcome = next((name for kind, name in BAD.items() if isinstance(error, kind)))
                place = f"{self.name}, seed {seed}, trial {number}"
                self.failures.append(f"{outcome}: {place}\n{traceback.format_exc()}")
                print(self.failures[-1], flush=True)
        self.counts[outcome] += 1


BAD: dict[type[Exception], str] = {
    LostFileError: "lost",
    AssertionError: "wrong",
    TimeoutError: "hang",
    Exception: "error",
}
"""Outcomes by the first error that fits."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the main thread after some seconds."""

    def expired(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
