"""From one model for all tasks to one for each: pooled, own intercepts, shrunk, separate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from ..arrays import take
from ..engine.recipe import Iteration, Recipe, Schedule
from ..factors import Factors
from ..models import fields as of
from ..models.factor_model import adapt
from ..models.outputs import ClassifierOutputs, RegressorOutputs
from ..models.task_model import TaskModel
from ..parameters import Doc, NonNegative, documented, require_number
from ..penalties import LEAST, Free, Ridge
from .direct import Alpha, DirectFit, DirectModel

if TYPE_CHECKING:
    from ..engine.problem import Problem


class PooledFit(DirectFit):
    """One model, or beyond two classes one for each: tasks are ignored."""

    pooling: float | None = float("inf")

    def steps(
        self, problem: Problem, schedule: Schedule, seed: int, factors: Factors | None = None
    ) -> Iterator[Iteration]:
        if problem.labels is None:
            return super().steps(problem, schedule, seed, factors)
        return self.by_class(problem, problem.labels, schedule)

    def recipe(self, n_features: int, n_columns: int) -> Recipe:
        nothing = {"F": np.zeros((n_features, 1)), "G": np.zeros((n_columns, 1))}
        return Recipe(
            {"F": Ridge(1.0), "G": Ridge(1.0)},
            (1, 1),
            fixed=nothing,
            shared=self.penalties()["W"].strength,
            intercept=self.model.fit_intercept,
            intercept_penalty=self.pooling,
        )

    def by_class(
        self, problem: Problem, labels: np.ndarray, schedule: Schedule
    ) -> Iterator[Iteration]:
        """Yield the fit of several classes, of which each column of the problem has one."""
        # The columns of a class are one, with an intercept of its own.
        kinds, own = np.unique(labels, return_inverse=True)
        merged = problem.datafit.with_tasks_pooled(own, len(kinds))
        recipe = IndependentFit(self.model).recipe(merged.n_features, merged.n_tasks)
        for step in replace(problem, datafit=merged).sweeps(recipe, schedule):
            point = step.state.factors
            spread = point.with_(
                G=take(point.G, own), random_intercepts=take(point.random_intercepts, own)
            )
            yield replace(step, state=step.state.at(spread))


class RandomInterceptFit(PooledFit):
    """Common slopes and partially pooled intercepts."""

    pooling = None

    def by_class(
        self, problem: Problem, labels: np.ndarray, schedule: Schedule
    ) -> Iterator[Iteration]:
        kinds, own = np.unique(labels, return_inverse=True)
        penalties, ranks = {"F": self.penalties()["W"], "G": Free()}, (len(kinds), len(kinds))
        held = {"G": np.eye(len(kinds))[own]}
        recipe = Recipe(penalties, ranks, fixed=held, intercept=self.model.fit_intercept)
        return problem.sweeps(recipe, schedule)


@documented
class PooledRegressor(RegressorOutputs, DirectModel):
    r"""One ridge regression on the rows of all tasks (the paper's STL).

    .. math:: \min \sum_i ω_i (y_i - x_i^\top w - b)^2 + α \|w\|^2

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import PooledRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 3)), np.repeat([0, 1, 2], 20)
    >>> model = PooledRegressor(alpha=0.1).fit(X, X @ np.ones(3), task=task)
    >>> model.coef_.round(1)
    array([[1., 1., 1.],
           [1., 1., 1.],
           [1., 1., 1.]])
    """

    _algorithm_class = PooledFit


@documented
class PooledClassifier(ClassifierOutputs, DirectModel):
    r"""One logistic regression on the rows of all tasks; see :class:`PooledRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import PooledClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 3)), np.repeat([0, 1, 2], 20)
    >>> PooledClassifier().fit(X, X[:, 0] > 0, task=task).score(X, X[:, 0] > 0, task=task) > 0.9
    True
    """

    _algorithm_class = PooledFit


@documented
class RandomInterceptRegressor(RegressorOutputs, DirectModel):
    r"""Common slopes and an intercept for each task: the random-intercept model.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top w - b - u_{t(i)})^2 + α \|w\|^2 + ρ \sum_t u_t^2

    with ρ, noise over the variance of the intercepts, estimated from the data.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import RandomInterceptRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(300, 3)), np.repeat([0, 1, 2], 100)
    >>> y = X @ np.ones(3) + 5.0 * task + rng.normal(size=300)
    >>> RandomInterceptRegressor().fit(X, y, task=task).intercept_.round() + 0.0
    array([ 0.,  5., 10.])
    """

    _algorithm_class = RandomInterceptFit


@documented
class RandomInterceptClassifier(ClassifierOutputs, DirectModel):
    r"""Common slopes and an intercept for each task; see :class:`RandomInterceptRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import RandomInterceptClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 3)), np.repeat([0, 1, 2], 20)
    >>> y = X[:, 0] + task - 1 > 0
    >>> RandomInterceptClassifier().fit(X, y, task=task).score(X, y, task=task) > 0.9
    True
    """

    _algorithm_class = RandomInterceptFit


class IndependentFit(DirectFit):
    """Weights and an intercept of each task's own."""

    def recipe(self, n_features: int, n_columns: int) -> Recipe:
        return replace(super().recipe(n_features, n_columns), intercept_penalty=LEAST)


class MeanRegularizedFit(DirectFit):
    """A common part, and penalised deviations of slopes and intercepts."""

    path_names = ("alpha_intercept", "alpha_shared")

    def recipe(self, n_features: int, n_columns: int) -> Recipe:
        own = self.model.alpha_intercept
        return replace(
            super().recipe(n_features, n_columns),
            shared=max(float(self.model.alpha_shared), LEAST),
            intercept_penalty=None if own is None else max(float(own), LEAST),
        )


@dataclass(eq=False, repr=False)
class MeanRegularized(TaskModel):
    """Abstract model with a common part and penalised deviations from it."""

    alpha: Alpha = 1.0
    _: KW_ONLY
    alpha_intercept: Annotated[
        float | None,
        require_number,
        Doc(
            "Penalty of the tasks' deviations from the common intercept; None estimates it from "
            "the data."
        ),
    ] = None
    alpha_shared: Annotated[NonNegative, Doc("Penalty of the common part.")] = 1.0
    loss: of.Loss = "auto"
    fit_intercept: of.PlainIntercept = True
    standardize: of.Standardize = "auto"
    max_iter: of.MaxIter = 200
    tol: of.Tol = 1e-6
    random_state: of.RandomState = None

    _algorithm_class = MeanRegularizedFit

    adapt = adapt


@documented
class IndependentRegressor(RegressorOutputs, DirectModel):
    r"""A ridge regression for each task, from its rows (the paper's ITL).

    .. math:: \min \sum_i ω_i (y_i - x_i^\top w_{t(i)} - b_{t(i)})^2 + α \sum_t \|w_t\|^2

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import IndependentRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat([0, 1], 30)
    >>> y = np.where(task == 0, X[:, 0], X[:, 1])
    >>> IndependentRegressor(alpha=1e-6).fit(X, y, task=task).coef_.round(3) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """

    _algorithm_class = IndependentFit


@documented
class IndependentClassifier(ClassifierOutputs, DirectModel):
    r"""A logistic regression for each task, from its rows; see :class:`IndependentRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import IndependentClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat([0, 1], 30)
    >>> y = np.where(task == 0, X[:, 0], -X[:, 0]) > 0
    >>> IndependentClassifier().fit(X, y, task=task).score(X, y, task=task) > 0.9
    True
    """

    _algorithm_class = IndependentFit


@documented
class MeanRegularizedRegressor(RegressorOutputs, MeanRegularized):
    r"""Weights of each task shrunk towards a common part, slopes and intercepts by own penalties.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top (w_0 + v_t) - b - u_t)^2
        + α \sum_t \|v_t\|^2 + α_b \sum_t u_t^2 + α_0 \|w_0\|^2

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import MeanRegularizedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    >>> y = X @ np.ones(2) + 0.1 * rng.normal(size=60)
    >>> MeanRegularizedRegressor(alpha=100.0).fit(X, y, task=task).shared_coef_.round()
    array([1., 1.])
    """


@documented
class MeanRegularizedClassifier(ClassifierOutputs, MeanRegularized):
    r"""Weights of each task shrunk towards a common part; see :class:`MeanRegularizedRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import MeanRegularizedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    >>> y = X[:, 0] > 0
    >>> MeanRegularizedClassifier().fit(X, y, task=task).score(X, y, task=task) > 0.9
    True
    """
