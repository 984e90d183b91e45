"""What a worker has of the rows: the validated observations of a partition, and views of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
from scipy import sparse

from ..engine.problem import OutputColumns, binary_cells, complete_table
from ..rows.fit_input import FitInput
from ..rows.observations import Observations
from ..rows.reading import encode_tasks

_numbers = count()


class PartitionError(ValueError):
    """A partition whose rows cannot be used."""


@dataclass(frozen=True, eq=False)
class LabelEncoding:
    """How the observations of all partitions are encoded together; the same for every partition."""

    tasks: np.ndarray
    classes: np.ndarray | None
    dtype: np.dtype
    columns: OutputColumns | None = None  # for targets -1 and +1
    number: int = field(default_factory=lambda: next(_numbers))

    def with_columns(self, columns: OutputColumns) -> LabelEncoding:
        return replace(self, columns=columns, number=next(_numbers))


class Partition:
    """Validated observations of one partition, and what was last made of them."""

    def __init__(self, cells: Observations, columns_in: int, names: np.ndarray | None) -> None:
        self.cells, self.columns_in, self.names = cells, columns_in, names
        self._made: dict[str, tuple[Any, Any]] = {}

    def __sizeof__(self) -> int:  # By which Dask knows how much memory is in use.
        return self.nbytes

    def __reduce__(self) -> Any:
        return Partition, (self.cells, self.columns_in, self.names)

    @property
    def nbytes(self) -> int:
        X: Any = self.cells.X
        cells = self.cells
        arrays = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
        return sum(array.nbytes for array in [*arrays, cells.y, cells.weights, cells.offsets])

    def made(self, name: str, key: Any, make: Callable[[], Any]) -> Any:
        """What was made under a name last, if with the same key; else it is made now."""
        found = self._made.get(name)
        if found is None or found[0] != key:
            self._made.pop(name, None)  # So that it need not be there beside its successor.
            found = self._made[name] = key, make()
        return found[1]

    def seen(self, view: LabelEncoding) -> tuple[Observations, np.ndarray]:
        """Observations as a view has them, and the places of their columns among all."""
        return self.made("view", view.number, lambda: _seen(self.cells, view))

    def positions(self, first: np.ndarray) -> np.ndarray:
        """Number of each row of X in one table of all; ``first`` is each task's first (or one)."""
        cells = self.cells
        bounds = np.array([0, cells.X.shape[0]]) if cells.multi_output else cells.offsets
        return np.arange(bounds[-1]) + np.repeat(first - bounds[:-1], np.diff(bounds))


def _seen(cells: Observations, view: LabelEncoding) -> tuple[Observations, np.ndarray]:
    places = encode_tasks(cells.tasks, view.tasks)
    if view.classes is not None:
        assert cells.classes is not None
        y = np.searchsorted(view.classes, cells.classes)[cells.y]
        cells = replace(cells, y=y, classes=view.classes)
    if cells.dtype != view.dtype:
        y = cells.y if view.classes is not None else cells.y.astype(view.dtype)
        weights = cells.weights.astype(view.dtype)
        cells = replace(cells, X=cells.X.astype(view.dtype), y=y, weights=weights)
    columns = view.columns
    if columns is None:
        return cells, places
    if columns.index is None:
        return binary_cells(cells, columns), places
    index = columns.index[places]
    return binary_cells(cells, OutputColumns.seen(index >= 0)), index[index >= 0]


@dataclass(frozen=True, eq=False)
class PartitionSummary:
    """What is to be known of a partition where there are others."""

    tasks: np.ndarray
    counts: np.ndarray
    classes: np.ndarray | None
    seen: np.ndarray | None
    shape: tuple[int, int]
    dtype: np.dtype
    nnz: int
    packed: bool
    multi_output: bool
    complete: bool
    columns_in: int
    names: np.ndarray | None


def read_partition(
    schema: Any,
    options: dict[str, Any],
    number: int,
    chosen: np.ndarray | None,
    X: Any,
    y: Any,
    task: Any,
    sample_weight: Any,
) -> Partition:
    """Validate the rows of a partition, or the ``chosen`` ones; an error names it."""
    rows = FitInput(X, y, task, sample_weight)
    if chosen is not None:
        rows = rows.take(chosen)
    schema = copy.copy(schema)
    try:
        cells = rows.read(schema, **{**options, "partial": True})
    except (ValueError, TypeError) as error:
        raise PartitionError(f"Partition {number} (counted from 0): {error}") from error
    names = getattr(schema, "feature_names_in_", None)
    return Partition(cells, schema.n_features_in_, names)


def survey(piece: Partition) -> list[PartitionSummary]:
    """What is to be known of a piece, ready to be joined with others."""
    cells = piece.cells
    X: Any = cells.X
    packed = sparse.issparse(X)
    return [
        PartitionSummary(
            cells.tasks,
            np.diff(cells.offsets),
            cells.classes,
            None if cells.classes is None else cells.seen,
            cells.X.shape,
            cells.dtype,
            int(X.nnz) if packed else X.size,
            packed,
            cells.multi_output,
            complete_table(cells, cells.y) is not None,
            piece.columns_in,
            piece.names,
        )
    ]


def fingerprint(piece: Partition) -> list[str]:
    """What tells the observations of a piece from others."""
    return [piece.cells.fingerprint]
