"""What a member of a stack is, what members of the same rows share, and estimators as members."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy import sparse

from ..arrays import Array, is_device_sparse, namespace, on_device, take, take_pairs, to_numpy
from ..arrays.blocks import RowBlocks
from ..engine.problem import Problem, row_weights
from ..hierarchical.coregionalised import CentredProblem, CoregionalisedRidge
from ..hierarchical.hierarchical_estimators import HierarchicalModel, groups_of, populations_of
from ..hierarchical.population import Population
from ..linear import ColumnWeights, OutputColumns
from ..losses import Loss
from ..models.task_model import TaskModel
from ..rows.design import Scale, column_extent
from ..rows.observations import Observations
from ..rows.reading import encode_tasks
from ..saving.registry import saved

Made = TypeVar("Made")
NAMED, ONE_VALUE = 5, 0.99
"""Entries a row at most, and share of the columns that hold one value, at least, where rows name
things rather than words of a text; see benchmarks/bench_indicators.md."""


@dataclass(frozen=True)
class Shape:
    """Size of a fit: ``n_columns`` of weights, ``n_tasks`` of them with one prior."""

    n_features: int
    n_columns: int
    n_tasks: int
    sparse: bool = False
    on_device: bool = False
    n_hinges: int = 0
    n_rows: int = 0
    indicators: bool = False  # whether each row names a few of many things, such as an item

    @classmethod
    def of(cls, data: Observations, n_hinges: int = 0) -> Shape:
        """Size of a fit to some observations, with hinges beside the features."""
        columns = OutputColumns.of(data)
        largest = max(map(len, groups_of(columns)))
        is_sparse = sparse.issparse(data.X) or is_device_sparse(data.X)
        named = is_sparse and names_things(data)
        size = data.n_features, len(columns.task), largest
        return cls(*size, is_sparse, on_device(data.X), n_hinges, data.n_observations, named)


def names_things(data: Observations) -> bool:
    """Whether sparse rows hold a few entries each, in columns of one value but for a few."""
    if data.nnz > NAMED * data.n_rows:
        return False
    extent = column_extent(RowBlocks(data.X), row_weights(data))
    single = extent[1, ...] + extent[2, ...] <= 0.0  # least and largest are one
    return int(namespace(single).count_nonzero(single)) >= ONE_VALUE * data.n_features


@dataclass(frozen=True, eq=False)
class MemberRows:
    """Targets, one for each observation, or beyond two classes for each class its task has."""

    X: Any
    row: np.ndarray | None  # row of X of each target; None if target i is of row i
    task: np.ndarray  # index into tasks, -1 for a task never seen
    label: np.ndarray  # class beyond two
    tasks: np.ndarray
    y: Any  # values or, for classes, -1 and +1
    weights: Any

    @classmethod
    def of(cls, data: Observations, tasks: np.ndarray, columns: OutputColumns) -> MemberRows:
        """Targets of observations for the columns of a fit to ``tasks``."""
        known = columns.places[encode_tasks(data.tasks, tasks)[data.codes]] >= 0
        number, label = np.nonzero(known)
        y, row = data.y, data.rows
        if columns.index is not None:
            y, row = np.where(y[number] == label, 1.0, -1.0), number
        elif data.classes is not None:
            y = np.where(y == 1, 1.0, -1.0)
        weights = data.weights if len(number) == data.n_observations else take(data.weights, number)
        return cls(data.X, row, data.codes[number], label, data.tasks, y, weights)

    def take(self, chosen: np.ndarray) -> MemberRows:
        """Some of the targets, of the same rows."""
        names = [one.name for one in fields(self) if one.name not in ("X", "tasks")]
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

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
    """Scores of targets; linear ones have a ``table()``, and each target a ``column`` of it.

    The rows of the table are the coefficients of columns of weights, the intercept last.
    """

    score: np.ndarray
    column: np.ndarray | None = None
    table: Callable[[], np.ndarray] | None = None

    def take(self, chosen: np.ndarray) -> Predicted:
        """Predictions of some of the targets."""
        column = None if self.column is None else self.column[chosen]
        return Predicted(self.score[chosen], column, self.table)

    @property
    def coef(self) -> np.ndarray | None:
        """Coefficients of the task of each target."""
        return None if self.table is None else self.table()[self.column, :-1]


class Fitted(Protocol):
    """A member that was fitted; ``linear`` has its coefficients, if it is linear."""

    @property
    def linear(self) -> ColumnWeights | None: ...

    def score(self, rows: MemberRows) -> Predicted:
        """Scores of targets."""


class Member(Protocol):
    """A model in a stack."""

    @property
    def name(self) -> str: ...

    @property
    def hinged(self) -> bool:
        """Whether it has coefficients of the hinges too."""

    @property
    def warm(self) -> bool:
        """Whether fits to folds start from the fit to all rows."""

    def as_given(self) -> Member:
        """The same for columns that keep their spread."""

    def fit(self, shared: Shared, whole: Any = None) -> Fitted:
        """Fit to rows; ``whole``: the member fitted to all rows, of which these are a part."""


@dataclass(frozen=True, eq=False)
class Shared:
    """What members fitted to the same rows make once, for all of them, when it is asked for."""

    data: Observations
    members: Sequence[Member] = ()
    n_hinges: int = 0
    made: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def straight(self) -> Shared:
        """The same rows without hinges."""
        if not self.n_hinges:
            return self
        data = replace(self.data, X=self.data.X[:, : -self.n_hinges])
        return Shared(data, [one for one in self.members if not one.hinged])

    @cached_property
    def columns(self) -> OutputColumns:
        """Columns of weights that the observations call for."""
        return OutputColumns.of(self.data)

    def rows(self) -> MemberRows:
        """Their targets."""
        return MemberRows.of(self.data, self.data.tasks, self.columns)

    def once(self, key: Any, make: Callable[[], Made]) -> Made:
        """Return what is known by a key, made the first time."""
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    @cached_property
    def population(self) -> Population:
        """Rows on standard scales."""
        return self._population("auto")

    @cached_property
    def as_given(self) -> Population:
        """Rows whose columns keep their spread."""
        return self._population(False)

    def _population(self, standardize: Scale) -> Population:
        def make() -> Observations:
            classes = self.data.classes is not None
            return self.data.one_vs_rest(self.columns) if classes else self.data

        obs, classes = self.once(Observations, make), self.data.classes is not None
        return Population.of(obs, standardize=standardize, classification=classes)

    def populations(self, *, standardize: Scale) -> list[Population]:
        """The same, or with columns that keep their spread; beyond two classes of each class."""

        def make() -> list[Population]:
            whole = self.population if standardize else self.as_given
            return populations_of(whole, self.columns)

        return self.once(("populations", standardize), make)


@saved
@dataclass(frozen=True, eq=False)
class FittedEstimator:
    """Member that is an estimator, perhaps of the first columns of rows alone."""

    model: TaskModel

    @property
    def linear(self) -> ColumnWeights:
        """Its coefficients."""
        return self.model._linear.weights

    def score(self, rows: MemberRows) -> Predicted:
        """Scores by the column of each target's task, or by the mean of all tasks."""
        linear = self.model._linear
        codes = np.append(linear.codes(rows.tasks), -1)[rows.task]
        column, extended = linear.columns.places[codes, rows.label], linear.extended
        width, own = rows.X.shape[1], extended.shared.shape[0]
        rows = rows if own == width else replace(rows, X=rows.X[:, :own])

        def table() -> np.ndarray:
            coef, intercepts = to_numpy(extended.coef), to_numpy(extended.intercepts)
            blank = np.zeros((len(coef), width - own))
            return np.column_stack([coef, blank, intercepts])

        return Predicted(rows.scores(extended, column), column, table)


@dataclass(frozen=True, eq=False)
class EstimatorMember:
    """An estimator; ``learn`` fits a copy of it, with what fits to the same rows share."""

    name: str
    model: Any
    learn: Callable[[Any, Shared, Any], None]
    hinged: bool = False
    warm: bool = False

    def as_given(self) -> EstimatorMember:
        """The same for columns that keep their spread."""
        model = copy.copy(self.model)
        model.standardize = False
        return replace(self, model=model)

    def fit(self, shared: Shared, whole: FittedEstimator | None = None) -> FittedEstimator:
        """Fit to rows that are scaled once for all."""
        model = copy.copy(self.model)
        known = None if whole is None else whole.model
        self.learn(model, shared if self.hinged else shared.straight, known)
        return FittedEstimator(model)


FOLD_STEPS = 3
"""Steps from the population of all rows to that of a fold (benchmarks/bench_stack_choices.md)."""


def learn_hierarchical(model: HierarchicalModel, shared: Shared, whole: Any) -> None:
    """Fit by EM; refined structures start from simpler ones, factors in the order of number."""
    scaled = model.standardize, model.shrink_common
    starts = shared.made.get(("isotropic", scaled), ())
    if model.structure == "factor":
        starts = shared.made.get(("factor", scaled), starts)
    populations = shared.populations(standardize=model.standardize)
    warm = () if whole is None or len(whole._priors) != len(populations) else whole._priors
    if warm:
        model.max_iter = FOLD_STEPS
    model._fit_em(
        populations,
        shared.data,
        shared.columns,
        starts if model._covariance_family.refines else (),
        warm=warm,
    )
    shared.made[model.structure, scaled] = model._priors


def learn_factors(model: Any, shared: Shared, whole: Any) -> None:
    """Fit factors; models on standard scales share their rows or Grams."""
    data, columns, loss = shared.data, shared.columns, model._loss()
    if not model.standardize:
        model._learn(data, columns)
        return
    problem = shared.once((Problem, type(loss)), lambda: _factor_problem(loss, shared))
    model._algorithm.learn(data, columns, problem=problem)


def learn_items(model: Any, shared: Shared, whole: Any) -> None:
    """Fit factors with a penalty that suits the rows, so that it means the same on a fold.

    Of strong factors, whose weight rises with the rows, and with ridge of the noise in weak ones.
    """
    rows, sides = shared.data.weight, (shared.data.n_features, len(shared.columns.task))
    ridge = model.feature_penalty == "ridge"
    per_row = sum(side**0.5 for side in sides) ** 2 if ridge else rows
    model.alpha_task *= rows * per_row / (sides[0] * sides[1])
    learn_factors(model, shared, whole)


LEARN_FACTORS = learn_factors, learn_items


def _factor_problem(loss: Loss, shared: Shared) -> Problem:
    population, columns = shared.population, shared.columns
    size = population.obs.n_features, population.obs.n_tasks
    widths = [
        one.model._algorithm.recipe(*size).ranks[0]
        for one in shared.members
        if isinstance(one, EstimatorMember) and one.learn in LEARN_FACTORS and one.model.standardize
    ]
    datafit = population.datafit(loss, max(widths), len(widths))
    labels = None if columns.index is None else columns.label
    return Problem(datafit, population.units, labels)


def learn_wide(model: CoregionalisedRidge, shared: Shared, whole: Any) -> None:
    """Solve for the weights of one covariance; rows, scales and relation are shared."""

    def make() -> CentredProblem:
        return CentredProblem.of(shared.population if model.standardize else shared.as_given)

    problem = shared.once((CentredProblem, model.standardize), make)
    model._solve(problem, shared.data, shared.columns)
