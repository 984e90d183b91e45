"""How a long fit is followed and goes on: messages, callbacks of scikit-learn, checkpoints."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

import joblib

from ..rows.observations import Observations
from ..saving.registry import ModelFileError

logger = logging.getLogger("comtl")

EVERY = 30.0
"""Seconds between two writings of what is not finished yet."""
INDIFFERENT = frozenset({"checkpoint", "verbose", "n_jobs"})
"""Parameters that do not change what a fit comes to."""

Item = TypeVar("Item")


def progress_shown(verbose: int) -> AbstractContextManager[None]:
    """Let INFO messages through while a fit runs, if it is verbose."""
    return _messages_shown() if verbose else nullcontext()


@contextmanager
def _messages_shown() -> Iterator[None]:
    """Messages go to the user's logging, else to standard error."""
    level = logger.level
    handler = None if logger.hasHandlers() else logging.StreamHandler()
    logger.setLevel(logging.INFO)
    if handler is not None:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(level)
        if handler is not None:
            logger.removeHandler(handler)


@contextmanager
def steps_hidden() -> Iterator[None]:
    """Hide what fits in this thread say, where they are many and each is a part of another."""
    hidden = threading.get_ident()

    def is_shown(record: logging.LogRecord) -> bool:
        return record.levelno > logging.INFO or record.thread != hidden

    logger.addFilter(is_shown)
    try:
        yield
    finally:
        logger.removeFilter(is_shown)


@final
@dataclass(frozen=True, eq=False)
class FitProgress:
    """Who follows a fit to X and y: callbacks of scikit-learn, and the user, who may interrupt."""

    model: Any = None
    X: Any = None
    y: Any = None

    @property
    def is_root(self) -> bool:
        """Whether the model may end early, with what it has, when the user interrupts."""
        return self.model is not None

    def iterate(
        self,
        items: Iterable[Item],
        name: str,
        *,
        more: Callable[[Item], bool] = lambda item: True,
        fitted: Callable[[Item], dict[str, Any]] | None = None,
    ) -> Iterator[Item]:
        """Yield subtasks until a callback asks to stop or ``more(item)`` is false."""
        if self.model is None or not vars(self.model).get("_skl_callbacks"):
            return iter(items)
        return self._with_callbacks(iter(items), name, more, fitted)

    def _with_callbacks(
        self,
        items: Iterator[Item],
        name: str,
        more: Callable[[Item], bool],
        fitted: Callable[[Item], dict[str, Any]] | None,
    ) -> Iterator[Item]:
        rows = {"X": self.X, "y": self.y}
        going = True
        while going:
            task = self.model._callback_fit_ctx.subcontext(task_name=name)
            task.call_on_fit_task_begin(estimator=self.model, **rows)
            try:
                item = next(items)
            except StopIteration:
                return
            yield item
            known = None if fitted is None else lambda item=item: fitted(item)
            stop = task.call_on_fit_task_end(
                estimator=self.model, **rows, reconstruction_attributes=known
            )
            going = more(item) and not stop


SILENT = FitProgress()


@final
class Checkpoint:
    """What a fit has found so far, by name, for the same fit to go on from a file."""

    def __init__(self, path: str | os.PathLike[str] | None = None, fingerprint: str = "") -> None:
        # Without a path in memory alone.
        self._path = None if path is None else Path(path)
        self._fingerprint = fingerprint
        self._parts: dict[str, Any] = {}
        self._written = time.monotonic()
        if self._path is not None and self._path.exists():
            self._parts = self._read(self._path)

    @classmethod
    def of(cls, path: str | os.PathLike[str] | None, model: Any, data: Observations) -> Checkpoint:
        return cls() if path is None else cls(path, fingerprint_of(model, data))

    def _read(self, path: Path) -> dict[str, Any]:
        from ..saving import read

        content = read(path)
        if not isinstance(content, dict) or content.keys() != {"fingerprint", "parts"}:
            raise ModelFileError(f"checkpoint={path} is no checkpoint; name another file.")
        if content["fingerprint"] != self._fingerprint:
            raise ValueError(
                f"checkpoint={path} is that of another fit, with other data or parameters; remove "
                "the file, or name another."
            )
        return content["parts"]

    def get(self, name: str) -> Any:
        return self._parts.get(name)

    def save(self, name: str, value: Any) -> None:
        """Keep a finished part, and write it at once."""
        self._parts[name] = value
        self._write()

    def save_later(self, name: str, value: Any) -> None:
        """Keep how far a part has come; written every so often."""
        self._parts[name] = value
        if time.monotonic() - self._written >= EVERY:
            self._write()

    def finish(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def flush(self) -> None:
        if self._parts:
            self._write()

    def _write(self) -> None:
        if self._path is not None:
            from ..saving import save

            save({"fingerprint": self._fingerprint, "parts": self._parts}, self._path)
        self._written = time.monotonic()


def fingerprint_of(model: Any, data: Observations) -> str:
    """What tells a fit apart from others: the class and parameters of the model, and its rows."""
    if data.on_device:
        raise TypeError(
            f"checkpoint= tells fits apart by their rows, which lie in {data.device}; "
            "leave it out, or fit on arrays of NumPy."
        )
    parameters = model.get_params(deep=False)
    parameters = {name: value for name, value in parameters.items() if name not in INDIFFERENT}
    return joblib.hash((type(model).__name__, parameters, data.fingerprint))
