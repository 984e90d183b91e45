"""Standardised rows of tasks, and the likelihoods made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arrays import Array, asarray_like, namespace, on_device, to_numpy, with_ones
from ..datafits.datafit import Datafit
from ..datafits.gram_datafit import GramDatafit
from ..datafits.rows_datafit import RowsDatafit
from ..engine.problem import cell_grams, complete_table, prefers_grams, row_weights
from ..linear import Scaling
from ..losses import Loss
from ..losses.loss import target_units
from ..rows.design import Design
from ..rows.observations import Observations
from .likelihoods import Bernoulli
from .logistic_bound import ClassRows
from .task_data import TaskData, TaskGrams, TaskRows

FEW_ROWS = 1.5
"""Features over rows of every task from which the posterior comes faster from the rows; see
benchmarks/bench_row_posterior.md."""


@dataclass(frozen=True, eq=False)
class Population:
    """Standardised rows of some columns of weights, and their units; several fits share them."""

    obs: Observations
    units: Scaling

    @classmethod
    def of(cls, obs: Observations, *, standardize: bool, classification: bool) -> Population:
        """Centre and scale; signs of classes are left as they are."""
        design = Design.standardized(obs.X, row_weights(obs))
        shift, scale = 0.0, 1.0
        if not classification:
            shift, scale = target_units(obs.y, obs.weights, center=True, scale=True)
        units = Scaling(design.shift, design.inverse_scale, shift, scale)
        return cls(obs, units if standardize else evenly_scaled(units))

    def of_columns(self, columns: np.ndarray) -> Population:
        """Some of the columns, with their observations."""
        return replace(self, obs=self.obs.of_tasks(columns)[0])

    @cached_property
    def design(self) -> Design:
        """Standardised rows."""
        return self.units.design(self.obs.X)

    @cached_property
    def target(self) -> Array:
        """Standardised targets."""
        return self.units.target(self.obs.y)

    @property
    def row_design(self) -> Design:
        """The rows of the observations, one for each."""
        rows = self.obs.rows
        return self.design if rows is None else self.design.picked(rows)

    def evenly(self) -> Population:
        """Return the same observations with columns that keep their spread among each other."""
        return replace(self, units=evenly_scaled(self.units))

    @property
    def _few_rows(self) -> bool:
        """Whether every task has few rows for the features, so that posteriors come faster from
        the rows than from their sums.
        """
        obs = self.obs
        if on_device(obs.X):
            return False  # Rows on a device stay there.
        longest = np.diff(obs.offsets).max(initial=1)
        return bool(FEW_ROWS * longest < obs.n_features)

    @cached_property
    def sums(self) -> GramDatafit:
        """Second moments of each task's observations."""
        return cell_grams(self.obs, self.design, self.target)

    @cached_property
    def dense(self) -> np.ndarray:
        """Standardised rows of the observations, with a last column of ones."""
        design = self.row_design
        return with_ones(design.dense_rows(0, design.shape[0]))

    def datafit(self, loss: Loss, width: int, fits: int) -> Datafit:
        """Rows or sums for so many fits of models with factors."""
        obs = self.obs
        target = namespace(obs.weights).astype(self.target, obs.dtype)
        if prefers_grams(obs, loss, width, fits):
            return self.sums
        return RowsDatafit(self.design, target, obs.weights, obs.offsets, loss, obs.rows)

    @cached_property
    def task_data(self) -> TaskData:
        """Second moments or rows of every task."""
        obs = self.obs
        if self._few_rows and complete_table(obs, self.target) is None:
            return TaskRows.of(self.dense, self.target, obs.weights, obs.offsets)
        return TaskGrams(self.sums.on_host())

    @cached_property
    def bernoulli(self) -> Bernoulli:
        """Likelihood of two classes."""
        rows = ClassRows(self.dense, self.target, self.obs.weights, self.obs.offsets)
        return Bernoulli.of(rows.bound_by_rows if self._few_rows else rows.bound_by_grams)


def evenly_scaled(units: Scaling) -> Scaling:
    """Return units in which columns keep their spread among each other, a mean variance of one."""
    scale = to_numpy(units.inverse_scale)
    varied = scale > 0.0
    spread = np.where(varied, 1.0 / np.where(varied, scale, 1.0), 0.0)
    largest = float(spread.max()) or 1.0
    one = 1.0 / (largest * float(np.sqrt(np.mean((spread / largest) ** 2))) or 1.0)
    inverse = asarray_like(np.where(varied, one, 0.0).astype(scale.dtype), units.shift)
    change = asarray_like((spread * one).astype(scale.dtype), units.shift)
    return replace(units, shift=units.shift * change, inverse_scale=inverse)
