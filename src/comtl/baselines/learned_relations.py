"""Weights bound together by a learned relation: the trace norm of ``W``, alone or with ridge."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated

from ..models import fields as of
from ..models.factor_model import adapt
from ..models.outputs import ClassifierOutputs, RegressorOutputs
from ..models.task_model import TaskModel
from ..parameters import Doc, NonNegative, documented
from ..penalties import Penalty
from ..penalties.learned_relation import LearnedRelation, RidgedRelation
from .direct import Alpha, DirectFit, DirectModel


class FeatureLearningFit(DirectFit):
    """A squared trace norm on the weights."""

    smoothing = 1e-7
    exact = False

    def penalties(self) -> dict[str, Penalty]:
        return {"W": LearnedRelation.of_strength(self.model.alpha)}


class RelationLearningFit(FeatureLearningFit):
    """A learned task relation and a ridge on the weights."""

    path_names, alpha_name = ("alpha",), "alpha_task"

    def penalties(self) -> dict[str, Penalty]:
        relation = RidgedRelation.of_strength(self.model.alpha_task)
        return {"W": replace(relation, ridge=float(self.model.alpha))}


@dataclass(eq=False, repr=False)
class RelationLearning(TaskModel):
    """Abstract model with a learned task relation and a ridge on the weights."""

    alpha: Alpha = 1.0
    _: KW_ONLY
    alpha_task: Annotated[NonNegative, Doc("λ2, the penalty through the task relation Ω.")] = 1.0
    loss: of.Loss = "auto"
    fit_intercept: of.PlainIntercept = True
    standardize: of.Standardize = "auto"
    max_iter: of.MaxIter = 200
    tol: of.Tol = 1e-6
    random_state: of.RandomState = None

    _algorithm_class = RelationLearningFit

    adapt = adapt


@documented
class FeatureLearningRegressor(RegressorOutputs, DirectModel):
    r"""Multitask feature learning (MTFL): the squared trace norm of the weights.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top w_{t(i)} - b_{t(i)})^2
        + α\,\mathrm{tr}(W^\top Σ^{-1} W), \quad \mathrm{tr}\,Σ = 1

    over ``W`` and Σ, which comes to :math:`α \|W\|_*^2`. The problem is convex; Σ is smoothed by
    1e-7 of the largest singular value squared (see benchmarks/bench_trace_norm.md).

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

    _algorithm_class = FeatureLearningFit


@documented
class FeatureLearningClassifier(ClassifierOutputs, DirectModel):
    r"""Multitask feature learning for classes; see :class:`FeatureLearningRegressor`.

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

    _algorithm_class = FeatureLearningFit


@documented
class RelationLearningRegressor(RegressorOutputs, RelationLearning):
    r"""Multitask relationship learning (MTRL, Zhang and Yeung): a learned task relation.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top w_{t(i)} - b_{t(i)})^2
        + α \|W\|_F^2 + λ_2\,\mathrm{tr}(W Ω^{-1} W^\top), \quad \mathrm{tr}\,Ω = 1

    Without the ridge it is the same function of ``W`` as :class:`FeatureLearningRegressor`.

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
