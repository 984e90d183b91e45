"""Write files atomically."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            file.write(content)
            to_disk(file)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def to_disk(file: IO[Any]) -> None:
    """Flush a file to disk."""
    file.flush()
    os.fsync(file.fileno())
