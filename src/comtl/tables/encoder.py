"""From the columns of a table to features, the same way every time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
from scipy import sparse

from ..phrases import count_noun, some
from ..saving.registry import saved
from .columns import CATEGORY, NUMBER, Column
from .infer_types import SkippedColumn, guess, refuse
from .table_errors import TableError, require_columns
from .values import numbers_of

WIDE = 100
"""Features from which a table that is mostly zero becomes sparse."""
FULL = 0.2
"""Share of values that are not zero from which a wide table stays dense."""
ROW_NUMBERS = 20
"""Rows from which whole numbers that never repeat may be identifiers."""
SPARSE_STEPS = 10.0
"""Mean step beyond which they are measurements."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """Features of some rows, and notes on values that training had not."""

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

        Returns
        -------
        encoder : Encoder
            The encoder.
        notes : list of str
            What was left out, and what looks odd.
        """
        forced = {**dict.fromkeys(category, CATEGORY), **dict.fromkeys(number, NUMBER)}
        found = [guess(table.column(name), name, forced.get(name)) for name in table.column_names]
        left = [one for one in found if isinstance(one, SkippedColumn)]
        refuse(left)
        columns = tuple(one for one in found if isinstance(one, Column))
        notes = [one.why for one in left]
        if not columns:
            raise TableError(
                "No column is left to predict from: every one is the task, the target, dropped, "
                f"or the same in every row. {' '.join(notes[:3])}".strip()
            )
        gaps = [column.name for column in columns if column.missing]
        if missing == "refuse" and gaps:
            raise TableError(
                f"Column {gaps[0]!r} and {count_noun(len(gaps) - 1, 'other')} have missing values: "
                "fill them, drop the rows, or pass --missing impute."
                if gaps[1:]
                else f"Column {gaps[0]!r} has missing values: fill them, drop the rows, or pass "
                "--missing impute."
            )
        blocks = [column.encode(table.column(column.name))[0] for column in columns]
        whole = sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr")
        notes += [_numbered(column, table) for column in columns]
        wide = whole.shape[1] >= WIDE and whole.nnz < FULL * np.prod(whole.shape, dtype=float)
        encoder = cls(columns, _unique(columns), missing, bool(wide), _spreads(whole))
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
        blocks = [block for block, _ in parts]
        if self.sparse:
            whole = sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr")
            return Encoded(whole, notes)
        return Encoded(self._frame(blocks), notes)

    def _frame(self, blocks: list[Any]) -> Any:
        import pandas as pd

        dense = [block.toarray() if sparse.issparse(block) else block for block in blocks]
        return pd.DataFrame(np.hstack(dense), columns=list(self.names))


def _unique(columns: tuple[Column, ...]) -> tuple[str, ...]:
    """Names of all features; a level may read like the name of another column."""
    names: list[str] = []
    for name in (name for column in columns for name in column.names):
        number, free = 2, name
        while free in names:
            free, number = f"{name} ({number})", number + 1
        names.append(free)
    return tuple(names)


def _spreads(whole: sparse.csr_array) -> np.ndarray:
    mean = np.asarray(whole.mean(axis=0)).ravel()
    # About the mean, since squares of large numbers would lose the digits that differ.
    filled = np.bincount(whole.indices, minlength=whole.shape[1])
    gaps = (whole.data - mean[whole.indices]) ** 2
    squares = np.bincount(whole.indices, gaps, minlength=whole.shape[1])
    squares += (whole.shape[0] - filled) * mean**2
    return np.sqrt(squares / whole.shape[0])


def _numbered(column: Column, table: pa.Table) -> str:
    """Note on a column that counts the rows; empty for any other."""
    if column.kind != NUMBER or column.flagged or table.num_rows < ROW_NUMBERS:
        return ""
    values = np.sort(numbers_of(table.column(column.name), column.name))
    steps = np.diff(values)
    if (values != np.trunc(values)).any() or (steps < 1.0).any() or steps.mean() > SPARSE_STEPS:
        return ""
    return (
        f"Column {column.name!r} has another whole number in every row: if it is an identifier, "
        f"leave it out with --drop {column.name}."
    )
