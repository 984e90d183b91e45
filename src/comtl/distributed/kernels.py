"""A worker's share of a fit: what the alternation asks of the rows of one partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from ..arrays import Array
from ..datafits.gram_datafit import GramDatafit
from ..datafits.rows_datafit import RowsDatafit
from ..datafits.rows_expansion import RowsLocalQuadratic
from ..engine.problem import Scaling, complete_table, row_weights
from ..factors import Factors
from ..losses import Loss
from ..rows.design import Design
from .partition import LabelEncoding, Partition
from .sums import Sums

_numbers = count()

SharedArguments = tuple[int, Array, Array, Array, float]
"""Number of a point, and what all partitions need of it: ``F``, ``S``, shared part, offset."""
PartArguments = tuple[Array, Array]
"""What one partition needs of a point: rows of ``G`` and deviations of its tasks."""


class Whole(tuple[Array, ...]):
    """Arrays with an entry for every task, sent to a worker once."""


def mine(arrays: tuple[Array, ...], task_index: np.ndarray) -> tuple[Array, ...]:
    """Entries of the tasks of a partition."""
    return tuple(a[task_index] for a in arrays) if isinstance(arrays, Whole) else arrays


@dataclass(frozen=True, eq=False)
class Terms:
    """A view of the observations, with the units and the loss of a fit."""

    view: LabelEncoding
    units: Scaling
    loss: Loss
    number: int = field(default_factory=lambda: next(_numbers))


def share(
    terms: Terms, piece: Partition, labels: np.ndarray | None
) -> tuple[RowsDatafit, np.ndarray]:
    """Rows of a partition as the engine takes them, and their tasks; ``labels`` pool tasks."""

    def plain() -> tuple[RowsDatafit, np.ndarray]:
        cells, task_index = piece.seen(terms.view)
        units = terms.units
        y = units.target(cells.y).astype(cells.dtype)
        parts = (units.design(cells.X), y, cells.weights, cells.offsets, terms.loss, cells.rows)
        return RowsDatafit(*parts), task_index

    def merged() -> tuple[RowsDatafit, np.ndarray]:
        fit, _ = piece.made("share", terms.number, plain)
        assert labels is not None
        task_index, own = np.unique(labels, return_inverse=True)
        return fit.with_tasks_pooled(own, len(task_index)), task_index

    if labels is None:
        return piece.made("share", terms.number, plain)
    return piece.made("merged", (terms.number, labels.tobytes()), merged)


@dataclass(frozen=True, eq=False)
class At:
    """The rows of a piece and their quadratic model at a point."""

    expansion: RowsLocalQuadratic
    task_index: np.ndarray


def at(
    terms: Terms, common: SharedArguments, piece: Partition, labels: Any, own: PartArguments
) -> At:
    """Quadratic model at a point: the one at hand, where it is asked for again."""
    fit, task_index = share(terms, piece, labels)

    def make() -> At:
        return At(fit.quadratic_at(local(common, mine(own, task_index))), task_index)

    key = terms.number, common[0], None if labels is None else labels.tobytes()
    return piece.made("at", key, make)


def local(common: SharedArguments, own: PartArguments) -> Factors:
    """Factors with the tasks of one partition."""
    _, F, S, shared, offset = common
    G, deviations = own
    return Factors(F, S, G, shared, offset, deviations)


# ---- one task on a worker each ------------------------------------------------------------------


def value(
    terms: Terms, common: SharedArguments, piece: Partition, labels: Any, own: PartArguments
) -> Sums:
    """Loss at a point."""
    here = at(terms, common, piece, labels, own)
    return Sums((here.expansion.value,), here.task_index)


def curvature_sums(
    terms: Terms, common: SharedArguments, piece: Partition, labels: Any, own: PartArguments
) -> Sums:
    """Second derivatives by the intercepts."""
    here = at(terms, common, piece, labels, own)
    return Sums((), here.task_index, (here.expansion.curvature_sums,))


def gradient(
    terms: Terms,
    common: SharedArguments,
    piece: Partition,
    labels: Any,
    own: PartArguments,
    loadings: tuple[Array],
) -> Sums:
    """Loss and its gradient."""
    here = at(terms, common, piece, labels, own)
    matrix, sums = here.expansion.gradient(*mine(loadings, here.task_index))
    return Sums((here.expansion.value, matrix), here.task_index, (sums,))


def normal(
    terms: Terms,
    common: SharedArguments,
    step: Array,
    piece: Partition,
    labels: Any,
    own: PartArguments,
    loadings: tuple[Array],
    intercepts: tuple[Array],
) -> Sums:
    """Hessian applied to a step."""
    here = at(terms, common, piece, labels, own)
    mixed, base = mine(loadings, here.task_index), mine(intercepts, here.task_index)
    image, sums = here.expansion.normal(step, *mixed, *base)
    return Sums((image,), here.task_index, (sums,))


def task_gradient(
    terms: Terms,
    common: SharedArguments,
    features: Array,
    piece: Partition,
    labels: Any,
    own: PartArguments,
) -> Sums:
    """Gradient by the tasks' latent weights."""
    here = at(terms, common, piece, labels, own)
    return Sums((), here.task_index, (here.expansion.task_gradient(features),))


def task_quadratic(
    terms: Terms,
    common: SharedArguments,
    features: Array | None,
    piece: Partition,
    labels: Any,
    own: PartArguments,
) -> Sums:
    """Loss as a quadratic of each task's latent weights; without features those of the point."""
    here = at(terms, common, piece, labels, own)
    features = here.expansion.point.F if features is None else features
    found = here.expansion.task_quadratic(features)
    return Sums((found.value,), here.task_index, (found.hessian, found.gradient))


# ---- lines and losses ---------------------------------------------------------------------------


def along(
    terms: Terms,
    start: SharedArguments,
    stop: SharedArguments,
    position: float,
    piece: Partition,
    labels: Any,
    one: PartArguments,
    other: PartArguments,
) -> Sums:
    """Loss between two points."""
    fit, task_index = share(terms, piece, labels)
    ends = (start, mine(one, task_index)), (stop, mine(other, task_index))
    line = piece.made(
        "line", (start[0], stop[0]), lambda: fit.along_segment(*(local(*end) for end in ends))
    )
    return Sums((line(position),), task_index)


def losses(terms: Terms, weights: Array, intercepts: Array, piece: Partition, labels: Any) -> Sums:
    """Loss of each task under each of some models."""
    fit, task_index = share(terms, piece, labels)
    return Sums((), task_index, (fit.losses(weights, intercepts),))


# ---- summed up once -----------------------------------------------------------------------------


def grams(terms: Terms, piece: Partition) -> Sums:
    """Second moments of each task."""
    cells, task_index = piece.seen(terms.view)
    y = terms.units.target(cells.y).astype(cells.dtype)
    design = terms.units.design(cells.X if cells.rows is None else cells.X[cells.rows])
    fit = GramDatafit.of_cells(design, y, cells.weights, cells.offsets)
    return Sums((), task_index, (fit.gram, fit.moment, fit.energy))


def table_grams(terms: Terms, piece: Partition) -> Sums:
    """Second moments of rows that all tasks share."""
    cells, task_index = piece.seen(terms.view)
    table = complete_table(cells, terms.units.target(cells.y).astype(cells.dtype))
    assert table is not None
    fit = GramDatafit.of_table(terms.units.design(cells.X), *table)
    return Sums((fit.gram,), task_index, (fit.moment, fit.energy))


def sample(
    terms: Terms, step: int, piece: Partition, first: np.ndarray
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Every so many rows with their weights, and their numbers among all rows."""
    cells, _ = piece.seen(terms.view)
    positions = piece.positions(first)
    kept = np.flatnonzero(positions % step == 0) if step > 1 else np.arange(len(positions))
    X = cells.X if len(kept) == cells.X.shape[0] else cells.X[kept]
    return X, row_weights(cells)[kept], positions[kept]


def moments(terms: Terms, step: int, piece: Partition, first: np.ndarray) -> tuple[Array, float]:
    """Pooled second moments of every so many rows, and their weight."""
    X, weights, _ = sample(terms, step, piece, first)
    units = terms.units
    design = Design(X, units.shift, units.inverse_scale)
    return design.second_moments(weights), float(weights.sum())


def samples(terms: Terms, step: int, piece: Partition, first: np.ndarray) -> list[Any]:
    """Every so many rows, ready to be joined with others."""
    return [sample(terms, step, piece, first)]
