"""Where the files of the real data sets lie, what they must hold, and where they come from."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from pyarrow import parquet

PathLike: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True)
class DataFile:
    """A file below the data folder, its checksum, and the source of the original."""

    path: str
    sha256: str
    source: str


FILES = MappingProxyType(
    {
        "school": DataFile(
            "school/school.parquet",
            "67f758d8b64d0c98770541c6ef785bc3846cf97375c00431e60ba16d3c1ad514",
            "GitHub tjanez/PyMTL, data/school/school_b.mat",
        ),
        "stars": DataFile(
            "sentiment_stars/sentiment_stars.parquet",
            "f6e7bce274b82ec634ffc1512d213c34c18fb42be092167effdeaa5987541b16",
            "the Multi-Domain Sentiment Dataset (Blitzer, Dredze, Pereira 2007); GitHub "
            "lorenzoritter/domainadaption, lijuntaopku/UFD, "
            "Valerieps/Crossdomain-sentiment-analysis-with-CNN, ccsasuke/man, hsqmlzno1/HATN and "
            "Gorov/DiverseFewShot_Amazon",
        ),
        "thresholds": DataFile(
            "sentiment_thresholds/sentiment_thresholds.parquet",
            "85d1870a0634b90c09d1ce5a8922928befcfa6221fb412ff935128debfe58fc8",
            "GitHub Gorov/DiverseFewShot_Amazon, Amazon_few_shot/",
        ),
        "fdu14": DataFile(
            "sentiment_fdu14/sentiment_fdu14.parquet",
            "7034a568e28776a0235b6fa5a25044252bb67d561108093f3e7d833ebf11f8fa",
            "GitHub ccsasuke/man, data/fdu-mtl/",
        ),
        "newsgroups": DataFile(
            "twenty_newsgroups/twenty_newsgroups.parquet",
            "8b632f011550ae48fa2f4e9c50772b40e2c8e2612a048dc5c2aaf501da6df148",
            "http://qwone.com/~jason/20Newsgroups/ (20news-bydate); GitHub julenminer/mlnn_P65, "
            "data/20news-bydate-train/ and data/20news-bydate-test/",
        ),
    }
)


def locate(name: str, data_home: PathLike | None = None) -> Path:
    """Return the path of a data set's file once its content has been verified."""
    file = FILES[name]
    home = data_home or os.environ.get("COMTL_DATA")
    path = Path(home or "", file.path)
    if not home or not path.is_file():
        raise FileNotFoundError(
            f"{path} not found: set the environment variable COMTL_DATA, or pass data_home, to the "
            f"folder that holds {file.path}. The original comes from {file.source}."
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
