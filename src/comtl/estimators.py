r"""BiFactor and TriFactor, as regressors and classifiers."""

from __future__ import annotations

from typing import Any

from .base import CORE_PENALTIES, FactorModel, make_penalty
from .docstrings import documented
from .outputs import ClassifierOutputs, RegressorOutputs
from .parameters import require_choice, require_integer, require_number
from .penalties import Penalty


class BiFactor(FactorModel):
    r"""Abstract two-factor model :math:`W = F G^\top`."""

    def __init__(
        self,
        n_components: int = 5,
        *,
        alpha_feature: float = 0.1,
        alpha_task: float = 0.5,
        feature_penalty: str = "relation",
        task_penalty: str = "relation",
        relation_penalty: str | None = None,
        alpha_relation: float = 0.1,
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
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.alpha_feature = alpha_feature
        self.alpha_task = alpha_task
        self.feature_penalty = feature_penalty
        self.task_penalty = task_penalty
        self.relation_penalty = relation_penalty
        self.alpha_relation = alpha_relation
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
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        require_integer("n_components", self.n_components)
        super()._check_parameters()

    def _ranks(self, n_features: int, n_columns: int) -> tuple[int, int]:
        rank = min(int(self.n_components), n_features, n_columns)
        return rank, rank

    def _penalties(self) -> dict[str, Penalty]:
        return {
            "F": self._factor_penalty(self.feature_penalty, self.alpha_feature),
            "G": self._factor_penalty(self.task_penalty, self.alpha_task),
        }

    def _clusters(self) -> tuple[int, int]:
        return int(self.n_components), int(self.n_components)

    @property
    def n_components_(self) -> int:
        """Columns of the factors after capping at ``min(P, T)``."""
        return int(self.feature_factor_.shape[1])


class TriFactor(FactorModel):
    r"""Abstract three-factor model :math:`W = F S G^\top`."""

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
        relation_penalty: str | None = None,
        alpha_relation: float = 0.1,
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
        warm_start: bool = False,
        random_state: Any = None,
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
        self.relation_penalty = relation_penalty
        self.alpha_relation = alpha_relation
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
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        require_integer("n_feature_clusters", self.n_feature_clusters)
        require_integer("n_task_clusters", self.n_task_clusters)
        require_choice("core_penalty", self.core_penalty, CORE_PENALTIES)
        require_number("alpha_core", self.alpha_core)
        super()._check_parameters()

    def _ranks(self, n_features: int, n_columns: int) -> tuple[int, int]:
        K1, K2 = int(self.n_feature_clusters), int(self.n_task_clusters)
        return min(K1, n_features), min(K2, n_columns)

    def _penalties(self) -> dict[str, Penalty]:
        return {
            "F": self._factor_penalty(self.feature_penalty, self.alpha_feature),
            "S": make_penalty(self.core_penalty, self.alpha_core),
            "G": self._factor_penalty(self.task_penalty, self.alpha_task),
        }

    def _clusters(self) -> tuple[int, int]:
        return int(self.n_feature_clusters), int(self.n_task_clusters)

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

    Parameters
    ----------
    <bi_ranks>
    <alpha_task>
    <common>

    Attributes
    ----------
    <attributes>
    <bi_attributes>

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

    The core ``S`` lets features and tasks have different numbers of clusters.

    Parameters
    ----------
    <tri_ranks>
    <alpha_task>
    <core>
    <common>

    Attributes
    ----------
    <attributes>
    <tri_attributes>

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
    """


@documented
class BiFactorClassifier(ClassifierOutputs, BiFactor):
    r"""Multitask classification with two factors and learned relations.

    The objective is that of :class:`BiFactorRegressor` with the logistic (or squared) loss of
    labels -1 and +1; beyond two classes, one class against the others within each task.

    Parameters
    ----------
    <bi_ranks>
    <alpha_task>
    <common>

    Attributes
    ----------
    <classes>
    <attributes>
    <bi_attributes>

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
    labels -1 and +1; beyond two classes, one class against the others within each task.

    Parameters
    ----------
    <tri_ranks>
    <alpha_task>
    <core>
    <common>

    Attributes
    ----------
    <classes>
    <attributes>
    <tri_attributes>

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


__all__ = [
    "BiFactorClassifier",
    "BiFactorRegressor",
    "TriFactorClassifier",
    "TriFactorRegressor",
]
