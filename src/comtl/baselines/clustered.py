"""A few models that the tasks mix: clusters relaxed to shares (CMTL)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated

import numpy as np

from ..arrays import to_numpy
from ..engine.recipe import Recipe, Schedule
from ..models import fields as of
from ..models.factor_model import FactorFit, adapt
from ..models.outputs import ClassifierOutputs, RegressorOutputs
from ..models.task_model import TaskModel
from ..parameters import Count, Doc, NonNegative, documented
from ..penalties import LEAST, Ridge, Simplex
from .direct import close


class PoolFit(FactorFit):
    """A pool of models, each task holding shares of them."""

    rank_names = ("n_clusters",)

    def ranks(self, n_features: int, n_columns: int) -> tuple[int, int]:
        count = min(self.clusters()[0], n_columns)
        return count, count

    def recipe(self, n_features: int, n_columns: int) -> Recipe:
        return Recipe(
            {"F": Ridge(max(float(self.model.alpha), LEAST)), "G": Simplex()},
            self.ranks(n_features, n_columns),
            intercept=self.model.fit_intercept,
        )

    def schedule(self) -> Schedule:
        return replace(super().schedule(), inner=close(self.model.tol))


def largest_share(model: TaskModel) -> np.ndarray:
    """Model of the pool of which each task holds the largest share."""
    linear = model._linear
    shares = to_numpy(linear.columns.by_task(linear.weights.task_factor))
    return shares.reshape(len(model.tasks_), -1).argmax(axis=1) % shares.shape[-1]


Clusters = Annotated[Count, Doc("Models in the pool; capped at the number of tasks.")]
Alpha = Annotated[NonNegative, Doc("Ridge penalty of the models.")]


@dataclass(eq=False, repr=False)
class Clustered(TaskModel):
    """Abstract model of relaxed task clusters."""

    n_clusters: Clusters = 5
    _: KW_ONLY
    alpha: Alpha = 1.0
    loss: of.Loss = "auto"
    fit_intercept: of.PlainIntercept = True
    standardize: of.Standardize = True
    task_column: of.TaskColumn = None
    unseen_task: of.UnseenTask = "mean"
    max_iter: of.MaxIter = 500
    tol: of.Tol = 1e-5
    random_state: of.RandomState = None
    verbose: of.Verbose = 0

    _algorithm_class = PoolFit

    adapt = adapt

    task_clusters_ = property(largest_share)


@documented
class ClusteredRegressor(RegressorOutputs, Clustered):
    r"""Multitask learning by clustering (CMTL, Barzilai and Crammer), relaxed to shares.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top F g_{t(i)} - b_{t(i)})^2 + α \|F\|_F^2,
        \quad g_t \ge 0,\ \sum_k g_{tk} = 1

    solved by projected gradients over ``G`` and conjugate gradients over ``F`` in turn.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import ClusteredRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(400, 2)), np.repeat(np.arange(10), 40)
    >>> y = np.where(task < 5, X[:, 0], -X[:, 1]) + 0.1 * rng.normal(size=400)
    >>> ClusteredRegressor(2).fit(X, y, task=task).task_factor_.round(1) + 0.0
    array([[1., 0.],
           [1., 0.],
           [1., 0.],
           [1., 0.],
           [1., 0.],
           [0., 1.],
           [0., 1.],
           [0., 1.],
           [0., 1.],
           [0., 1.]])
    """


@documented
class ClusteredClassifier(ClassifierOutputs, Clustered):
    r"""Multitask learning by clustering for classes; see :class:`ClusteredRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import ClusteredClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    >>> y = X[:, 0] > 0
    >>> ClusteredClassifier(1).fit(X, y, task=task).score(X, y, task=task) > 0.9
    True
    """
