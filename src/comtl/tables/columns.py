"""How one column of a table becomes features."""

from dataclasses import dataclass
from shlex import quote
from typing import final

import numpy as np
import pyarrow as pa
from scipy import sparse

from ..phrases import count_noun
from ..saving.registry import saved
from .dates import dates_of, features_of, names_of, shown_date
from .values import TableError, levels_of, numbers_of, type_of

NUMBER, YES_NO, CATEGORY, DATE = "number", "yes/no", "category", "date"


@saved
@final
@dataclass(frozen=True)
class Column:
    """A column of the table and what is made of it.

    Parameters
    ----------
    name : str
        Name in the table.
    kind : str
        "number", "yes/no", "category" or "date".
    levels : tuple of str
        Levels of a category, one feature each; the words for no and yes; or what becomes features
        of a date: "trend", the days since 2000, "year" and "hour", as angles, and "weekday".
    fill : float
        Number in place of a missing one: the median of the training rows; of dates in seconds.
    flagged : bool
        Whether a further feature marks missing values.
    missing : int
        Missing values in the training rows.
    coerce : bool
        Whether words among numbers count as missing.
    decimal : str
        Decimal mark of numbers with signs or marks between thousands; empty for plain numbers.
    order : str
        Order of year, month and day in a date: "ymd", "dmy" or "mdy".

    Examples
    --------
    >>> import pyarrow as pa
    >>> from comtl.tables import Column
    >>> column = Column("sex", "category", levels=("f", "m"))
    >>> column.names
    ('sex=f', 'sex=m')
    >>> column.encode(pa.chunked_array([["m", "x"]]))[0].toarray()
    array([[0., 1.],
           [0., 0.]])
    """

    name: str
    kind: str
    levels: tuple[str, ...] = ()
    fill: float = 0.0
    flagged: bool = False
    missing: int = 0
    coerce: bool = False
    decimal: str = ""
    order: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        names = tuple(f"{self.name}={level}" for level in self.levels)
        if self.kind == NUMBER:
            names = (self.name,)
        elif self.kind == DATE:
            names = names_of(self.name, self.levels)
        elif self.kind == YES_NO:
            names = names[1:]
        return (*names, f"{self.name} missing") if self.flagged else names

    def gaps(self, values: pa.ChunkedArray) -> np.ndarray:
        """Which values are missing."""
        if self.kind == NUMBER:
            return np.isnan(self._numbers(values))
        if self.kind == DATE:
            return np.isnan(dates_of(values, self.name, self.order))
        return levels_of(values)[0] < 0

    def encode(self, values: pa.ChunkedArray) -> tuple[np.ndarray | sparse.csr_array, list[str]]:
        """Features of the values, and notes on values that training data did not have.

        Parameters
        ----------
        values : ChunkedArray
            The column.

        Returns
        -------
        features : ndarray or csr_array of shape (n_rows, n_features)
            A category is sparse: zero in all columns where its level is unknown.
        notes : list of str
            What differs from the training data.
        """
        if self.kind == CATEGORY:
            return self._one_hot(values)
        if self.kind == NUMBER:
            numbers = self._numbers(values)
        elif self.kind == DATE:
            numbers = dates_of(values, self.name, self.order)
        else:
            numbers = self._truths(values)
        gaps = np.isnan(numbers)
        filled = np.where(gaps, self.fill, numbers)
        notes = []
        if gaps.any() and not self.flagged:
            notes.append(
                f"Column {self.name!r}: {count_noun(int(gaps.sum()), 'missing value')}, none in "
                f"training; replaced by {self.middle}, the median there."
            )
        found = features_of(filled, self.levels) if self.kind == DATE else filled[:, None]
        return np.column_stack([found, gaps]) if self.flagged else found, notes

    @property
    def middle(self) -> str:
        """What stands for a missing value, as people write it."""
        return shown_date(self.fill) if self.kind == DATE else f"{self.fill:g}"

    def _numbers(self, values: pa.ChunkedArray) -> np.ndarray:
        return numbers_of(values, self.name, coerce=self.coerce, decimal=self.decimal)

    def _one_hot(self, values: pa.ChunkedArray) -> tuple[sparse.csr_array, list[str]]:
        if type_of(values) in ("date", "other"):
            raise TableError(
                f"Column {self.name!r} held text in training and now holds {values.type}; convert "
                "it as it was then."
            )
        codes, levels = levels_of(values)
        features = {level: number for number, level in enumerate(self.levels)}
        gap = len(self.levels) if self.flagged else -1
        # The last entry is that of missing values, whose code is -1.
        feature = np.array([*(features.get(level, -1) for level in levels), gap], dtype=np.intp)
        feature = feature[codes]
        rows = np.flatnonzero(feature >= 0)
        shape = len(codes), len(self.names)
        encoded = sparse.csr_array((np.ones(len(rows)), (rows, feature[rows])), shape=shape)
        notes = []
        unknown = [level for level in levels if level not in features]
        if unknown:
            count = count_noun(int(((feature < 0) & (codes >= 0)).sum()), "row")
            kinds = count_noun(len(unknown), "unknown level")
            notes.append(
                f"Column {self.name!r}: {count} with {kinds}, such as {unknown[0]!r}; no "
                "level is assumed."
            )
        if not self.flagged and (codes < 0).any():
            count = count_noun(int((codes < 0).sum()), "missing value")
            notes.append(f"Column {self.name!r}: {count}, none in training; no level is assumed.")
        return encoded, notes

    def _truths(self, values: pa.ChunkedArray) -> np.ndarray:
        """Zero for no and one for yes, NaN for missing."""
        codes, levels = levels_of(values)
        truths = {word.strip().lower(): float(number) for number, word in enumerate(self.levels)}
        unknown = [level for level in levels if level.strip().lower() not in truths]
        if unknown:
            raise TableError(
                f"Column {self.name!r} held {self.levels[0]!r} and {self.levels[1]!r} in training "
                f"and now holds {unknown[0]!r}; correct it, or fit with --category "
                f"{quote(self.name)}."
            )
        return np.array([*(truths[level.strip().lower()] for level in levels), np.nan])[codes]
