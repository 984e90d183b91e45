"""Features of the columns of a table, in training and in prediction."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from shlex import quote
from typing import Any, final

import numpy as np
import pyarrow as pa
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from ..phrases import some
from ..saving.registry import saved
from .columns import CATEGORY, NUMBER, Column
from .infer_types import SkippedColumn, infer_column
from .values import TableError, require_columns

WIDE = 100
"""Number of features from which a table that is mostly zero becomes sparse."""
FULL = 0.2
"""Share of values that are not zero from which a wide table stays dense."""
ROW_NUMBERS = 20
"""Rows from which whole numbers that never repeat may be identifiers."""
SPARSE_GAPS = 10.0
"""Mean difference of neighbours from which they are measurements instead."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """Features of some rows, and notes on values that the training data did not have."""

    X: Any
    notes: tuple[str, ...]


@saved
@final
@dataclass(frozen=True, eq=False)
class Encoder:
    """How the columns of a table become features.

    Parameters
    ----------
    columns : tuple of Column
        Columns in use, in the order of the table.
    names : tuple of str
        Names of the features.
    missing : str
        "impute", or "refuse": rows must be complete.
    sparse : bool
        Whether features are a sparse matrix; else a pandas frame.
    spreads : ndarray of shape (n_features,)
        Standard deviations of the features in training.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from comtl.tables import Encoder
    >>> table = pa.table({"age": [7, None, 9], "sex": ["f", "m", "f"], "land": ["x", "x", "x"]})
    >>> encoder, notes = Encoder.of(table)
    >>> encoder.names, notes
    (('age', 'age missing', 'sex=f', 'sex=m'), ["Column 'land' is 'x' in every row: left out."])
    >>> encoder.encode(table).X
       age  age missing  sex=f  sex=m
    0  7.0          0.0    1.0    0.0
    1  8.0          1.0    0.0    1.0
    2  9.0          0.0    1.0    0.0
    """

    columns: tuple[Column, ...]
    names: tuple[str, ...]
    missing: str
    sparse: bool
    spreads: np.ndarray

    @classmethod
    def of(
        cls,
        table: pa.Table,
        *,
        category: Collection[str] = (),
        number: Collection[str] = (),
        missing: str = "impute",
        date_format: str | None = None,
        decimal: str | None = None,
    ) -> tuple[Encoder, list[str]]:
        """Encoder of all columns of a table, and notes on it.

        Parameters
        ----------
        table : Arrow table
            The columns to make features of.
        category, number : collections of str
            Columns to take as categories and as numbers, whatever they look like.
        missing : {"impute", "refuse"}
            What to do with missing values.
        date_format : {"ymd", "dmy", "mdy"}, optional
            Order of year, month and day; by default what suits all dates of a column.
        decimal : {".", ","}, optional
            Decimal mark of numbers in text; by default what suits all numbers of a column.

        Returns
        -------
        encoder : Encoder
            The encoder.
        notes : list of str
            What was left out, and what looks odd.
        """
        forced = {**dict.fromkeys(category, CATEGORY), **dict.fromkeys(number, NUMBER)}
        read = [
            infer_column(
                table.column(name), name, forced.get(name), order=date_format, decimal=decimal
            )
            for name in table.column_names
        ]
        skipped = [one for one in read if isinstance(one, SkippedColumn)]
        refused = [one for one in skipped if one.refused]
        if refused:
            others = ", ".join(repr(one.name) for one in refused[1:])
            raise TableError(refused[0].why + (f" Also refused: {others}." if others else ""))
        columns = tuple(one for one in read if isinstance(one, Column))
        notes = [one.why for one in skipped]
        if not columns:
            raise TableError(
                "No column is left to predict from: every one is the task, the target, dropped, "
                f"or the same in every row. {' '.join(notes[:3])}".strip()
            )
        gaps = [column.name for column in columns if column.missing]
        if missing == "refuse" and gaps:
            raise TableError(
                f"Missing values in {some(gaps)}: fill them, drop the rows, or pass --missing "
                "impute."
            )
        blocks = [column.encode(table.column(column.name))[0] for column in columns]
        X = _joined(blocks)
        notes += [_note_on_identifier(column, table) for column in columns]
        wide = X.shape[1] >= WIDE and X.nnz < FULL * np.prod(X.shape, dtype=float)
        spreads = np.sqrt(mean_variance_axis(X, axis=0)[1])
        encoder = cls(columns, _unique(columns), missing, bool(wide), spreads)
        return encoder, [note for note in notes if note]

    def encode(self, table: pa.Table) -> Encoded:
        """Features of the rows of a table that has these columns, and perhaps others.

        Parameters
        ----------
        table : Arrow table
            Rows.

        Returns
        -------
        Encoded
            Features and notes.
        """
        require_columns(
            (column.name for column in self.columns), table.column_names, "the model's columns"
        )
        if self.missing == "refuse":
            gaps = [c.name for c in self.columns if c.gaps(table.column(c.name)).any()]
            if gaps:
                raise TableError(
                    f"Missing values in {some(gaps)}, and the model was fitted with --missing "
                    "refuse: fill them, or fit again with --missing impute."
                )
        parts = [column.encode(table.column(column.name)) for column in self.columns]
        notes = tuple(note for _, own in parts for note in own)
        blocks: list[Any] = [block for block, _ in parts]
        if self.sparse:
            return Encoded(_joined(blocks), notes)
        import pandas as pd

        dense: list[Any] = [
            block.toarray() if sparse.issparse(block) else block for block in blocks
        ]
        return Encoded(pd.DataFrame(np.hstack(dense), columns=list(self.names)), notes)


def _joined(blocks: list[Any]) -> sparse.csr_array:
    return sparse.csr_array(sparse.hstack([sparse.csr_array(block) for block in blocks]))


def _unique(columns: tuple[Column, ...]) -> tuple[str, ...]:
    """Names of all features; a level may read like the name of another column."""
    names: list[str] = []
    for name in (name for column in columns for name in column.names):
        number, free = 2, name
        while free in names:
            free, number = f"{name} ({number})", number + 1
        names.append(free)
    return tuple(names)


def _note_on_identifier(column: Column, table: pa.Table) -> str:
    """Note on a column that counts the rows; empty for any other."""
    if column.kind != NUMBER or column.flagged or table.num_rows < ROW_NUMBERS:
        return ""
    values = np.sort(column.encode(table.column(column.name))[0][:, 0])
    gaps = np.diff(values)
    if (values != np.trunc(values)).any() or (gaps < 1.0).any() or gaps.mean() > SPARSE_GAPS:
        return ""
    return (
        f"Column {column.name!r} has another whole number in every row: if it is an identifier, "
        f"leave it out with --drop {quote(column.name)}."
    )
