"""From cells in partitions to the problem that the engine solves."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..arrays import DENSE_BYTES, DENSE_SIDE
from ..datafits.base import Datafit
from ..datafits.gram import GramDatafit
from ..datafits.partitioned import PartitionedDatafit
from ..design import Covariance, Design, sample_step
from ..losses import Loss, Squared
from ..problem import Problem, Units, build_problem, grams_of, sweep_costs
from . import shares
from .data import PartitionedData
from .shares import Terms
from .sums import Sums
from .units import partitioned_units, summed
from .workers import joined


@build_problem.register
def _(
    data: PartitionedData,
    loss: Loss,
    *,
    center: bool,
    standardize: bool,
    scale_target: bool,
    width: int,
    grams: bool = True,
    fits: int = 1,
) -> Problem:
    units, weight = partitioned_units(
        data, center=center, standardize=standardize, scale_target=scale_target
    )
    terms = Terms(data.view, units, loss)
    return Problem(_datafit(data, terms, (width, fits), weight, grams=grams), units)


def _datafit(
    data: PartitionedData, terms: Terms, work: tuple[int, int], weight: float, *, grams: bool
) -> Datafit:
    """Grams where one table would have them: they are summed up once and live here.

    ``work`` is the number of columns of the factors, and of fits to come.
    """
    features, tasks = data.n_features, len(data.tasks)
    if grams and terms.loss.quadratic and features <= DENSE_SIDE:
        if data.complete:
            return table_grams(data, terms)
        size = data.dtype.itemsize * tasks * (features + 1) ** 2
        width, fits = work
        costs = sweep_costs(tasks, data.n_rows, features, width, data.filled, fits)
        if data.plain and size <= DENSE_BYTES and costs["gram"] <= costs["rows"]:
            return task_grams(data, terms)
    return PartitionedDatafit(
        data.workers,
        data.pieces,
        data.places,
        terms,
        (features, tasks),
        weight,
        lambda: pooled_covariance(data, terms),
    )


@grams_of.register
def _(data: PartitionedData, units: Units) -> GramDatafit:
    return task_grams(data, Terms(data.view, units, Squared()))


def task_grams(data: PartitionedData, terms: Terms) -> GramDatafit:
    """Second moments of every task, summed up over the partitions."""
    workers = data.workers
    found = workers.map(shares.grams, data.pieces, common=(workers.hold(terms),))
    return GramDatafit(*workers.total(Sums.added, found).spread(len(data.tasks)))


def table_grams(data: PartitionedData, terms: Terms) -> GramDatafit:
    """Second moments of rows that all tasks share, summed up over the partitions."""
    workers = data.workers
    found = workers.map(shares.table_grams, data.pieces, common=(workers.hold(terms),))
    sums = workers.total(Sums.added, found)
    return GramDatafit(sums.whole[0], *sums.spread(len(data.tasks)))


def pooled_covariance(data: PartitionedData, terms: Terms) -> Covariance:
    """Second moments of the features, from the rows that one table would take."""
    workers, units = data.workers, terms.units
    step = sample_step(data.n_rows, data.n_features, data.filled)
    common = (workers.hold(terms), step)
    if data.n_features <= DENSE_SIDE:
        found = workers.map(shares.moments, data.pieces, data.firsts, common=common)
        total, weight = workers.total(summed, found)
        return Covariance.of_moments(total / weight)
    found = workers.map(shares.samples, data.pieces, data.firsts, common=common)
    rows, weights, positions = zip(*workers.total(joined, found), strict=True)
    order = np.argsort(np.concatenate(positions))
    together = sparse.csr_array(sparse.vstack(rows)) if data.packed else np.concatenate(rows)
    design = Design(together[order], units.shift, units.inverse_scale)
    return design.covariance(np.concatenate(weights)[order])
