"""Estimators as members: what they share when they are fitted to the same rows."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.problem import Problem
from ..hierarchical.coregionalised import CentredProblem, CoregionalisedRidge
from ..hierarchical.hierarchical_estimators import HierarchicalModel
from ..linear import ColumnWeights
from ..models.task_model import TaskModel
from ..saving.registry import saved
from .members import Fitted, MemberRows, Predicted, Shared


@saved
@dataclass(frozen=True, eq=False)
class FittedEstimator:
    """Member that is an estimator."""

    model: TaskModel

    @property
    def linear(self) -> ColumnWeights:
        """Its coefficients."""
        return self.model._linear.weights

    def score(self, rows: MemberRows, base: Predicted | None) -> Predicted:
        """Scores by the column of each target's task, or by the mean of all tasks."""
        linear = self.model._linear
        codes = np.append(linear.codes(rows.tasks), -1)[rows.task]
        column, extended = linear.columns.places[codes, rows.label], linear.extended
        return Predicted(rows.scores(extended, column), column, lambda: extended.coef)


def public_member(fitted: Fitted) -> Any:
    """What users see of a member: the estimator, where it is one."""
    return fitted.model if isinstance(fitted, FittedEstimator) else fitted


@dataclass(frozen=True, eq=False)
class HierarchicalMember:
    """Hierarchical model; refined structures start from simpler fits to the same rows."""

    name: str
    model: HierarchicalModel
    level: int = 0

    def fit(self, rows: MemberRows, shared: Shared, base: Predicted | None) -> FittedEstimator:
        """Fit to rows that are scaled once for all; factors come in the order of their number."""
        model = copy.copy(self.model)
        scaled = model.standardize, model.shrink_common
        starts = shared.made.get(("isotropic", scaled), ())
        if model.structure == "factor":
            starts = shared.made.get(("factor", scaled), starts)
        model._fit_em(
            shared.populations(standardize=model.standardize),
            shared.data,
            shared.columns,
            starts if model._covariance_family.refines else (),
        )
        shared.made[model.structure, scaled] = model._priors
        return FittedEstimator(model)


@dataclass(frozen=True, eq=False)
class FactorMember:
    """Factor model; those on standard scales share their rows or Grams."""

    name: str
    model: TaskModel
    level: int = 0

    @property
    def _shares(self) -> bool:
        return self.model.fit_intercept and self.model.standardize

    def fit(self, rows: MemberRows, shared: Shared, base: Predicted | None) -> FittedEstimator:
        """Fit to rows that are scaled once for all."""
        model, data, columns = copy.copy(self.model), shared.data, shared.columns
        if not self._shares:
            model._learn(data, columns)
            return FittedEstimator(model)
        key = "problem", type(model._loss())
        problem = shared.once(key, lambda: self._problem(shared))
        model._algorithm.learn(data, columns, problem=problem)
        return FittedEstimator(model)

    def _problem(self, shared: Shared) -> Problem:
        population, columns = shared.population(), shared.columns
        size = population.cells.n_features, population.cells.n_tasks
        widths = [
            member.model._algorithm.recipe(*size).ranks[0]
            for member in shared.members
            if isinstance(member, FactorMember) and member._shares
        ]
        datafit = population.datafit(self.model._loss(), max(widths), len(widths))
        labels = None if columns.index is None else columns.label
        return Problem(datafit, population.units, labels)


@dataclass(frozen=True, eq=False)
class WideMember:
    """Ridge with a covariance between tasks; rows, scales and relation are shared."""

    name: str
    model: CoregionalisedRidge
    level: int = 0

    def fit(self, rows: MemberRows, shared: Shared, base: Predicted | None) -> FittedEstimator:
        """Solve for the weights of one covariance."""
        model, data, columns = copy.copy(self.model), shared.data, shared.columns
        key = CentredProblem, model.standardize
        problem = shared.once(key, lambda: model._problem(data, columns))
        model._solve(problem, data, columns)
        return FittedEstimator(model)
