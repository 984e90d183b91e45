"""A few models that the tasks mix: clusters relaxed to shares (CMTL)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import to_numpy
from ..engine.alternation import Recipe, Schedule
from ..models.docstrings import documented
from ..models.factor_model import FactorModel
from ..models.outputs import ClassifierOutputs, RegressorOutputs
from ..parameters import require_integer, require_number
from ..penalties import LEAST, Ridge, Simplex
from .direct import close


class Pool(FactorModel):
    """Abstract pool of models, each task holding shares of them."""

    def __init__(
        self,
        n_clusters: int = 5,
        *,
        alpha: float = 1.0,
        loss: str = "auto",
        fit_intercept: bool = True,
        standardize: bool = True,
        task_column: str | int | None = None,
        unseen_task: str = "mean",
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.task_column = task_column
        self.unseen_task = unseen_task
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        require_integer("n_clusters", self.n_clusters)
        require_number("alpha", self.alpha)
        super()._check_parameters()

    def _ranks(self, n_features: int, n_columns: int) -> tuple[int, int]:
        count = min(int(self.n_clusters), n_columns)
        return count, count

    def _recipe(self, n_features: int, n_columns: int) -> Recipe:
        return Recipe(
            {"F": Ridge(max(float(self.alpha), LEAST)), "G": Simplex()},
            self._ranks(n_features, n_columns),
            intercept=self.fit_intercept,
        )

    def _schedule(self) -> Schedule:
        return replace(super()._schedule(), inner=close(self.tol))

    def _place(self) -> tuple[tuple[Any, ...], float]:
        return (), float(self.alpha)

    def _clusters(self) -> tuple[int | None, int | None]:
        return int(self.n_clusters), int(self.n_clusters)

    @property
    def task_clusters_(self) -> np.ndarray:
        """Model of which each task holds the largest share."""
        shares = to_numpy(self._per_task(self._linear.task_factor))
        return shares.reshape(len(self.tasks_), -1).argmax(axis=1) % shares.shape[-1]


class Clustered(Pool):
    """Abstract model of relaxed task clusters."""


@documented
class ClusteredRegressor(RegressorOutputs, Clustered):
    r"""Multitask learning by clustering (CMTL, Barzilai and Crammer), relaxed to shares.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top F g_{t(i)} - b_{t(i)})^2 + α \|F\|_F^2,
        \quad g_t \ge 0,\ \sum_k g_{tk} = 1

    solved by projected gradients over ``G`` and conjugate gradients over ``F`` in turn.

    Parameters
    ----------
    <clusters>
    <plain>

    Attributes
    ----------
    <plain_attributes>
    <factor_attributes>

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

    Parameters
    ----------
    <clusters>
    <plain>

    Attributes
    ----------
    <classes>
    <plain_attributes>
    <factor_attributes>

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
