"""From validated observations to the problem that the engine solves."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import DENSE_BYTES, DENSE_SIDE
from ..arrays.backends import Array, namespace, on_device
from ..arrays.packed import RowSelector
from ..datafits.datafit import Datafit
from ..datafits.gram_datafit import GramDatafit
from ..datafits.rows_datafit import RowsDatafit
from ..linear import Scaling
from ..losses import Loss
from ..rows.design import Design, Scale
from ..rows.observations import Observations
from .alternation import alternate, resume
from .recipe import Iteration, Recipe, Schedule
from .starts import start_state


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows with a loss, the units they are in, and beyond two classes that of each column."""

    datafit: Datafit
    units: Scaling
    labels: np.ndarray | None = None

    def sweeps(self, recipe: Recipe, schedule: Schedule, **start: Any) -> Iterator[Iteration]:
        """Yield the fit of a recipe sweep by sweep; ``start`` goes to :func:`start_state`."""
        state = start_state(self.datafit, recipe, schedule, like=self.units.shift, **start)
        yield from alternate(self.datafit, state, schedule)

    def resumed(self, step: Iteration, schedule: Schedule) -> Iterator[Iteration]:
        """Yield what comes after a sweep."""
        return resume(self.datafit, step, schedule)


def build_problem(
    data: Any, loss: Loss, *, width: int, grams: bool = True, fits: int = 1, **scaling: Any
) -> Problem:
    """Standardise, and choose rows or Grams for ``fits`` fits of ``width`` columns to come."""
    units = data.units(**scaling) if data.partitioned else units_of(data, loss, **scaling)
    if grams and prefers_grams(data, loss, width, fits):
        return Problem(grams_of(data, units), units)
    if data.partitioned:
        return Problem(data.rows_datafit(units, loss), units)
    return Problem(rows_datafit(data, units, loss), units)


def units_of(
    data: Observations, loss: Loss, *, center: bool, standardize: Scale, scale_target: bool
) -> Scaling:
    """Centre and scale of the features, and by choice of the target."""
    design = Design.standardized(data.X, row_weights(data), center=center, scale=standardize)
    shift, scale = 0.0, 1.0
    if scale_target:
        shift, scale = loss.target_units(
            data.y, data.weights, center=center, scale=bool(standardize)
        )
    return Scaling(design.shift, design.inverse_scale, shift, scale)


def scaled_target(data: Observations, units: Scaling) -> Array:
    """Targets in given units and in the type of X."""
    return namespace(data.weights).astype(units.target(data.y), data.dtype)


def rows_datafit(data: Observations, units: Scaling, loss: Loss) -> RowsDatafit:
    """Observations in given units, as a fit takes them."""
    y = scaled_target(data, units)
    return RowsDatafit(units.design(data.X), y, data.weights, data.offsets, loss, data.rows)


def row_weights(data: Observations) -> Array:
    """Weight of all observations of each row of X."""
    if data.rows is None:
        return data.weights
    if on_device(data.weights):
        obs = RowSelector(data.rows, data.X.shape[0], data.weights)
        return namespace(data.weights).astype(obs.backward(data.weights), data.dtype)
    return np.bincount(data.rows, data.weights, minlength=data.X.shape[0]).astype(data.dtype)


def sweep_costs(
    tasks: int, rows: int, columns: int, width: int, filled: int, fits: int = 1
) -> dict[str, float]:
    """Nanoseconds of a sweep on rows, and on Grams to be made; see benchmarks/bench_blocks.md."""
    dense = filled >= rows * columns
    entry = 1.1 + 0.15 * width if dense else 4.0 + 0.9 * width
    grams = tasks * (columns + 1) ** 2
    return {
        "rows": 6e5 + 4.5 * entry * filled,
        "gram": 2.5e5 + 4.3 * grams + 0.02 * rows * columns**2 / fits,
    }


def prefers_grams(data: Any, loss: Loss, width: int, fits: int = 1) -> bool:
    """Whether Grams are exact, small and cheaper to apply than the rows themselves."""
    tasks, rows, features = data.n_tasks, data.n_rows, data.n_features
    if not loss.quadratic or features > DENSE_SIDE:
        return False
    if not data.plain:
        return data.complete
    size = data.itemsize * tasks * (features + 1) ** 2
    costs = sweep_costs(tasks, rows, features, width, data.nnz, fits)
    return size <= DENSE_BYTES and costs["gram"] <= costs["rows"]


def cell_grams(data: Observations, design: Design, y: np.ndarray) -> GramDatafit:
    """Second moments of each task's observations, one Gram for all where they share their rows."""
    if data.rows is None:
        return GramDatafit.of_rows(design, y, data.weights, data.offsets)
    if data.complete:
        xp, shape = namespace(y), (data.n_tasks, data.n_rows)
        weights = xp.reshape(data.weights, shape)[0, :]
        return GramDatafit.of_table(design, xp.reshape(y, shape).T, weights)
    return GramDatafit.of_rows(design.picked(data.rows), y, data.weights, data.offsets)


def grams_of(data: Any, units: Scaling) -> GramDatafit:
    """Second moments of each task's observations in given units."""
    if data.partitioned:
        return data.grams_of(units)
    return cell_grams(data, units.design(data.X), scaled_target(data, units))
