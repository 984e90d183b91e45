"""Estimators that choose their penalty and ranks by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

from ..parameters import Doc, Flag, documented, refuses
from . import fields as of
from .coclustering import ThreeFactors, TwoFactors
from .cofactor_estimators import (
    BiFactorClassifier,
    BiFactorRegressor,
    TriFactorClassifier,
    TriFactorRegressor,
)
from .outputs import ClassifierOutputs, RegressorOutputs
from .search import CrossValidated

ALPHAS = (1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


Alphas = Annotated[
    Sequence[float],
    Doc(
        "Values of ``alpha_task`` to choose from.",
        "sequence of float",
        "half decades from 1e-3 to 1e3",
    ),
]
WarmPath = Annotated[
    Flag,
    Doc(
        "Whether to screen the settings first by rough fits, each starting from the one before "
        "along ``alphas``. The best of each path and the best few of all are then fitted anew, so "
        "the winner's score is that of a separate fit; the scores of the others are rough. False: "
        "all are separate fits. So they are in any case where small fits go through in batches: "
        "regression with relations on both factors, few features and tasks, or rows on a device."
    ),
]
Jobs = Annotated[
    int | None, Doc("Paths or batches of fits at the same time, in processes of joblib.")
]


def _ranks(what: str) -> Doc:
    return Doc(f"Columns of {what}, or several numbers to choose from.", "int or sequence of int")


Components = Annotated[Any, _ranks("both factors")]
FeatureClusters = Annotated[Any, _ranks("the feature factor")]
TaskClusters = Annotated[Any, _ranks("the task factor")]
REFUSED = ("relation_penalty", "alpha_relation", "warm_start")


@documented
@refuses(*REFUSED)
@dataclass(eq=False, repr=False)
class BiFactorRegressorCV(RegressorOutputs, CrossValidated):
    r""":class:`BiFactorRegressor` with its penalty (and ranks) chosen by cross-validation.

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

    n_components: Components = 5
    _: KW_ONLY
    alphas: Alphas = ALPHAS
    cv: of.Folds = 5
    warm_path: WarmPath = True
    n_jobs: Jobs = None
    alpha_feature: of.AlphaFeature = 0.1
    feature_penalty: of.FactorPenalty = "relation"
    task_penalty: of.FactorPenalty = "relation"
    shared: of.Shared = False
    alpha_shared: of.AlphaShared = 1.0
    loss: of.Loss = "auto"
    fit_intercept: of.FitIntercept = True
    standardize: of.Standardize = True
    task_column: of.TaskColumn = None
    unseen_task: of.UnseenTask = "mean"
    init: of.Init = "svd"
    smoothing: of.Smoothing = 0.01
    max_iter: of.MaxIter = 200
    tol: of.Tol = 1e-4
    random_state: of.RandomState = None
    checkpoint: of.Checkpoint = None
    verbose: of.Verbose = 0

    _plain_class = BiFactorRegressor
    _rank_names = ("n_components",)
    _algorithm_class = TwoFactors


@documented
@refuses(*REFUSED)
@dataclass(eq=False, repr=False)
class BiFactorClassifierCV(ClassifierOutputs, CrossValidated):
    r""":class:`BiFactorClassifier` with its penalty (and ranks) chosen by cross-validation.

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

    n_components: Components = 5
    _: KW_ONLY
    alphas: Alphas = ALPHAS
    cv: of.Folds = 5
    warm_path: WarmPath = True
    n_jobs: Jobs = None
    alpha_feature: of.AlphaFeature = 0.1
    feature_penalty: of.FactorPenalty = "relation"
    task_penalty: of.FactorPenalty = "relation"
    shared: of.Shared = False
    alpha_shared: of.AlphaShared = 1.0
    loss: of.Loss = "auto"
    fit_intercept: of.FitIntercept = True
    standardize: of.Standardize = True
    task_column: of.TaskColumn = None
    unseen_task: of.UnseenTask = "mean"
    init: of.Init = "svd"
    smoothing: of.Smoothing = 0.01
    max_iter: of.MaxIter = 200
    tol: of.Tol = 1e-4
    random_state: of.RandomState = None
    checkpoint: of.Checkpoint = None
    verbose: of.Verbose = 0

    _plain_class = BiFactorClassifier
    _rank_names = ("n_components",)
    _algorithm_class = TwoFactors


@documented
@refuses(*REFUSED)
@dataclass(eq=False, repr=False)
class TriFactorRegressorCV(RegressorOutputs, CrossValidated):
    r""":class:`TriFactorRegressor` with its penalty (and ranks) chosen by cross-validation.

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

    n_feature_clusters: FeatureClusters = 5
    n_task_clusters: TaskClusters = 5
    _: KW_ONLY
    alphas: Alphas = ALPHAS
    cv: of.Folds = 5
    warm_path: WarmPath = True
    n_jobs: Jobs = None
    alpha_feature: of.AlphaFeature = 0.1
    core_penalty: of.Core = "ridge"
    alpha_core: of.AlphaCore = 1.0
    feature_penalty: of.BlockPenalty = "relation"
    task_penalty: of.BlockPenalty = "relation"
    shared: of.Shared = False
    alpha_shared: of.AlphaShared = 1.0
    loss: of.Loss = "auto"
    fit_intercept: of.FitIntercept = True
    standardize: of.Standardize = True
    task_column: of.TaskColumn = None
    unseen_task: of.UnseenTask = "mean"
    init: of.Init = "svd"
    smoothing: of.Smoothing = 0.01
    max_iter: of.MaxIter = 200
    tol: of.Tol = 1e-4
    random_state: of.RandomState = None
    checkpoint: of.Checkpoint = None
    verbose: of.Verbose = 0

    _plain_class = TriFactorRegressor
    _rank_names = ("n_feature_clusters", "n_task_clusters")
    _algorithm_class = ThreeFactors


@documented
@refuses(*REFUSED)
@dataclass(eq=False, repr=False)
class TriFactorClassifierCV(ClassifierOutputs, CrossValidated):
    r""":class:`TriFactorClassifier` with its penalty (and ranks) chosen by cross-validation.

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

    n_feature_clusters: FeatureClusters = 5
    n_task_clusters: TaskClusters = 5
    _: KW_ONLY
    alphas: Alphas = ALPHAS
    cv: of.Folds = 5
    warm_path: WarmPath = True
    n_jobs: Jobs = None
    alpha_feature: of.AlphaFeature = 0.1
    core_penalty: of.Core = "ridge"
    alpha_core: of.AlphaCore = 1.0
    feature_penalty: of.BlockPenalty = "relation"
    task_penalty: of.BlockPenalty = "relation"
    shared: of.Shared = False
    alpha_shared: of.AlphaShared = 1.0
    loss: of.Loss = "auto"
    fit_intercept: of.FitIntercept = True
    standardize: of.Standardize = True
    task_column: of.TaskColumn = None
    unseen_task: of.UnseenTask = "mean"
    init: of.Init = "svd"
    smoothing: of.Smoothing = 0.01
    max_iter: of.MaxIter = 200
    tol: of.Tol = 1e-4
    random_state: of.RandomState = None
    checkpoint: of.Checkpoint = None
    verbose: of.Verbose = 0

    _plain_class = TriFactorClassifier
    _rank_names = ("n_feature_clusters", "n_task_clusters")
    _algorithm_class = ThreeFactors
