"""One table as many files: whatever the format, the same model or a refusal."""

from __future__ import annotations

import gzip
import io
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comtl.tables import TableError, fit_table, read_table
from small_tables import pupils

from .attack import Figures

FIT: dict[str, Any] = {
    "task": "school", "target": "score", "model": "pooled", "score": False, "drop": ("passed",)
}  # fmt: skip
ODD = ("ß", "a;b", "it's", 'say "hi"', " pad ", "=1+1", "NA", "0012", "1e5", "\u202e", "x\ty", "-")


@cache
def expected() -> tuple[pd.DataFrame, np.ndarray]:
    """A table, and what a model fitted to it predicts."""
    table = pupils(200, 6)
    return table, np.asarray(fit_table(table, **FIT).predict(table))


def trial(rng: np.random.Generator, folder: Path, figures: Figures) -> str:
    kind = rng.integers(3)
    if kind == 0:
        return broken(rng, folder)
    table, known = expected()
    table = table.copy()
    if kind == 1:
        # Other names of tasks, in the same order, by which folds are made.
        names = sorted(rng.permutation(ODD)[:6])
        table["school"] = table["school"].map(
            dict(zip(sorted(set(table["school"])), names, strict=True))
        )
    order = rng.permutation(list(table.columns))
    path, options = written(table[order], rng, folder)
    try:
        loaded = read_table(path, **options)
        found = np.asarray(fit_table(loaded.table, **FIT).predict(loaded.table))
    except TableError as error:
        assert_said(error)
        assert kind == 1, error
        return "refused"
    assert len(found) == len(known)
    assert np.max(np.abs(found - known)) < 1e-6 * np.std(known), path.name
    return "right"


def written(
    table: pd.DataFrame, rng: np.random.Generator, folder: Path
) -> tuple[Path, dict[str, str]]:
    """The table in a file of some format, and how to read it."""
    kind, options = rng.integers(4), {}
    content = io.BytesIO()
    if kind == 0:
        table.to_parquet(content, index=bool(rng.integers(2)))
    elif kind == 1:
        table.to_feather(content)
    else:
        delimiter = rng.choice([",", ";", "\t", "|"])
        ending, quoting = rng.choice(["\n", "\r\n"]), int(rng.choice([0, 1, 2]))
        text = table.to_csv(
            None, sep=delimiter, index=False, lineterminator=ending, quoting=quoting
        )
        encoding = str(rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"]))
        if encoding == "utf-16":
            options["encoding"] = encoding
        if rng.random() < 0.3:
            text = text.rstrip("\r\n")
        content.write(text.encode(encoding))
    path, data = folder / "table", content.getvalue()
    path.write_bytes(gzip.compress(data) if rng.random() < 0.3 else data)
    return path, options


def broken(rng: np.random.Generator, folder: Path) -> str:
    """A file with bytes changed: read, or refused in a sentence."""
    path, options = written(expected()[0], rng, folder)
    content = bytearray(path.read_bytes())
    for _ in range(rng.integers(1, 5)):
        first, second = sorted(rng.integers(len(content) + 1, size=2).tolist())
        change = rng.integers(4)
        if change == 0:
            content[first : first + 1] = rng.bytes(1)
        elif change == 1:
            content[first:first] = bytes(rng.choice(list(b'\x00"\n\r,;\t\xff\x1f\x8b'), 2).tolist())
        elif change == 2:
            del content[first : min(second, first + 40)]
        else:
            del content[first:]
    path.write_bytes(content)
    try:
        loaded = read_table(path, **options)
        found = fit_table(loaded.table, **FIT).predict(loaded.table)
    except TableError as error:
        assert_said(error)
        return "refused"
    values = np.asarray(found, dtype=float)
    assert len(values) == loaded.table.num_rows and np.all(np.isfinite(values))
    return "read"


def assert_said(error: Exception) -> None:
    assert "\n" not in str(error) and 10 < len(str(error)) < 700, error
