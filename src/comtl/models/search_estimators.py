"""Estimators that choose their penalty and ranks by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .coclustering import BiFactor, TriFactor
from .cofactor_estimators import (
    BiFactorClassifier,
    BiFactorRegressor,
    TriFactorClassifier,
    TriFactorRegressor,
)
from .docstrings import documented
from .factor_model import FactorModel
from .outputs import ClassifierOutputs, RegressorOutputs
from .removed import refuses
from .search import CrossValidated

ALPHAS = (1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


@refuses("relation_penalty", "alpha_relation", "warm_start")
class BiFactorCV(CrossValidated, BiFactor):
    """Abstract two-factor model with search."""

    _rank_names: ClassVar[tuple[str, ...]] = ("n_components",)

    def __init__(
        self,
        n_components: int | Sequence[int] = 5,
        *,
        alphas: Sequence[float] = ALPHAS,
        cv: Any = 5,
        warm_path: bool = True,
        n_jobs: int | None = None,
        alpha_feature: float = 0.1,
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
        self.n_components = n_components  # type: ignore[assignment]
        self.alphas = alphas
        self.cv = cv
        self.warm_path = warm_path
        self.n_jobs = n_jobs
        self.alpha_feature = alpha_feature
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


@refuses("relation_penalty", "alpha_relation", "warm_start")
class TriFactorCV(CrossValidated, TriFactor):
    """Abstract three-factor model with search."""

    _rank_names: ClassVar[tuple[str, ...]] = ("n_feature_clusters", "n_task_clusters")

    def __init__(
        self,
        n_feature_clusters: int | Sequence[int] = 5,
        n_task_clusters: int | Sequence[int] = 5,
        *,
        alphas: Sequence[float] = ALPHAS,
        cv: Any = 5,
        warm_path: bool = True,
        n_jobs: int | None = None,
        alpha_feature: float = 0.1,
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
        self.n_feature_clusters = n_feature_clusters  # type: ignore[assignment]
        self.n_task_clusters = n_task_clusters  # type: ignore[assignment]
        self.alphas = alphas
        self.cv = cv
        self.warm_path = warm_path
        self.n_jobs = n_jobs
        self.alpha_feature = alpha_feature
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
        self.core_penalty = core_penalty
        self.alpha_core = alpha_core


@documented
class BiFactorRegressorCV(RegressorOutputs, BiFactorCV):
    r""":class:`BiFactorRegressor` with its penalty (and ranks) chosen by cross-validation.

    Parameters
    ----------
    <bi_search>
    <search>
    <common>

    Attributes
    ----------
    <search_attributes>
    <attributes>
    <bi_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import BiFactorRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(90, 4)), np.repeat([0, 1, 2], 30)
    >>> y = X @ rng.normal(size=4)
    >>> model = BiFactorRegressorCV(n_components=2, alphas=(0.01, 1.0), cv=3)
    >>> model.fit(X, y, task=task).alpha_task_ in (0.01, 1.0)
    True
    """

    _plain_class: ClassVar[type[FactorModel]] = BiFactorRegressor


@documented
class BiFactorClassifierCV(ClassifierOutputs, BiFactorCV):
    r""":class:`BiFactorClassifier` with its penalty (and ranks) chosen by cross-validation.

    Parameters
    ----------
    <bi_search>
    <search>
    <common>

    Attributes
    ----------
    <search_attributes>
    <classes>
    <attributes>
    <bi_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import BiFactorClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(90, 4)), np.repeat([0, 1, 2], 30)
    >>> y = X[:, 0] > 0
    >>> model = BiFactorClassifierCV(n_components=2, alphas=(0.01, 1.0), cv=3)
    >>> model.fit(X, y, task=task).alpha_task_ in (0.01, 1.0)
    True
    """

    _plain_class: ClassVar[type[FactorModel]] = BiFactorClassifier


@documented
class TriFactorRegressorCV(RegressorOutputs, TriFactorCV):
    r""":class:`TriFactorRegressor` with its penalty (and ranks) chosen by cross-validation.

    Parameters
    ----------
    <tri_search>
    <search>
    <core>
    <common>

    Attributes
    ----------
    <search_attributes>
    <attributes>
    <tri_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import TriFactorRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(90, 4)), np.repeat([0, 1, 2], 30)
    >>> y = X @ rng.normal(size=4)
    >>> model = TriFactorRegressorCV(
    ...     n_feature_clusters=3, n_task_clusters=2, alphas=(0.01, 1.0), cv=3
    ... )
    >>> model.fit(X, y, task=task).alpha_task_ in (0.01, 1.0)
    True
    """

    _plain_class: ClassVar[type[FactorModel]] = TriFactorRegressor


@documented
class TriFactorClassifierCV(ClassifierOutputs, TriFactorCV):
    r""":class:`TriFactorClassifier` with its penalty (and ranks) chosen by cross-validation.

    Parameters
    ----------
    <tri_search>
    <search>
    <core>
    <common>

    Attributes
    ----------
    <search_attributes>
    <classes>
    <attributes>
    <tri_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import TriFactorClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(90, 4)), np.repeat([0, 1, 2], 30)
    >>> y = X[:, 0] > 0
    >>> model = TriFactorClassifierCV(
    ...     n_feature_clusters=3, n_task_clusters=2, alphas=(0.01, 1.0), cv=3
    ... )
    >>> model.fit(X, y, task=task).alpha_task_ in (0.01, 1.0)
    True
    """

    _plain_class: ClassVar[type[FactorModel]] = TriFactorClassifier
