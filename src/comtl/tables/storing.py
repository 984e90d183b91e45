"""Models of tables in files."""

from __future__ import annotations

import os
from typing import Any


def store(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file, without pickles."""
    from ..saving import save

    save(model, path)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file."""
    from ..saving import load

    return load(path)
