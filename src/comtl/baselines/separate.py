"""A model for each task: on its own, or drawn towards a common part."""

from __future__ import annotations

from typing import Any

from ..engine.alternation import Recipe
from ..models.docstrings import documented
from ..models.outputs import ClassifierOutputs, RegressorOutputs
from ..parameters import require_number
from ..penalties import LEAST, Ridge
from .direct import DirectModel, direct_recipe


class Independent(DirectModel):
    """Abstract model with weights and an intercept of each task's own."""

    def _recipe(self, n_features: int, n_columns: int) -> Recipe:
        parts = {"intercept": self.fit_intercept, "intercept_penalty": LEAST}
        return direct_recipe((n_features, n_columns), Ridge(self._strength()), **parts)


class MeanRegularized(DirectModel):
    """Abstract model with a common part and penalised deviations of slopes and intercepts."""

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        alpha_intercept: float | None = None,
        alpha_shared: float = 1.0,
        loss: str = "auto",
        fit_intercept: bool = True,
        standardize: bool = True,
        task_column: str | int | None = None,
        unseen_task: str = "mean",
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            alpha,
            loss=loss,
            fit_intercept=fit_intercept,
            standardize=standardize,
            task_column=task_column,
            unseen_task=unseen_task,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
            verbose=verbose,
        )
        self.alpha_intercept = alpha_intercept
        self.alpha_shared = alpha_shared

    def _check_parameters(self) -> None:
        require_number("alpha_shared", self.alpha_shared)
        if self.alpha_intercept is not None:
            require_number("alpha_intercept", self.alpha_intercept)
        super()._check_parameters()

    def _recipe(self, n_features: int, n_columns: int) -> Recipe:
        own = self.alpha_intercept
        return direct_recipe(
            (n_features, n_columns),
            Ridge(self._strength()),
            shared=max(float(self.alpha_shared), LEAST),
            intercept=self.fit_intercept,
            intercept_penalty=None if own is None else max(float(own), LEAST),
        )

    def _place(self) -> tuple[tuple[Any, ...], float]:
        own = -1.0 if self.alpha_intercept is None else float(self.alpha_intercept)
        return (own, float(self.alpha_shared)), float(self.alpha)


@documented
class IndependentRegressor(RegressorOutputs, Independent):
    r"""A ridge regression for each task on its own rows (the paper's ITL).

    .. math:: \min \sum_i ω_i (y_i - x_i^\top w_{t(i)} - b_{t(i)})^2 + α \sum_t \|w_t\|^2

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
    >>> from comtl.baselines import IndependentRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat([0, 1], 30)
    >>> y = np.where(task == 0, X[:, 0], X[:, 1])
    >>> IndependentRegressor(alpha=1e-6).fit(X, y, task=task).coef_.round(3) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """


@documented
class IndependentClassifier(ClassifierOutputs, Independent):
    r"""A logistic regression for each task on its own rows; see :class:`IndependentRegressor`.

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
    >>> from comtl.baselines import IndependentClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat([0, 1], 30)
    >>> y = np.where(task == 0, X[:, 0], -X[:, 0]) > 0
    >>> IndependentClassifier().fit(X, y, task=task).score(X, y, task=task) > 0.9
    True
    """


@documented
class MeanRegularizedRegressor(RegressorOutputs, MeanRegularized):
    r"""Weights of each task drawn towards a common part, slopes and intercepts by own penalties.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top (w_0 + v_t) - b - u_t)^2
        + α \sum_t \|v_t\|^2 + α_b \sum_t u_t^2 + α_0 \|w_0\|^2

    Parameters
    ----------
    <alpha>
    <mean>
    <plain>

    Attributes
    ----------
    <plain_attributes>

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
    r"""Weights of each task drawn towards a common part; see :class:`MeanRegularizedRegressor`.

    Parameters
    ----------
    <alpha>
    <mean>
    <plain>

    Attributes
    ----------
    <classes>
    <plain_attributes>

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
