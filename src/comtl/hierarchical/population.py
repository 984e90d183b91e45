"""Standardised rows of tasks, and the likelihoods made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arrays import Array, asarray_like, on_device, to_numpy, with_ones
from ..datafits.datafit import Datafit
from ..datafits.gram_datafit import GramDatafit
from ..engine.problem import cell_grams, prefers_grams, rows_datafit, units_of
from ..linear import Scaling
from ..losses import Loss, Squared
from ..rows.design import Design, Scale
from ..rows.observations import Observations
from .laplace import ClassRows, EachClassRow, SummedClasses
from .likelihoods import Bernoulli
from .task_data import TaskRows

FEW_ROWS = 1.0
"""Features over rows a task from which there are fewer rows than columns in a root of the sums."""


@dataclass(frozen=True, eq=False)
class Population:
    """Standardised rows of some columns of weights, and their units; several fits share them."""

    obs: Observations
    units: Scaling

    @classmethod
    def of(cls, obs: Observations, *, standardize: Scale, classification: bool) -> Population:
        """Centre and scale; signs of classes are left as they are."""
        scaling = {"center": True, "scale_target": not classification}
        units = units_of(obs, Squared(), standardize=standardize or True, **scaling)
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

    @property
    def _few_rows(self) -> bool:
        """Whether tasks have so few rows that posteriors come faster from these than from sums."""
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
        if prefers_grams(self.obs, loss, width, fits):
            return self.sums
        return rows_datafit(self.obs, self.units, loss)

    @cached_property
    def task_data(self) -> TaskRows:
        """Second moments or rows of every task."""
        obs = self.obs
        if self._few_rows:
            return TaskRows.of(self.dense, self.target, obs.weights, obs.offsets)
        sums = self.sums
        if on_device(sums.gram):
            sums = GramDatafit(*map(to_numpy, (sums.gram, sums.moment, sums.energy)))
        return TaskRows.of_grams(sums)

    @cached_property
    def bernoulli(self) -> Bernoulli:
        """Likelihood of two classes."""
        rows = ClassRows(self.dense, self.target, self.obs.weights, self.obs.offsets)
        return Bernoulli.of(EachClassRow(rows) if self._few_rows else SummedClasses(rows))


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
