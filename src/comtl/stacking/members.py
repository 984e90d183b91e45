"""What a member of a stack is, and what members of the same rows share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy import sparse

from ..arrays import Array, is_device_sparse, on_device, take, take_pairs
from ..hierarchical.hierarchical_estimators import groups_of, populations_of
from ..hierarchical.population import Population
from ..linear import ColumnWeights, OutputColumns
from ..rows.observations import Observations
from ..rows.reading import encode_tasks

Made = TypeVar("Made")


@dataclass(frozen=True)
class Shape:
    """Size of a fit: ``n_columns`` of weights, ``n_tasks`` of them with one prior."""

    n_features: int
    n_columns: int
    n_tasks: int
    sparse: bool = False
    on_device: bool = False

    @classmethod
    def of(cls, data: Observations, further: int = 0) -> Shape:
        """Size of a fit to some observations, with further features."""
        columns = OutputColumns.of(data)
        largest = max(map(len, groups_of(columns)))
        is_sparse = sparse.issparse(data.X) or is_device_sparse(data.X)
        features = data.n_features + further
        return cls(features, len(columns.task), largest, is_sparse, on_device(data.X))


@dataclass(frozen=True, eq=False)
class MemberRows:
    """Targets, one for each observation, or beyond two classes for each class its task has.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Rows.
    row : ndarray of shape (n,) or None
        Row of X of each target; None where target i is of row i.
    task, label : ndarrays of shape (n,)
        Place of its task in ``tasks``, -1 for a task never seen, and its class beyond two.
    tasks : ndarray
        Labels of the tasks.
    y, weights : arrays of shape (n,)
        Values or, for classes, -1 and +1, and their weights.
    """

    X: Any
    row: np.ndarray | None
    task: np.ndarray
    label: np.ndarray
    tasks: np.ndarray
    y: Any
    weights: Any

    @classmethod
    def of(cls, data: Observations, tasks: np.ndarray, columns: OutputColumns) -> MemberRows:
        """Targets of observations for the columns of a fit to ``tasks``."""
        known = columns.places[encode_tasks(data.tasks, tasks)[data.codes]] >= 0
        cell, label = np.nonzero(known)
        y, row = data.y, data.rows
        if columns.index is not None:
            y, row = np.where(y[cell] == label, 1.0, -1.0), cell
        elif data.classes is not None:
            y = np.where(y == 1, 1.0, -1.0)
        weights = data.weights if len(cell) == data.n_observations else take(data.weights, cell)
        return cls(data.X, row, data.codes[cell], label, data.tasks, y, weights)

    def scores(self, weights: ColumnWeights, column: np.ndarray) -> Array:
        """Score of each target by its column of the weights."""
        if self.row is None:
            return weights.scores(self.X, column)
        if not self.label.any():
            return take_pairs(weights.table(self.X), self.row, column)
        columns = np.zeros((self.X.shape[0], self.label.max() + 1), dtype=np.intp)
        columns[self.row, self.label] = column
        return take_pairs(weights.scores(self.X, columns), self.row, self.label)


@dataclass(frozen=True, eq=False)
class Predicted:
    """Scores of targets; ``table()`` has the coefficients of columns, each target's in ``column``.

    What is not linear has no table.
    """

    score: np.ndarray
    column: np.ndarray | None = None
    table: Callable[[], np.ndarray] | None = None

    @property
    def coef(self) -> np.ndarray | None:
        """Coefficients of the task of each target."""
        return None if self.table is None else self.table()[self.column]


class Fitted(Protocol):
    """A member that was fitted; ``linear`` has its coefficients, if it is linear."""

    @property
    def linear(self) -> ColumnWeights | None: ...

    def score(self, rows: MemberRows, base: Predicted | None) -> Predicted:
        """Scores of targets, above level 0 with what the stack below predicts of them."""


class Member(Protocol):
    """A model in a stack: level 0 sees rows, level 1 also out-of-fold predictions of level 0."""

    @property
    def name(self) -> str: ...

    @property
    def level(self) -> int: ...

    def fit(self, rows: MemberRows, shared: Shared, base: Predicted | None) -> Fitted:
        """Fit to targets; ``base`` has what the stack below predicts of them, out of fold."""


class Shared:
    """What members fitted to the same rows make once, for all of them, when it is asked for."""

    def __init__(self, read: Callable[[], Observations], members: Sequence[Member] = ()) -> None:
        self._read, self.members = read, members
        self.made: dict[Any, Any] = {}

    @cached_property
    def data(self) -> Observations:
        """The observations."""
        return self._read()

    @cached_property
    def columns(self) -> OutputColumns:
        """Columns of weights that they call for."""
        return OutputColumns.of(self.data)

    def rows(self) -> MemberRows:
        """Their targets."""
        return MemberRows.of(self.data, self.data.tasks, self.columns)

    def once(self, key: Any, make: Callable[[], Made]) -> Made:
        """Return what is known by a key, made the first time."""
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def population(self, *, standardize: bool = True) -> Population:
        """Rows on standard scales, or with columns that keep their spread among each other."""
        make = self._standardized if standardize else lambda: self.population().evenly()
        return self.once(("population", standardize), make)

    def _standardized(self) -> Population:
        classes = self.data.classes is not None
        cells = self.data.one_vs_rest(self.columns) if classes else self.data
        return Population.of(cells, standardize=True, classification=classes)

    def populations(self, *, standardize: bool) -> list[Population]:
        """The same, beyond two classes of each class."""
        whole = self.population(standardize=standardize)
        make = lambda: populations_of(whole, self.columns)  # noqa: E731
        return self.once(("populations", standardize), make)
