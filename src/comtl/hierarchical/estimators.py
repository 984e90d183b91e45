"""The hierarchical regressor and classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from ..arrays import with_ones
from ..docstrings import documented
from ..losses import Logistic, Loss, Squared
from ..outputs import ClassifierOutputs, RegressorOutputs
from ..parameters import require_choice, require_level
from .likelihoods import Likelihood
from .model import HierarchicalModel
from .population import Population
from .uncertainty import score_variances


@documented
class HierarchicalRegressor(RegressorOutputs, HierarchicalModel):
    r"""Tasks as draws from one population that the data reveal; no penalty to choose.

    .. math:: y = x^\top (w_0 + u_t) + b + b_t + e, \quad u_t \sim N(0, B),
        \quad b_t \sim N(0, s^2), \quad e \sim N(0, σ^2)

    The covariance ``B`` of what a task has of its own, the variance of the intercepts and the
    noise maximise the evidence (restricted likelihood): a mixed model with random slopes of every
    feature. Weights are posterior means, and their covariance gives error bars.

    Parameters
    ----------
    <hierarchical>
    noise : {"common", "task"}, default="common"
        Whether tasks have one variance of noise, or each its own about a common level.
    <hierarchical_common>

    Attributes
    ----------
    <hierarchical_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import HierarchicalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(300, 3)), np.repeat(np.arange(20), 15)
    >>> y = X[:, 0] + rng.normal(size=20)[task] + rng.normal(size=300)
    >>> model = HierarchicalRegressor("isotropic").fit(X, y, task=task)
    >>> bool(np.abs(model.shared_coef_ - [1.0, 0.0, 0.0]).max() < 0.2)
    True
    """

    def __init__(
        self,
        structure: str = "full",
        *,
        n_components: int = 2,
        prior_weight: float | None = None,
        noise: str = "common",
        standardize: bool = True,
        task_column: str | int | None = None,
        unseen_task: str = "mean",
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.structure = structure
        self.n_components = n_components
        self.prior_weight = prior_weight
        self.noise = noise
        self.standardize = standardize
        self.task_column = task_column
        self.unseen_task = unseen_task
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("noise", self.noise, ("common", "task"))

    def _loss(self) -> Loss:
        return Squared()

    def _likelihood(self, population: Population) -> Likelihood:
        return population.gaussian(own_noise=self.noise == "task")

    def predict(self, X: Any, task: Any = None, return_std: bool = False) -> Any:
        """Predict the target of each row for its task.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.
        task : array-like of shape (n_samples,), optional
            Task of each row, where it is no column of X.
        return_std : bool, default=False
            Whether to return the standard deviation of a new target as well: what is unknown of
            the weights, plus the noise.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_tasks), or two of them
            Predictions, and their standard deviations if asked for.
        """
        guess = super().predict(X, task)
        return (guess, self._deviations(X, task)) if return_std else guess

    def predict_interval(
        self, X: Any, level: float = 0.9, task: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bounds between which a new target lies with probability ``level``.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.
        level : float, default=0.9
            Probability, between 0 and 1.
        task : array-like of shape (n_samples,), optional
            Task of each row, where it is no column of X.

        Returns
        -------
        lower, upper : ndarrays of shape (n_samples,) or (n_samples, n_tasks)
            The bounds.
        """
        level = require_level("level", level)
        guess, deviation = self.predict(X, task, return_std=True)
        reach = norm.ppf(0.5 + 0.5 * level) * deviation
        return guess - reach, guess + reach

    def _deviations(self, X: Any, task: Any) -> np.ndarray:
        X, codes = self._read_codes(X, task)
        stage = self._stages[0]
        rows = self._units.design(X)
        blocks = [
            score_variances(
                with_ones(rows.dense_rows(start, stop)),
                None if codes is None else codes[start:stop],
                stage,
            )
            for start, stop in rows.dense_blocks()
        ]
        return self._units.target_scale * np.sqrt(np.concatenate(blocks))


@documented
class HierarchicalClassifier(ClassifierOutputs, HierarchicalModel):
    r"""Tasks as draws from one population, for classes; see :class:`HierarchicalRegressor`.

    The score of a row gives the log odds of its class. The evidence is bounded from below by one
    that is quadratic in the scores, and the bound is maximised. Beyond two classes every class has
    a population of its own.

    Parameters
    ----------
    <hierarchical>
    <hierarchical_common>

    Attributes
    ----------
    <classes>
    <hierarchical_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import HierarchicalClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(300, 3)), np.repeat(np.arange(20), 15)
    >>> y = X[:, 0] + rng.normal(size=20)[task] + rng.normal(size=300) > 0
    >>> HierarchicalClassifier("isotropic").fit(X, y, task=task).score(X, y, task=task) > 0.7
    True
    """

    def __init__(
        self,
        structure: str = "full",
        *,
        n_components: int = 2,
        prior_weight: float | None = None,
        standardize: bool = True,
        task_column: str | int | None = None,
        unseen_task: str = "mean",
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.structure = structure
        self.n_components = n_components
        self.prior_weight = prior_weight
        self.standardize = standardize
        self.task_column = task_column
        self.unseen_task = unseen_task
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _loss(self) -> Loss:
        return Logistic()

    def _likelihood(self, population: Population) -> Likelihood:
        return population.bernoulli()
