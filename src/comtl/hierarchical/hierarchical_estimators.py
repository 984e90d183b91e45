"""The hierarchical regressor and classifier."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np
from scipy.stats import norm

from ..arrays import asarray_like, namespace, on_device, with_ones
from ..losses import Logistic, Loss, Squared
from ..models.fields import TaskColumn, UnseenTask, Verbose
from ..models.outputs import ClassifierOutputs
from ..parameters import Doc, documented, one_of
from . import hierarchical_model as of
from .em import EMIteration
from .hierarchical_model import HierarchicalModel
from .intervals_mixin import IntervalMixin, PredictiveVariance
from .likelihoods import Likelihood
from .population import Population


@documented
@dataclass(eq=False, repr=False)
class HierarchicalRegressor(IntervalMixin, HierarchicalModel):
    r"""Tasks as draws from one population that the data reveal; no penalty to choose.

    .. math:: y = x^\top (w_0 + u_t) + b + b_t + e, \quad u_t \sim N(0, B),
        \quad b_t \sim N(0, s^2), \quad e \sim N(0, σ^2)

    The covariance ``B`` of the random slopes, the variance of the random intercepts and that of the
    noise maximise the restricted likelihood (REML): a mixed model with random slopes of every
    feature. Weights are posterior means, and their covariance gives error bars.

    Attributes
    ----------
    noise_variance_ : float or ndarray of shape (n_tasks,)
        Variance of a target about its score.
    intercept_variance_ : float
        Variance of the intercepts between tasks, at the mean of the features.
    slope_covariance_ : ndarray of shape (n_features, n_features)
        Covariance of the slopes between tasks.

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

    structure: of.Structure = "full"
    _: KW_ONLY
    n_components: of.Directions = 2
    prior_weight: of.PriorWeight = None
    shrink_common: of.ShrinkCommon = False
    noise: Annotated[
        str,
        one_of("common", "task"),
        Doc("Whether tasks have one variance of noise, or each its own about a common level."),
    ] = "common"
    standardize: of.Standardize = True
    task_column: TaskColumn = None
    unseen_task: UnseenTask = "mean"
    max_iter: of.MaxIter = 500
    tol: of.Tol = 1e-6
    verbose: Verbose = 0

    def _loss(self) -> Loss:
        return Squared()

    def _likelihood(self, population: Population) -> Likelihood:
        return population.gaussian(heteroscedastic=self.noise == "task")

    def _keep_variances(self, stages: list[EMIteration]) -> None:
        self._spread: PredictiveVariance | None = PredictiveVariance.of(stages[0])

    @property
    def noise_variance_(self) -> float | np.ndarray:
        """Variance of a target about its score; with ``noise="task"`` one for each task."""
        prior, scale = self._priors[0], self._units.target_scale**2
        return scale * (prior.noise if self.noise == "task" else prior.residual_variance)

    @property
    def intercept_variance_(self) -> float:
        """Variance of the intercepts between tasks, at the mean of the features."""
        return float(self._units.target_scale**2 * self._priors[0].covariance.intercept)

    @property
    def slope_covariance_(self) -> np.ndarray:
        """Covariance of the slopes between tasks, (n_features, n_features)."""
        scale = self._units.target_scale * self._units.inverse_scale
        covariance = self._priors[0].covariance.matrix[:-1, :-1]
        covariance = asarray_like(covariance, scale, scale.dtype if on_device(scale) else None)
        return scale[:, None] * covariance * scale

    def _deviations(self, X: Any, codes: np.ndarray | None) -> np.ndarray:
        spread = vars(self).get("_spread")
        if spread is None:
            raise ValueError(
                "A member of a stack keeps no error bars: ask the stack for them, or "
                f"fit {self!r} by itself."
            )
        rows, xp = self._units.design(X), namespace(self._units.shift)
        spread = spread.beside(self._units.shift)
        blocks = [
            spread.variances(
                with_ones(rows.dense_rows(start, stop)),
                None if codes is None else codes[start:stop],
            )
            for start, stop in rows.dense_blocks()
        ]
        return self._units.target_scale * xp.sqrt(xp.concat(blocks, axis=0))

    def _bounds(
        self, X: Any, codes: np.ndarray | None, level: float
    ) -> tuple[np.ndarray, np.ndarray]:
        reach = float(norm.ppf(0.5 + 0.5 * level)) * self._deviations(X, codes)
        return -reach, reach


@documented
@dataclass(eq=False, repr=False)
class HierarchicalClassifier(ClassifierOutputs, HierarchicalModel):
    r"""Tasks as draws from one population, for classes; see :class:`HierarchicalRegressor`.

    The score of a row gives the log odds of its class. The marginal likelihood is bounded from
    below by one that is quadratic in the scores, and the bound is maximised. Beyond two classes
    every class is a separate population.

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

    structure: of.Structure = "full"
    _: KW_ONLY
    n_components: of.Directions = 2
    prior_weight: of.PriorWeight = None
    shrink_common: of.ShrinkCommon = False
    standardize: of.Standardize = True
    task_column: TaskColumn = None
    unseen_task: UnseenTask = "mean"
    max_iter: of.MaxIter = 500
    tol: of.Tol = 1e-6
    verbose: Verbose = 0

    def _loss(self) -> Loss:
        return Logistic()

    def _likelihood(self, population: Population) -> Likelihood:
        return population.bernoulli()
