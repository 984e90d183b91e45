"""Estimators that choose their penalty and ranks by cross-validation."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

from .models import fields as of
from .models.coclustering import (
    BiFactorClassifier,
    BiFactorRegressor,
    ThreeFactors,
    TriFactorClassifier,
    TriFactorRegressor,
    TwoFactors,
)
from .models.outputs import ClassifierOutputs, RegressorOutputs
from .models.search import CrossValidated
from .parameters import Doc, documented, refuses_removed


def _ranks(what: str) -> Doc:
    return Doc(f"Columns of {what}, or several numbers to choose from.", "int or sequence of int")


Components = Annotated[Any, _ranks("both factors")]
FeatureClusters = Annotated[Any, _ranks("the feature factor")]
TaskClusters = Annotated[Any, _ranks("the task factor")]


@documented
@refuses_removed
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
    feature_penalty: of.FactorPenalty = "relation"
    task_penalty: of.FactorPenalty = "relation"

    _plain_class = BiFactorRegressor
    _algorithm_class = TwoFactors


@documented
@refuses_removed
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
    feature_penalty: of.FactorPenalty = "relation"
    task_penalty: of.FactorPenalty = "relation"

    _plain_class = BiFactorClassifier
    _algorithm_class = TwoFactors


@documented
@refuses_removed
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
    >>> model = TriFactorRegressorCV(3, 2, alphas=(0.01, 1.0), cv=3)
    >>> model.fit(X, y, task=task).alpha_task_ in (0.01, 1.0)
    True
    """

    n_feature_clusters: FeatureClusters = 5
    n_task_clusters: TaskClusters = 5
    _: KW_ONLY
    core_penalty: of.Core = "ridge"
    alpha_core: of.AlphaCore = 1.0
    feature_penalty: of.BlockPenalty = "relation"
    task_penalty: of.BlockPenalty = "relation"

    _plain_class = TriFactorRegressor
    _algorithm_class = ThreeFactors


@documented
@refuses_removed
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
    >>> model = TriFactorClassifierCV(3, 2, alphas=(0.01, 1.0), cv=3)
    >>> model.fit(X, y, task=task).alpha_task_ in (0.01, 1.0)
    True
    """

    n_feature_clusters: FeatureClusters = 5
    n_task_clusters: TaskClusters = 5
    _: KW_ONLY
    core_penalty: of.Core = "ridge"
    alpha_core: of.AlphaCore = 1.0
    feature_penalty: of.BlockPenalty = "relation"
    task_penalty: of.BlockPenalty = "relation"

    _plain_class = TriFactorClassifier
    _algorithm_class = ThreeFactors


__all__ = [
    "BiFactorClassifierCV",
    "BiFactorRegressorCV",
    "TriFactorClassifierCV",
    "TriFactorRegressorCV",
]
