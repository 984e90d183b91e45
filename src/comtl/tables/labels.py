"""Tasks, targets and weights: the columns that are not features."""

from dataclasses import dataclass
from shlex import quote

import numpy as np
import pyarrow as pa

from ..phrases import count_noun
from .columns import DATE, Column
from .infer_types import SkippedColumn, infer_column
from .values import (
    MISSING,
    MISSING_NUMBERS,
    TableError,
    are_numbers,
    decimal_of,
    levels_of,
    numbers_of,
    plain,
    type_of,
)

REGRESSION, CLASSIFICATION = "regression", "classification"
FEW_NUMBERS = 10
"""Whole numbers up to which a target may be meant as classes."""
EXACT = 2.0**53
"""Whole numbers that a float holds exactly."""


def read_tasks(values: pa.ChunkedArray, name: str, task_as_text: bool = False) -> np.ndarray:
    """Task of each row for a fit: integers, or text, by choice also of numbers and words as NA."""
    kind = type_of(values)
    if kind in ("date", "other"):
        raise TableError(
            f"Column {name!r} holds {values.type}; tasks are named by text or whole numbers. "
            "Convert it to text."
        )
    codes, levels = levels_of(values, ("",) if task_as_text else MISSING)
    whole = kind == "number" and not task_as_text
    if whole:
        _refuse_fractions(values, name)
    missing = codes < 0
    if missing.any():
        raise TableError(
            f"Column {name!r} has no task in {count_noun(int(missing.sum()), 'row')}, the first is "
            f"row {missing.argmax() + 1}: drop these rows, or name their task. Where NA or null "
            f"is a name, pass --category {quote(name)}."
        )
    if whole:
        numbers = np.array([int(float(v)) if "." in v or "e" in v else int(v) for v in levels])
        if numbers.dtype.kind == "i":
            return numbers.astype(np.int64)[codes]
    return np.array(levels)[codes]


def _refuse_fractions(values: pa.ChunkedArray, name: str) -> None:
    """Refuse numbers that are not whole, or too large for a float to tell apart."""
    kind = plain(values).type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = numbers_of(values, name)
        known = numbers[~np.isnan(numbers)]
        wrong = known[(known != np.trunc(known)) | (np.abs(known) > EXACT)]
        if wrong.size:
            raise TableError(
                f"Column {name!r} holds numbers with fractions, such as {wrong[:1].tolist()}; is "
                f"it the task? Name another column, or pass --category {quote(name)}."
            )


def match_tasks(
    values: pa.ChunkedArray, tasks: np.ndarray, task_as_text: bool = False
) -> np.ndarray:
    """Task of each row in the type of the known ones; others get a label that none of them has."""
    text = tasks.dtype.kind == "U"
    codes, levels = levels_of(values, ("",) if task_as_text else MISSING)
    if not text or (type_of(values) == "number" and not task_as_text):
        # Integers beside missing values come as floats.
        levels = [level.removesuffix(".0") for level in levels]
    known = {str(label): label for label in tasks.tolist()}
    free = "" if text else min({*range(len(tasks) + 1)} - {*known.values()})
    return np.array([*(known.get(level, free) for level in levels), free], tasks.dtype)[codes]


@dataclass(frozen=True, eq=False)
class Target:
    """Targets of all rows, which rows have none, the kind of problem, and notes."""

    values: np.ndarray
    missing: np.ndarray
    kind: str
    notes: tuple[str, ...] = ()

    def kept(self, table: pa.Table, name: str) -> tuple[pa.Table, np.ndarray, list[str]]:
        """Rows that have a target, their targets, and notes, also on the other rows."""
        if not self.missing.any():
            return table, self.values, list(self.notes)
        rows = np.flatnonzero(~self.missing)
        count = count_noun(int(self.missing.sum()), "row")
        note = f"{count} without a target in column {name!r}: left out."
        return table.take(pa.array(rows)), self.values[rows], [note, *self.notes]


def read_target(values: pa.ChunkedArray, name: str, kind: str = "auto") -> Target:
    """Targets, and whether they are values or classes."""
    source = type_of(values)
    if source in ("date", "other"):
        raise TableError(f"Column {name!r} holds {values.type}; a target is a number or a class.")
    _, levels = levels_of(values, MISSING_NUMBERS)
    if not levels:
        raise TableError(f"Column {name!r} has no values, so there is nothing to learn from.")
    numeric = source == "number" or are_numbers(pa.array(levels))
    if not numeric and kind != CLASSIFICATION and (decimal := decimal_of(pa.array(levels))):
        values = pa.chunked_array([numbers_of(values, name, decimal=decimal)])
        levels, numeric = levels_of(values, MISSING_NUMBERS)[1], True
    if kind == "auto":
        two = len(levels) == 2 and all(level.removesuffix(".0").isdecimal() for level in levels)
        kind = CLASSIFICATION if two or not numeric else REGRESSION
        column = None if numeric else infer_column(values, name)
        if isinstance(column, Column) and column.kind == DATE:
            raise TableError(f"Column {name!r} holds dates; a target is a number or a class.")
        if isinstance(column, SkippedColumn) and column.refused:
            raise TableError(
                f"{column.why.partition(':')[0]}, and is the target: write plain numbers (1234.5), "
                "or pass --kind classification if these are classes."
            )
    if kind == REGRESSION:
        return _values(values, name, levels, numeric)
    return _classes(values, name, numeric)


def _values(values: pa.ChunkedArray, name: str, levels: list[str], numeric: bool) -> Target:
    if not numeric:
        example = next(level for level in levels if not are_numbers(pa.array([level])))
        raise TableError(
            f"Column {name!r} is the target of a regression but holds text such as {example!r}: "
            "write plain numbers (1234.5), or pass --kind classification."
        )
    numbers = numbers_of(values, name)
    missing = np.isnan(numbers)
    known = numbers[~missing]
    if (known == known[0]).all():
        raise TableError(
            f"Column {name!r}, the target, is {known[0]:g} in every row: there is nothing to learn."
        )
    notes = []
    if len(levels) <= FEW_NUMBERS and (known == np.trunc(known)).all():
        notes.append(
            f"The target {name!r} holds {len(levels)} different whole numbers and is taken as a "
            "value; if these are classes, pass --kind classification."
        )
    return Target(numbers, missing, REGRESSION, tuple(notes))


def _classes(values: pa.ChunkedArray, name: str, numeric: bool) -> Target:
    codes, levels = levels_of(values, MISSING_NUMBERS if numeric else MISSING)
    missing = codes < 0
    if len(levels) < 2:
        raise TableError(
            f"Column {name!r}, the target, is {levels[0]!r} in every row; classes must be two or "
            "more."
        )
    if len(levels) * 2 > (~missing).sum() and len(levels) > 2:
        raise TableError(
            f"Column {name!r}, the target, has {count_noun(len(levels), 'class', 'classes')} in "
            f"{count_noun(int((~missing).sum()), 'row')}: name another target, or pass --kind "
            "regression if these are numbers."
        )
    bare, labels = [level.removesuffix(".0") for level in levels], np.array(levels)
    if numeric and all(level.lstrip("-").isdecimal() for level in bare):
        labels = np.array(list(map(int, bare)))
    return Target(labels[codes], missing, CLASSIFICATION)


def match_target(values: pa.ChunkedArray, name: str, classes: np.ndarray | None) -> Target:
    """Targets of further rows for a model that is fitted; ``classes`` are those it knows."""
    if classes is None:
        numbers = numbers_of(values, name)
        return Target(numbers, np.isnan(numbers), REGRESSION)
    numeric = classes.dtype.kind != "U"
    codes, levels = levels_of(values, MISSING_NUMBERS if numeric else MISSING)
    known = {str(label): label for label in classes.tolist()}
    bare = [level.removesuffix(".0") if numeric else level for level in levels]
    unknown = [level for level in bare if level not in known]
    if unknown:
        raise TableError(
            f"Column {name!r} holds {unknown[0]!r}, a class that the model does not know; fit "
            "again with rows of all classes."
        )
    labels = np.array([*(known[level] for level in bare), classes[0]], dtype=classes.dtype)
    return Target(labels[codes], codes < 0, CLASSIFICATION)


def read_weights(values: pa.ChunkedArray, name: str) -> np.ndarray:
    """Weight of each row."""
    weights = numbers_of(values, name)
    wrong = np.isnan(weights) | (weights < 0)
    if wrong.any():
        raise TableError(
            f"Column {name!r} holds weights: row {wrong.argmax() + 1} is missing or negative; give "
            "every row a weight of zero or more."
        )
    return weights
