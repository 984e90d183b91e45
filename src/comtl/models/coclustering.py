"""What BiFactor and TriFactor are: factors that are all learned, each with a penalty."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..clusters import in_order
from ..engine.alternation import Iteration, Recipe, Schedule
from ..engine.cluster_exchange import best_of_starts
from ..engine.problem import Problem
from ..factors import Factors
from ..parameters import require_choice, require_flag, require_integer, require_number
from ..penalties import (
    LEAST,
    Penalty,
    core_penalties,
    factor_penalties,
    penalty_of,
    rotation_invariant,
)
from ..penalties.membership import labels_of
from ..rows.blocks import single_blas
from .factor_model import FactorModel
from .removed import refuses


class CoClustering(FactorModel):
    """Abstract model of factors that are all learned, each with a penalty of its own."""

    # Declared for type checkers; the final classes set them in their constructors.
    alpha_feature: float
    alpha_task: float
    feature_penalty: str
    task_penalty: str
    shared: bool
    alpha_shared: float

    _has_core: bool = False

    @abstractmethod
    def _penalties(self) -> dict[str, Penalty]:
        """Penalty of each factor."""

    def _check_parameters(self) -> None:
        for name in ("alpha_feature", "alpha_task", "alpha_shared"):
            require_number(name, getattr(self, name))
        choices = factor_penalties(core=self._has_core)
        require_choice("feature_penalty", self.feature_penalty, choices)
        require_choice("task_penalty", self.task_penalty, choices)
        require_flag("shared", self.shared)
        super()._check_parameters()

    def _recipe(self, n_features: int, n_columns: int) -> Recipe:
        penalties, ranks = self._penalties(), self._ranks(n_features, n_columns)
        if rotation_invariant(penalties.values()):
            # They see only the singular values of W, whose rank the shorter side sets:
            # columns beyond it are zero at every optimum, so they are left out of the fit.
            ranks = (min(ranks), min(ranks))
        return Recipe(
            penalties=penalties,
            ranks=ranks,
            shared=max(self.alpha_shared, LEAST) if self.shared else None,
            intercept=self.fit_intercept,
        )

    def _place(self) -> tuple[tuple[Any, ...], float]:
        return (self.alpha_feature,), self.alpha_task


@refuses("relation_penalty", "alpha_relation", "warm_start")
class BiFactor(CoClustering):
    r"""Abstract two-factor model :math:`W = F G^\top`."""

    def __init__(
        self,
        n_components: int = 5,
        *,
        alpha_feature: float = 0.1,
        alpha_task: float = 0.5,
        feature_penalty: str = "relation",
        task_penalty: str = "relation",
        shared: bool = False,
        alpha_shared: float = 1.0,
        loss: str = "auto",
        fit_intercept: bool = True,
        standardize: bool = True,
        task_column: str | int | None = None,
        unseen_task: str = "mean",
        init: str = "svd",
        smoothing: float = 0.01,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        checkpoint: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.alpha_feature = alpha_feature
        self.alpha_task = alpha_task
        self.feature_penalty = feature_penalty
        self.task_penalty = task_penalty
        self.shared = shared
        self.alpha_shared = alpha_shared
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.task_column = task_column
        self.unseen_task = unseen_task
        self.init = init
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    def _check_parameters(self) -> None:
        require_integer("n_components", self.n_components)
        super()._check_parameters()

    def _ranks(self, n_features: int, n_columns: int) -> tuple[int, int]:
        rank = min(int(self.n_components), n_features, n_columns)
        return rank, rank

    def _penalties(self) -> dict[str, Penalty]:
        return {
            "F": penalty_of(self.feature_penalty, self.alpha_feature),
            "G": penalty_of(self.task_penalty, self.alpha_task),
        }

    def _clusters(self) -> tuple[int | None, int | None]:
        return int(self.n_components), int(self.n_components)

    @property
    def n_components_(self) -> int:
        """Columns of the factors after capping at ``min(P, T)``."""
        return int(self.feature_factor_.shape[1])


@refuses("relation_penalty", "alpha_relation", "warm_start")
class TriFactor(CoClustering):
    r"""Abstract three-factor model :math:`W = F S G^\top`."""

    _has_core = True

    def __init__(
        self,
        n_feature_clusters: int = 5,
        n_task_clusters: int = 5,
        *,
        alpha_feature: float = 0.1,
        alpha_task: float = 0.5,
        core_penalty: str | None = "ridge",
        alpha_core: float = 1.0,
        feature_penalty: str = "relation",
        task_penalty: str = "relation",
        shared: bool = False,
        alpha_shared: float = 1.0,
        loss: str = "auto",
        fit_intercept: bool = True,
        standardize: bool = True,
        task_column: str | int | None = None,
        unseen_task: str = "mean",
        init: str = "svd",
        smoothing: float = 0.01,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        checkpoint: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_feature_clusters = n_feature_clusters
        self.n_task_clusters = n_task_clusters
        self.alpha_feature = alpha_feature
        self.alpha_task = alpha_task
        self.core_penalty = core_penalty
        self.alpha_core = alpha_core
        self.feature_penalty = feature_penalty
        self.task_penalty = task_penalty
        self.shared = shared
        self.alpha_shared = alpha_shared
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.task_column = task_column
        self.unseen_task = unseen_task
        self.init = init
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    def _check_parameters(self) -> None:
        require_integer("n_feature_clusters", self.n_feature_clusters)
        require_integer("n_task_clusters", self.n_task_clusters)
        require_choice("core_penalty", self.core_penalty, core_penalties())
        require_number("alpha_core", self.alpha_core)
        super()._check_parameters()

    def _ranks(self, n_features: int, n_columns: int) -> tuple[int, int]:
        K1, K2 = int(self.n_feature_clusters), int(self.n_task_clusters)
        return min(K1, n_features), min(K2, n_columns)

    def _penalties(self) -> dict[str, Penalty]:
        return {
            "F": penalty_of(self.feature_penalty, self.alpha_feature),
            "S": penalty_of(self.core_penalty, self.alpha_core),
            "G": penalty_of(self.task_penalty, self.alpha_task),
        }

    def _steps(
        self,
        problem: Problem,
        schedule: Schedule,
        seed: int,
        factors: Factors | None = None,
    ) -> Iterator[Iteration]:
        """Yield the fit sweep by sweep; that of hard clusters is the best of several runs."""
        hard = any(penalty.discrete for penalty in self._penalties().values())
        if factors is not None or not hard:
            yield from super()._steps(problem, schedule, seed, factors)
            return
        recipe = self._recipe(problem.datafit.n_features, problem.datafit.n_tasks)
        with single_blas():
            like = problem.units.shift
            yield from best_of_starts(problem.datafit, recipe, schedule, like=like, seed=seed)

    def _clusters(self) -> tuple[int | None, int | None]:
        return int(self.n_feature_clusters), int(self.n_task_clusters)

    def _cached_clusters(self, side: str) -> np.ndarray:
        """Clusters as the fit made them where they are hard, else from the weights."""
        state, several = self._state, self._columns.index is not None
        if side == "features" and state.penalties["F"].discrete:
            return in_order(labels_of(state.factors.F))
        # Beyond two classes a task has a membership for each of them.
        if side == "tasks" and state.penalties["G"].discrete and not several:
            return in_order(labels_of(self._linear.task_factor))
        return super()._cached_clusters(side)

    @property
    def n_feature_clusters_(self) -> int:
        """Columns of the feature factor after capping."""
        return int(self.core_.shape[0])

    @property
    def n_task_clusters_(self) -> int:
        """Columns of the task factor after capping."""
        return int(self.core_.shape[1])
