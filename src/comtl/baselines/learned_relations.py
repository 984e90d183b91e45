"""Weights bound together by a learned relation: the trace norm of ``W``, alone or with ridge."""

from __future__ import annotations

from typing import Any

from ..engine.alternation import Recipe
from ..models.docstrings import documented
from ..models.outputs import ClassifierOutputs, RegressorOutputs
from ..parameters import require_number
from ..penalties import LEAST
from ..penalties.learned_relation import LearnedRelation, RidgedRelation
from .direct import DirectModel, direct_recipe


class FeatureLearning(DirectModel):
    """Abstract model with a squared trace norm on the weights."""

    smoothing = 1e-7
    _exact = False

    def _recipe(self, n_features: int, n_columns: int) -> Recipe:
        penalty = LearnedRelation(self._strength())
        return direct_recipe((n_features, n_columns), penalty, intercept=self.fit_intercept)


class RelationLearning(DirectModel):
    """Abstract model with a learned task relation and a ridge on the weights."""

    smoothing = 1e-7
    _exact = False

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        alpha_task: float = 1.0,
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
        self.alpha_task = alpha_task

    def _check_parameters(self) -> None:
        require_number("alpha_task", self.alpha_task)
        super()._check_parameters()

    def _recipe(self, n_features: int, n_columns: int) -> Recipe:
        penalty = RidgedRelation(max(float(self.alpha_task), LEAST), ridge=float(self.alpha))
        return direct_recipe((n_features, n_columns), penalty, intercept=self.fit_intercept)

    def _place(self) -> tuple[tuple[Any, ...], float]:
        return (float(self.alpha),), float(self.alpha_task)


@documented
class FeatureLearningRegressor(RegressorOutputs, FeatureLearning):
    r"""Multitask feature learning (MTFL): the squared trace norm of the weights.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top w_{t(i)} - b_{t(i)})^2
        + α\,\mathrm{tr}(W^\top Σ^{-1} W), \quad \mathrm{tr}\,Σ = 1

    over ``W`` and Σ, which comes to :math:`α \|W\|_*^2`. The problem is convex; Σ is smoothed by
    1e-7 of the largest singular value squared (see benchmarks/bench_trace_norm.md).

    Parameters
    ----------
    <alpha>
    <plain>

    Attributes
    ----------
    <plain_attributes>
    <relation_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import FeatureLearningRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(200, 5)), np.repeat(np.arange(10), 20)
    >>> W = rng.normal(size=(5, 1)) @ rng.normal(size=(1, 10))
    >>> y = (X * W.T[task]).sum(axis=1)
    >>> model = FeatureLearningRegressor(alpha=0.01).fit(X, y, task=task)
    >>> model.score(X, y, task=task) > 0.99
    True
    """


@documented
class FeatureLearningClassifier(ClassifierOutputs, FeatureLearning):
    r"""Multitask feature learning for classes; see :class:`FeatureLearningRegressor`.

    Parameters
    ----------
    <alpha>
    <plain>

    Attributes
    ----------
    <classes>
    <plain_attributes>
    <relation_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import FeatureLearningClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    >>> y = X[:, 0] > 0
    >>> FeatureLearningClassifier(alpha=0.1).fit(X, y, task=task).score(X, y, task=task) > 0.9
    True
    """


@documented
class RelationLearningRegressor(RegressorOutputs, RelationLearning):
    r"""Multitask relationship learning (MTRL, Zhang and Yeung): a learned task relation.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top w_{t(i)} - b_{t(i)})^2
        + α \|W\|_F^2 + λ_2\,\mathrm{tr}(W Ω^{-1} W^\top), \quad \mathrm{tr}\,Ω = 1

    Without the ridge it is the same function of ``W`` as :class:`FeatureLearningRegressor`.

    Parameters
    ----------
    <alpha>
    alpha_task : float, default=1.0
        λ2, the penalty through the task relation Ω.
    <plain>

    Attributes
    ----------
    <plain_attributes>
    <relation_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import RelationLearningRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(400, 5)), np.repeat(np.arange(10), 40)
    >>> w, sign = rng.normal(size=5), np.where(np.arange(10) < 5, 1.0, -1.0)
    >>> y = sign[task] * (X @ w) + rng.normal(size=400)
    >>> model = RelationLearningRegressor().fit(X, y, task=task)
    >>> bool(model.task_relation_.toarray()[0, 9] < 0.0 < model.task_relation_.toarray()[0, 1])
    True
    """


@documented
class RelationLearningClassifier(ClassifierOutputs, RelationLearning):
    r"""Multitask relationship learning for classes; see :class:`RelationLearningRegressor`.

    Parameters
    ----------
    <alpha>
    alpha_task : float, default=1.0
        λ2, the penalty through the task relation Ω.
    <plain>

    Attributes
    ----------
    <classes>
    <plain_attributes>
    <relation_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import RelationLearningClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    >>> y = X[:, 0] > 0
    >>> RelationLearningClassifier(0.1).fit(X, y, task=task).score(X, y, task=task) > 0.9
    True
    """
