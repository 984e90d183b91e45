"""One model for all tasks: pooled ridge, and the same with an intercept for each task."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..alternation import Recipe
from ..docstrings import documented
from ..outputs import ClassifierOutputs, RegressorOutputs
from ..penalties import Free
from .whole import WholeModel


class Common(WholeModel):
    """Abstract model whose slopes are the same for every task."""

    _pooling: float | None

    def _recipe(self, n_features: int, n_columns: int) -> Recipe:
        nothing = {"F": np.zeros((n_features, 1)), "G": np.zeros((n_columns, 1))}
        return Recipe(
            {"F": Free(), "G": Free()},
            (1, 1),
            held=nothing,
            shared=self._strength(),
            intercept=self.fit_intercept,
            pooling=self._pooling,
        )


class Pooled(Common):
    """Abstract pooled model: tasks are ignored."""

    _pooling = float("inf")


class RandomIntercept(Common):
    """Abstract model with common slopes and partially pooled intercepts."""

    _pooling: Any = None


@documented
class PooledRegressor(RegressorOutputs, Pooled):
    r"""One ridge regression on the rows of all tasks (the paper's STL).

    .. math:: \min \sum_i ω_i (y_i - x_i^\top w - b)^2 + α \|w\|^2

    Parameters
    ----------
    <alpha>
    <plain>

    Attributes
    ----------
    <plain_attributes>

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


@documented
class PooledClassifier(ClassifierOutputs, Pooled):
    r"""One logistic regression on the rows of all tasks; see :class:`PooledRegressor`.

    Parameters
    ----------
    <alpha>
    <plain>

    Attributes
    ----------
    <classes>
    <plain_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import PooledClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 3)), np.repeat([0, 1, 2], 20)
    >>> PooledClassifier().fit(X, X[:, 0] > 0, task=task).score(X, X[:, 0] > 0, task=task) > 0.9
    True
    """


@documented
class RandomInterceptRegressor(RegressorOutputs, RandomIntercept):
    r"""Common slopes and an intercept for each task: the random-intercept model.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top w - b - u_{t(i)})^2 + α \|w\|^2 + ρ \sum_t u_t^2

    with ρ, noise over the variance of the intercepts, estimated from the data.

    Parameters
    ----------
    <alpha>
    <plain>

    Attributes
    ----------
    <plain_attributes>

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


@documented
class RandomInterceptClassifier(ClassifierOutputs, RandomIntercept):
    r"""Common slopes and an intercept for each task; see :class:`RandomInterceptRegressor`.

    Parameters
    ----------
    <alpha>
    <plain>

    Attributes
    ----------
    <classes>
    <plain_attributes>

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
