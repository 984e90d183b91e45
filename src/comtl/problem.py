"""From validated cells to the problem the engine solves, and its solution back to user units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from .arrays import DENSE_BYTES, DENSE_SIDE
from .data import TaskData
from .datafits.base import Datafit
from .datafits.gram import GramDatafit
from .datafits.rows import RowsDatafit
from .design import Design
from .factors import Factors
from .losses import Loss
from .predictor import LinearTasks
from .saving.registry import saved


@saved
@dataclass(frozen=True, eq=False)
class Units:
    """Centre and scale of features and target that the engine works in."""

    shift: np.ndarray
    inverse_scale: np.ndarray
    target_shift: float
    target_scale: float

    def design(self, X: object) -> Design:
        """Standardised view of other rows."""
        return Design(X, self.shift, self.inverse_scale)

    def target(self, y: np.ndarray) -> np.ndarray:
        """Target in the engine's units."""
        return (y - self.target_shift) / self.target_scale

    def intercepts(self, intercepts: np.ndarray, meeting_shift: np.ndarray) -> np.ndarray:
        """User's intercepts; ``meeting_shift`` is each task's weights times the feature shift."""
        return self.target_scale * (intercepts - meeting_shift) + self.target_shift

    def linear(self, factors: Factors) -> LinearTasks:
        """Fitted factors in the user's units."""
        directions, shared = factors.directions, factors.shared
        meeting = factors.G @ (self.shift @ directions) + self.shift @ shared
        scale = self.target_scale * self.inverse_scale
        return LinearTasks(
            scale[:, None] * directions,
            factors.G,
            scale * shared,
            self.intercepts(factors.intercepts, meeting),
        )


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows with a loss, the units they are in, and beyond two classes that of each column."""

    datafit: Datafit
    units: Units
    labels: np.ndarray | None = None


@saved
@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of ``W``: tasks, or pairs of a task and a class it has seen.

    Parameters
    ----------
    task, label : ndarrays of shape (n_columns,)
        Task and class of each column; class 1 throughout for two classes.
    index : ndarray of shape (n_tasks, n_classes) or None
        Column of each pair, -1 for a class that the task never saw; None where columns are tasks.
    """

    task: np.ndarray
    label: np.ndarray
    index: np.ndarray | None

    @classmethod
    def of(cls, data: TaskData) -> Columns:
        """Columns that the cells call for."""
        if data.classes is None or len(data.classes) == 2:
            tasks = np.arange(data.n_tasks)
            return cls(tasks, np.ones_like(tasks), None)
        return cls.seen(data.seen)

    @classmethod
    def seen(cls, seen: np.ndarray) -> Columns:
        """Columns for a boolean table of tasks by classes."""
        index = np.full(seen.shape, -1)
        index[seen] = np.arange(seen.sum())
        task, label = np.nonzero(seen)
        return cls(task, label, index)


@singledispatch
def binary_cells(data: Any, columns: Columns) -> Any:
    """Cells with targets -1 and +1: one class against the rest of its task's rows."""
    dtype = data.X.dtype
    if columns.index is None:
        return replace(data, y=np.where(data.y == 1, 1.0, -1.0).astype(dtype))
    sizes = np.diff(data.offsets)[columns.task]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    starts = data.offsets[:-1][columns.task]
    cells = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
    wanted = np.repeat(columns.label, sizes)
    return replace(
        data,
        y=np.where(data.y[cells] == wanted, 1.0, -1.0).astype(dtype),
        weights=data.weights[cells],
        offsets=offsets,
        tasks=np.arange(len(sizes)),
        rows=cells if data.rows is None else data.rows[cells],
    )


@singledispatch
def build_problem(
    data: Any,
    loss: Loss,
    *,
    center: bool,
    standardize: bool,
    scale_target: bool,
    width: int,
    grams: bool = True,
) -> Problem:
    """Standardise and choose where the rows live.

    ``width`` is the number of columns of the factors, for the choice between rows and Grams;
    ``grams`` says whether Grams may serve at all.
    """
    weights = data.weights
    design = Design.standardized(data.X, row_weights(data), center=center, scale=standardize)
    shift, scale = 0.0, 1.0
    if scale_target:
        shift, scale = target_units(data.y, weights, center=center, scale=standardize)
    units = Units(design.shift, design.inverse_scale, shift, scale)
    y = units.target(data.y).astype(data.X.dtype)
    if not grams:
        return Problem(RowsDatafit(design, y, weights, data.offsets, loss, data.rows), units)
    return Problem(choose_datafit(data, design, y, loss, width), units)


def row_weights(data: TaskData) -> np.ndarray:
    """Weight of all cells of each row of X."""
    if data.rows is None:
        return data.weights
    return np.bincount(data.rows, data.weights, minlength=data.X.shape[0]).astype(data.dtype)


def target_units(
    y: np.ndarray, weights: np.ndarray, *, center: bool, scale: bool
) -> tuple[float, float]:
    """Weighted mean and spread of the target, safe at any size."""
    unit = target_unit(float(np.abs(y).max()), y.dtype, scale=scale)
    small = (y / unit).astype(np.float64)
    mean = float(np.average(small, weights=weights)) if center else 0.0
    spread = float(np.average((small - mean) ** 2, weights=weights)) ** 0.5
    return target_units_of(mean, spread, unit, scale=scale)


def target_unit(largest: float, dtype: np.dtype, *, scale: bool) -> float:
    """Size of the target to sum it up in, so that squares stay within range."""
    unit = largest or 1.0
    if not scale and not unit < np.finfo(dtype).max ** 0.25:
        raise ValueError(
            "y has values too large to square safely; rescale it or leave standardize=True."
        )
    return unit


def target_units_of(mean: float, spread: float, unit: float, *, scale: bool) -> tuple[float, float]:
    """Shift and scale of the target, from its mean and spread over ``unit``."""
    # A constant target leaves rounding only; its own size will do.
    return mean * unit, (spread if spread > 1e-12 else 1.0) * unit if scale else 1.0


def sweep_costs(tasks: int, rows: int, columns: int, width: int, filled: int) -> dict[str, float]:
    """Nanoseconds of a sweep on the rows, and on Grams with their making spread over the sweeps.

    About four products and one quadratic a sweep. Rows cost by what is stored and the columns of
    the factors; Grams by their entries, whatever these columns, and by the rows once. Coefficients
    are measured, see benchmarks/bench_blocks.md.

    Examples
    --------
    >>> from comtl.problem import sweep_costs
    >>> few = sweep_costs(tasks=100, rows=1_000, columns=200, width=5, filled=200_000)
    >>> many = sweep_costs(tasks=100, rows=100_000, columns=200, width=5, filled=20_000_000)
    >>> few["rows"] < few["gram"], many["rows"] < many["gram"]
    (True, False)
    """
    dense = filled >= rows * columns
    entry = 1.1 + 0.15 * width if dense else 4.0 + 0.9 * width
    grams = tasks * (columns + 1) ** 2
    return {
        "rows": 6e5 + 4.5 * entry * filled,
        "gram": 2.5e5 + 4.3 * grams + 0.02 * rows * columns**2,
    }


def choose_datafit(
    data: TaskData, design: Design, y: np.ndarray, loss: Loss, width: int
) -> Datafit:
    """Return Grams where they are exact, small and cheaper to apply; else the rows themselves."""
    features = design.shape[1]
    if loss.quadratic and features <= DENSE_SIDE:
        table = complete_table(data, y)
        if table is not None:
            return GramDatafit.of_table(design, *table)
        size = design.dtype.itemsize * data.n_tasks * (features + 1) ** 2
        costs = sweep_costs(data.n_tasks, *design.shape, width, design.blocks.filled)
        if data.rows is None and size <= DENSE_BYTES and costs["gram"] <= costs["rows"]:
            return GramDatafit.of_cells(design, y, data.weights, data.offsets)
    return RowsDatafit(design, y, data.weights, data.offsets, loss, data.rows)


def complete_table(data: TaskData, y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Targets (n, T) and row weights where every task has every row at the same weight."""
    rows = data.X.shape[0]
    if data.rows is None or data.n_tasks == 1 or data.n_cells != rows * data.n_tasks:
        return None
    weights = data.weights.reshape(data.n_tasks, rows)
    if not np.array_equal(weights, np.broadcast_to(weights[0], weights.shape)):
        return None
    return y.reshape(data.n_tasks, rows).T, weights[0]
