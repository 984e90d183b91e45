"""Parts of a long fit in a file, for the same fit to go on from."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, final

import joblib

from ..rows.observations import Observations
from ..saving.registry import ModelFileError

EVERY = 30.0
"""Seconds between two writings of what is not finished yet."""
INDIFFERENT = frozenset({"checkpoint", "verbose", "n_jobs"})
"""Parameters that do not change what a fit comes to."""


@final
class Checkpoint:
    """What a fit has found so far, by name; in memory alone without a path."""

    def __init__(self, path: str | os.PathLike[str] | None, fingerprint: str) -> None:
        self._path = None if path is None else Path(path)
        self._fingerprint = fingerprint
        self._parts: dict[str, Any] = {}
        self._written = time.monotonic()
        if self._path is not None and self._path.exists():
            self._parts = self._read(self._path)

    @classmethod
    def of(cls, path: str | os.PathLike[str] | None, model: Any, data: Observations) -> Checkpoint:
        if path is None:
            return cls(None, "")
        if data.on_device:
            raise TypeError(
                f"checkpoint= tells fits apart by their rows, which lie in {data.device}; "
                "leave it out, or fit on arrays of NumPy."
            )
        parameters = {
            name: value
            for name, value in model.get_params(deep=False).items()
            if name not in INDIFFERENT
        }
        return cls(path, joblib.hash((type(model).__name__, parameters, data.fingerprint)))

    def _read(self, path: Path) -> dict[str, Any]:
        from ..saving import load

        content = load(path)
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
