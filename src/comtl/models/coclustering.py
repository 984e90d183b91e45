"""BiFactor and TriFactor: their parameters, and factors that are all learned from the rows."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np

from ..clusters import in_order
from ..engine.problem import Problem
from ..engine.recipe import Iteration, Recipe, Schedule
from ..factors import Factors
from ..parameters import Count, Doc, documented, refuses_removed
from ..penalties import LEAST, Penalty, penalty_of, rotation_invariant
from ..penalties.constraints import labels_of
from . import fields as of
from .factor_model import FactorFit, adapt
from .outputs import ClassifierOutputs, RegressorOutputs
from .task_model import TaskModel


class LearnedFactors(FactorFit):
    """Factors that are all learned, each with a penalty of its own."""

    path_names, alpha_name = ("alpha_feature",), "alpha_task"

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.init, self.smoothing, self.checkpoint = model.init, model.smoothing, model.checkpoint

    def penalties(self) -> dict[str, Penalty]:
        model = self.model
        return {
            "F": penalty_of(model.feature_penalty, model.alpha_feature),
            "G": penalty_of(model.task_penalty, model.alpha_task),
        }

    def recipe(self, n_features: int, n_columns: int) -> Recipe:
        penalties, ranks = self.penalties(), self.ranks(n_features, n_columns)
        if rotation_invariant(penalties.values()):
            # They see only the singular values of W, whose rank the shorter side sets:
            # columns beyond it are zero at every optimum, so they are left out of the fit.
            ranks = (min(ranks), min(ranks))
        shared = max(self.model.alpha_shared, LEAST) if self.model.shared else None
        return Recipe(penalties, ranks, shared=shared, intercept=self.model.fit_intercept)


class TwoFactors(LearnedFactors):
    r"""Two factors, :math:`W = F G^\top`.

    Attributes
    ----------
    n_components_ : int
        Columns of the factors after capping.
    """

    rank_names = ("n_components",)


class ThreeFactors(LearnedFactors):
    r"""Three factors, :math:`W = F S G^\top`.

    Attributes
    ----------
    core_ : ndarray of shape (K1, K2)
        Core.
    n_feature_clusters_, n_task_clusters_ : int
        Columns of the factors after capping.
    """

    rank_names = ("n_feature_clusters", "n_task_clusters")

    def ranks(self, n_features: int, n_columns: int) -> tuple[int, int]:
        K1, K2 = self.clusters()
        return min(K1, n_features), min(K2, n_columns)

    def penalties(self) -> dict[str, Penalty]:
        outer = super().penalties()
        core = penalty_of(self.model.core_penalty, self.model.alpha_core)
        return {"F": outer["F"], "S": core, "G": outer["G"]}

    def steps(
        self, problem: Problem, schedule: Schedule, seed: int, factors: Factors | None = None
    ) -> Iterator[Iteration]:
        """Yield the fit sweep by sweep; that of hard clusters is the best of several runs."""
        hard = any(penalty.discrete for penalty in self.penalties().values())
        if factors is not None or not hard:
            yield from super().steps(problem, schedule, seed, factors)
            return
        from ..engine.cluster_exchange import best_of_starts

        recipe = self.recipe(problem.datafit.n_features, problem.datafit.n_tasks)
        like = problem.units.shift
        yield from best_of_starts(problem.datafit, recipe, schedule, like=like, seed=seed)


@refuses_removed
@dataclass(eq=False, repr=False)
class BiFactor(TaskModel):
    r"""Abstract two-factor model :math:`W = F G^\top`."""

    n_components: of.Components = 5
    _: KW_ONLY
    alpha_feature: of.AlphaFeature = 0.1
    alpha_task: of.AlphaTask = 0.5
    feature_penalty: of.FactorPenalty = "relation"
    task_penalty: of.FactorPenalty = "relation"
    shared: of.Shared = False
    alpha_shared: of.AlphaShared = 1.0
    loss: of.Loss = "auto"
    fit_intercept: of.FitIntercept = True
    standardize: of.Standardize = "auto"
    init: of.Init = "svd"
    smoothing: of.Smoothing = 0.01
    max_iter: of.MaxIter = 200
    tol: of.Tol = 1e-4
    random_state: of.RandomState = None
    checkpoint: of.Checkpoint = None

    _algorithm_class = TwoFactors

    adapt = adapt

    @property
    def n_components_(self) -> int:
        """Columns of the factors after capping at ``min(P, T)``."""
        return int(self.feature_factor_.shape[1])


@refuses_removed
@dataclass(eq=False, repr=False)
class TriFactor(TaskModel):
    r"""Abstract three-factor model :math:`W = F S G^\top`."""

    n_feature_clusters: Annotated[
        Count,
        Doc(
            "Columns ``K1`` of the feature factor; capped at the number of features. With "
            "relations or ridge on every factor only the lower of ``K1`` and ``K2`` counts: for "
            '``K1`` ≠ ``K2`` set ``feature_penalty`` and ``task_penalty`` to "clusters".'
        ),
    ] = 5
    n_task_clusters: Annotated[
        Count, Doc("Columns ``K2`` of the task factor; capped at the number of tasks.")
    ] = 5
    _: KW_ONLY
    alpha_feature: of.AlphaFeature = 0.1
    alpha_task: of.AlphaTask = 0.5
    core_penalty: of.Core = "ridge"
    alpha_core: of.AlphaCore = 1.0
    # Two hard sides leave no weights without a core, hence three factors only.
    feature_penalty: of.BlockPenalty = "relation"
    task_penalty: of.BlockPenalty = "relation"
    shared: of.Shared = False
    alpha_shared: of.AlphaShared = 1.0
    loss: of.Loss = "auto"
    fit_intercept: of.FitIntercept = True
    standardize: of.Standardize = "auto"
    init: of.Init = "svd"
    smoothing: of.Smoothing = 0.01
    max_iter: of.MaxIter = 200
    tol: of.Tol = 1e-4
    random_state: of.RandomState = None
    checkpoint: of.Checkpoint = None

    _algorithm_class = ThreeFactors

    adapt = adapt

    def _cached_clusters(self, side: str) -> np.ndarray:
        """Clusters as the fit made them where they are hard, else from the weights."""
        state, several = self._state, self._linear.columns.index is not None
        if side == "features" and state.penalties["F"].discrete:
            return in_order(labels_of(state.factors.F))
        # Beyond two classes a task has a membership for each of them.
        if side == "tasks" and state.penalties["G"].discrete and not several:
            return in_order(labels_of(self._linear.weights.task_factor))
        return super()._cached_clusters(side)

    @property
    def n_feature_clusters_(self) -> int:
        """Columns of the feature factor after capping."""
        return int(self.core_.shape[0])

    @property
    def n_task_clusters_(self) -> int:
        """Columns of the task factor after capping."""
        return int(self.core_.shape[1])


@documented
class BiFactorRegressor(RegressorOutputs, BiFactor):
    r"""Multitask regression with two factors and learned relations.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top F g_{t(i)} - b_{t(i)})^2
        + λ_1 \mathrm{tr}(F^\top Σ^{-1} F) + λ_2 \mathrm{tr}(G^\top Ω^{-1} G)

    over the factors ``F`` (features) and ``G`` (tasks), the relations Σ and Ω of trace one
    (smoothed, see ``smoothing``) and partially pooled intercepts.

    See Also
    --------
    BiFactorRegressorCV : Chooses the penalty by cross-validation.
    TriFactorRegressor : Separate ranks for features and tasks.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import BiFactorRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(200, 5)), np.repeat(np.arange(10), 20)
    >>> W = rng.normal(size=(5, 1)) @ rng.normal(size=(1, 10))
    >>> y = (X * W.T[task]).sum(axis=1)
    >>> model = BiFactorRegressor(n_components=1).fit(X, y, task=task)
    >>> model.score(X, y, task=task) > 0.99
    True
    >>> model.coef_.shape
    (10, 5)
    """


@documented
class TriFactorRegressor(RegressorOutputs, TriFactor):
    r"""Multitask regression with three factors and learned relations.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top F S g_{t(i)} - b_{t(i)})^2
        + λ_1 \mathrm{tr}(F^\top Σ^{-1} F) + λ_2 \mathrm{tr}(G^\top Ω^{-1} G) + λ_3 R(S)

    The core ``S`` lets features and tasks have different numbers of clusters. With relations or
    ridge on every factor only the lower of the two counts; with ``feature_penalty="clusters"``
    and ``task_penalty="clusters"`` both do: features of a cluster share their weights (once scaled
    to unit variance), tasks of a cluster their model.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import TriFactorRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(200, 5)), np.repeat(np.arange(10), 20)
    >>> W = rng.normal(size=(5, 1)) @ rng.normal(size=(1, 10))
    >>> y = (X * W.T[task]).sum(axis=1)
    >>> model = TriFactorRegressor(3, 2).fit(X, y, task=task)
    >>> model.core_.shape
    (3, 2)

    Three clusters of features, two of tasks:

    >>> from comtl.datasets import make_coclusters
    >>> data = make_coclusters(n_features=9, n_tasks=8, n_feature_clusters=3, n_task_clusters=2)
    >>> model = TriFactorRegressor(3, 2, feature_penalty="clusters", task_penalty="clusters")
    >>> model = model.fit(data.X, data.y, task=data.task)
    >>> data.feature_clusters
    array([1, 2, 2, 0, 0, 2, 1, 0, 1])
    >>> model.feature_clusters_
    array([0, 1, 1, 2, 2, 1, 0, 2, 0])
    """


@documented
class BiFactorClassifier(ClassifierOutputs, BiFactor):
    r"""Multitask classification with two factors and learned relations.

    The objective is that of :class:`BiFactorRegressor` with the logistic (or squared) loss of
    labels -1 and +1; beyond two classes, one class against the others within each task.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import BiFactorClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(200, 5)), np.repeat(["a", "b", "c", "d"], 50)
    >>> y = np.where(X[:, 0] > 0, "high", "low")
    >>> model = BiFactorClassifier(n_components=1).fit(X, y, task=task)
    >>> model.score(X, y, task=task) > 0.9
    True
    >>> model.classes_
    array(['high', 'low'], dtype='<U4')
    """


@documented
class TriFactorClassifier(ClassifierOutputs, TriFactor):
    r"""Multitask classification with three factors and learned relations.

    The objective is that of :class:`TriFactorRegressor` with the logistic (or squared) loss of
    labels -1 and +1; beyond two classes, one class against the others within each task. Different
    numbers of clusters need ``feature_penalty="clusters"`` and ``task_penalty="clusters"`` too.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import TriFactorClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(200, 5)), np.repeat(["a", "b", "c", "d"], 50)
    >>> y = X[:, 0] > 0
    >>> model = TriFactorClassifier(2, 2).fit(X, y, task=task)
    >>> model.predict_proba(X, task=task).shape
    (200, 2)
    """
