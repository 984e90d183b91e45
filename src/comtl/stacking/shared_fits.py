"""Members of a stack fitted to the same observations: units, rows and Grams are made once for
all.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..arrays import on_device
from ..datafits.gram_datafit import GramDatafit
from ..engine.checkpoints import Checkpoint
from ..engine.problem import Problem, Scaling, cell_grams
from ..engine.progress import SILENT
from ..hierarchical.coregionalised import CoregionalisedRidge, learn_related
from ..hierarchical.hierarchical_estimators import HierarchicalRegressor
from ..hierarchical.hierarchical_model import HierarchicalModel, populations_of
from ..hierarchical.population import Population
from ..hierarchical.posterior import Prior
from ..linear import OutputColumns
from ..losses import Loss
from ..models.task_model import TaskModel
from ..rows.blocks import single_blas
from ..rows.observations import Observations
from ..rows.reading import encode_tasks


def population_for(model: TaskModel, data: Observations, columns: OutputColumns) -> Population:
    """Observations on standard scales, as most members take them."""
    return Population.of(
        model._binary(data, columns), standardize=True, classification=model._classification
    )


LEAST_DIGITS = 1e-6
"""Rounding beyond which the sums of a rest are made from its rows."""


@dataclass(frozen=True, eq=False)
class WholeSums:
    """Sums of all observations, from which those of all but a few follow by a pass over the few."""

    sums: GramDatafit
    units: Scaling
    tasks: np.ndarray

    @classmethod
    def of(cls, population: Population, models: Sequence[TaskModel]) -> WholeSums | None:
        """Sums of a population, or None where members have no use for them."""
        asked = any(isinstance(model, HierarchicalRegressor) for model in models)
        if not asked or population.by_rows or on_device(population.cells.X):
            return None
        return cls(population.sums, population.units, population.cells.tasks)

    def without(self, few: Observations, rest: Population) -> Population:
        """Population of the rest, where few and rest are all the observations."""
        if self._lost(rest.units) > LEAST_DIGITS:
            return rest
        part = cell_grams(few, self.units.design(few.X), self.units.target(few.y))
        left = self.sums.less(part, encode_tasks(few.tasks, self.tasks))
        left = left.of_tasks(encode_tasks(rest.cells.tasks, self.tasks))
        return replace(rest, known_moments=lambda: (left, self.units))

    def _lost(self, units: Scaling) -> float:
        """Relative rounding of the rest: large where a column, or the target, is all in the few."""
        own = self.units.inverse_scale
        ratios = units.inverse_scale / np.where(own > 0.0, own, np.inf)
        largest = max(float(ratios.max(initial=1.0)), self.units.target_scale / units.target_scale)
        return largest**2 * float(np.finfo(self.sums.gram.dtype).eps)


def fit_members(
    models: Sequence[TaskModel], data: Observations, columns: OutputColumns, population: Population
) -> list[TaskModel]:
    """Copies of the models, fitted to the observations, which ``population`` has on standard
    scales.
    """
    models = [copy.copy(model) for model in models]
    with warnings.catch_warnings(), single_blas():
        # A member need not be at its top to be of use; what it is worth is measured.
        warnings.simplefilter("ignore", ConvergenceWarning)
        learn_hierarchical(
            [m for m in models if isinstance(m, HierarchicalModel)], population, data, columns
        )
        learn_related([m for m in models if isinstance(m, CoregionalisedRidge)], data, columns)
        learn_factors(
            [m for m in models if m._algorithm_class is not None], population, data, columns
        )
    for model in models:
        if isinstance(model, HierarchicalRegressor):
            model._forget_spread()
    return models


def learn_hierarchical(
    models: Sequence[HierarchicalModel],
    population: Population,
    data: Observations,
    columns: OutputColumns,
) -> None:
    """Fit several models to the same observations; rows are shared, and simpler fits as starts.

    Factors are to come in the order of their directions.
    """
    ready: dict[bool, Population] = {}
    reached: dict[tuple[str, bool, bool], Sequence[Prior]] = {}
    for model in models:
        scaled, kind, shrunk = model.standardize, model.structure, model.shrink_common
        if scaled not in ready:
            ready[scaled] = population if scaled else population.evenly()
        starts = reached.get(("isotropic", scaled, shrunk), ())
        if kind == "factor":
            starts = reached.get(("factor", scaled, shrunk), starts)
        populations = populations_of(ready[scaled], columns)
        model._fit_em(
            populations, data, columns, starts if model._covariance_family.refines else ()
        )
        reached[kind, scaled, shrunk] = model._priors


def learn_factors(
    models: Sequence[TaskModel],
    population: Population,
    data: Observations,
    columns: OutputColumns,
) -> None:
    """Fit several models to the same observations; those on standard scales share their rows."""
    size = population.cells.n_features, population.cells.n_tasks
    widths = {
        number: model._algorithm.recipe(*size).ranks[0]
        for number, model in enumerate(models)
        if model.fit_intercept and model.standardize
    }
    problems: dict[type[Loss], Problem] = {}
    for number, model in enumerate(models):
        if number not in widths:
            model._learn(data, columns)
            continue
        loss = model._loss()
        if type(loss) not in problems:
            datafit = population.datafit(loss, max(widths.values()), len(widths))
            labels = None if columns.index is None else columns.label
            problems[type(loss)] = Problem(datafit, population.units, labels)
        kept = Checkpoint.of(None, model, data)
        model._algorithm.run(problems[type(loss)], data, columns, kept, SILENT)
