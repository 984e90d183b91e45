r"""BiFactor and TriFactor, as regressors and classifiers."""

from __future__ import annotations

from ..parameters import documented
from .coclustering import BiFactor, TriFactor
from .outputs import ClassifierOutputs, RegressorOutputs


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
    labels -1 and +1; beyond two classes, one class against the others within each task.

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
