"""Where the files of the real data sets lie, what they must hold, and where they come from."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
from pyarrow import parquet

from ..paper import PAPER

PathLike: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True)
class DataFile:
    """A file below the data folder, its checksum, and the source of the original."""

    path: str
    sha256: str
    source: str


FILES = {name: DataFile(**file) for name, file in PAPER["files"].items()}


def locate(name: str, data_home: PathLike | None = None) -> Path:
    """Return the path of a data set's file once its content has been verified."""
    file = FILES[name]
    home = data_home or os.environ.get("COMTL_DATA")
    path = Path(home or "", file.path)
    if not home or not path.is_file():
        raise FileNotFoundError(
            f"{path} not found. Data files are not shipped: give the folder that holds {file.path} "
            "by --data, the environment variable COMTL_DATA, or data_home in Python. The original "
            f"comes from {file.source}."
        )
    if _checksum(path.resolve(), path.stat().st_mtime_ns) != file.sha256:
        raise ValueError(
            f"The SHA-256 checksum of {path} is not {file.sha256}: the file is damaged or another "
            f"version; replace it. The original comes from {file.source}."
        )
    return path.resolve()


@cache
def _checksum(path: Path, changed: int) -> str:
    """SHA-256 of a file, computed once a process unless the file has changed."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """Read the columns of a parquet file, text as arrays of objects."""
    table = parquet.read_table(path)
    return {name: table[name].to_numpy() for name in table.column_names}
