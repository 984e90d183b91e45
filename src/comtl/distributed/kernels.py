"""What the alternation asks of the rows of one partition, computed where these are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays import Array
from ..datafits.rows_datafit import RowsDatafit, RowsLocalQuadratic
from ..engine.problem import grams_of, row_weights, rows_datafit
from ..factors import Factors
from ..linear import Scaling
from ..losses import Loss
from .partition import LabelEncoding, Partition, unique_number


def summed(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Sums of the entries of tuples."""
    return tuple(sum(values[1:], values[0]) for values in zip(*parts, strict=True))


@dataclass(frozen=True, eq=False)
class Sums:
    """Arrays to be added up, and arrays with an entry for each of some tasks."""

    totals: tuple[Array, ...]
    task_index: np.ndarray
    by_task: tuple[Array, ...] = ()

    @staticmethod
    def added(parts: list[Sums]) -> Sums:
        """Sum over all tasks that any of the parts has."""
        if len(parts) == 1:
            return parts[0]
        totals = summed([part.totals for part in parts])
        if not parts[0].by_task:
            return Sums(totals, parts[0].task_index)
        task_index = parts[0].task_index
        same = all(np.array_equal(part.task_index, task_index) for part in parts[1:])
        if not same:
            task_index = np.unique(np.concatenate([part.task_index for part in parts]))
        by_task = tuple(
            np.zeros((len(task_index), *array.shape[1:]), array.dtype) for array in parts[0].by_task
        )
        for part in parts:
            inside: Any = slice(None) if same else np.searchsorted(task_index, part.task_index)
            for total, array in zip(by_task, part.by_task, strict=True):
                total[inside] += array
        return Sums(totals, task_index, by_task)

    def spread(self, tasks: int) -> tuple[Array, ...]:
        """The arrays by task, with zeros for tasks that no partition has."""
        if len(self.task_index) == tasks:
            return self.by_task
        full = tuple(np.zeros((tasks, *array.shape[1:]), array.dtype) for array in self.by_task)
        for total, array in zip(full, self.by_task, strict=True):
            total[self.task_index] = array
        return full


@dataclass(frozen=True, eq=False)
class FitSpec:
    """How the observations of all partitions are encoded and scaled in a fit, and its loss."""

    encoding: LabelEncoding
    units: Scaling
    loss: Loss
    labels: np.ndarray | None = None  # pool of each task, where they are pooled
    number: int = field(default_factory=unique_number)  # the same for all pools of its tasks


@dataclass(frozen=True, eq=False)
class SharedFactors:
    """Factors without what belongs to tasks, of which each partition gets that of its own."""

    F: Array
    S: Array
    shared: Array
    offset: float
    number: int = field(default_factory=unique_number)

    def with_tasks(self, G: Array, random_intercepts: Array) -> Factors:
        return Factors(self.F, self.S, G, self.shared, self.offset, random_intercepts)


class AllTasks(tuple[Array, ...]):
    """Arrays with an entry for every task, sent to a worker once."""


def of_tasks(arrays: tuple[Array, ...], task_index: np.ndarray) -> tuple[Array, ...]:
    """Entries of the tasks of a partition."""
    return tuple(a[task_index] for a in arrays) if isinstance(arrays, AllTasks) else arrays


def local_datafit(spec: FitSpec, piece: Partition) -> tuple[RowsDatafit, np.ndarray]:
    """Rows of a partition as the engine takes them, and their tasks or pools of tasks."""

    def make() -> tuple[RowsDatafit, np.ndarray]:
        obs, task_index = piece.encoded(spec.encoding)
        return rows_datafit(obs, spec.units, spec.loss), task_index

    fit, task_index = piece.made("datafit", spec.number, make)
    if spec.labels is None:
        return fit, task_index
    labels = spec.labels[task_index]

    def pool() -> tuple[RowsDatafit, np.ndarray]:
        pools, codes = np.unique(labels, return_inverse=True)
        return fit.with_tasks_pooled(codes, len(pools)), pools

    return piece.made("pooled", (spec.number, labels.tobytes()), pool)


Model = RowsLocalQuadratic
Answer = tuple[tuple[Array, ...], tuple[Array, ...]]
"""Arrays to be added up, and arrays with an entry for each task of the partition."""


def at_point(
    spec: FitSpec,
    point: SharedFactors,
    ask: Callable[..., Answer],
    values: tuple[Any, ...],
    piece: Partition,
    task_factors: tuple[Array, Array],
    *by_task: tuple[Array],
) -> Sums:
    """Answer of the model at a point to ``ask(model, *values, *by_task)``."""
    fit, task_index = local_datafit(spec, piece)

    def make() -> RowsLocalQuadratic:
        return fit.quadratic_at(point.with_tasks(*of_tasks(task_factors, task_index)))

    model = piece.made("model", point.number, make)
    entries = (array for part in by_task for array in of_tasks(part, task_index))
    summed, each = ask(model, *values, *entries)
    return Sums(summed, task_index, each)


def value(model: Model) -> Answer:
    """Loss at the point."""
    return (model.value,), ()


def curvature_sums(model: Model) -> Answer:
    """Second derivatives by the intercepts."""
    return (), (model.curvature_sums,)


def gradient(model: Model, loadings: Array) -> Answer:
    """Loss and its gradient."""
    matrix, sums = model.gradient(loadings)
    return (model.value, matrix), (sums,)


def normal(model: Model, step: Array, loadings: Array, intercepts: Array) -> Answer:
    """Hessian applied to a step."""
    image, sums = model.normal(step, loadings, intercepts)
    return (image,), (sums,)


def task_gradient(model: Model, features: Array) -> Answer:
    """Gradient by the tasks' latent weights."""
    return (), (model.task_gradient(features),)


def task_quadratic(model: Model, features: Array | None) -> Answer:
    """Loss as a quadratic of each task's latent weights; without features those of the point."""
    quadratic = model.task_quadratic(model.point.F if features is None else features)
    return (quadratic.value,), (quadratic.hessian, quadratic.gradient)


def along(
    spec: FitSpec,
    start: SharedFactors,
    stop: SharedFactors,
    position: float,
    piece: Partition,
    start_tasks: tuple[Array, Array],
    stop_tasks: tuple[Array, Array],
) -> Sums:
    """Loss between two points."""
    fit, task_index = local_datafit(spec, piece)

    def make() -> Callable[[float], float]:
        first = start.with_tasks(*of_tasks(start_tasks, task_index))
        return fit.along_segment(first, stop.with_tasks(*of_tasks(stop_tasks, task_index)))

    line = piece.made("line", (start.number, stop.number), make)
    return Sums((line(position),), task_index)


def n_weighted(spec: FitSpec, piece: Partition) -> Sums:
    """Weight of the observations."""
    fit, task_index = local_datafit(spec, piece)
    return Sums((fit.n_weighted,), task_index)


def losses(spec: FitSpec, weights: Array, intercepts: Array, piece: Partition) -> Sums:
    """Loss of each task under each of some models."""
    fit, task_index = local_datafit(spec, piece)
    return Sums((), task_index, (fit.losses(weights, intercepts),))


def grams(spec: FitSpec, one_table: bool, piece: Partition) -> Sums:
    """Second moments of each task, or of rows that all tasks of all partitions share."""
    obs, task_index = piece.encoded(spec.encoding)
    fit = grams_of(obs, spec.units)
    if one_table:
        return Sums((fit.gram,), task_index, (fit.moment, fit.energy))
    gram = np.broadcast_to(fit.gram, (obs.n_tasks, *fit.gram.shape[1:]))
    return Sums((), task_index, (gram, fit.moment, fit.energy))


def sample(spec: FitSpec, step: int, piece: Partition, first: Array) -> tuple[Any, Array, Array]:
    """Every so many rows with their weights, and their numbers among all rows."""
    obs, _ = piece.encoded(spec.encoding)
    positions = piece.positions(first)
    kept = np.flatnonzero(positions % step == 0) if step > 1 else np.arange(len(positions))
    X = obs.X if len(kept) == obs.X.shape[0] else obs.X[kept]
    return X, row_weights(obs)[kept], positions[kept]


def moments(spec: FitSpec, step: int, piece: Partition, first: np.ndarray) -> tuple[Array, float]:
    """Pooled second moments of every so many rows, and their weight."""
    X, weights, _ = sample(spec, step, piece, first)
    design = spec.units.design(X)
    return design.second_moments(weights), float(weights.sum())
