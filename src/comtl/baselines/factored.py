"""Two factors without learned relations: plain ridge (FMTL), or sparse task codes (GO-MTL)."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated

from ..engine.recipe import Schedule
from ..models import fields as of
from ..models.factor_model import FactorFit, adapt
from ..models.outputs import ClassifierOutputs, RegressorOutputs
from ..models.task_model import TaskModel
from ..parameters import Doc, NonNegative, documented
from ..penalties import L1, Penalty, Ridge
from .direct import close


class FactoredFit(FactorFit):
    """A ridge on both factors."""

    rank_names = ("n_components",)
    path_names, alpha_name = ("alpha_feature",), "alpha_task"
    task_penalty: type[Penalty] = Ridge

    def penalties(self) -> dict[str, Penalty]:
        task = self.task_penalty.of_strength(self.model.alpha_task)
        return {"F": Ridge.of_strength(self.model.alpha_feature), "G": task}


class GroupOverlapFit(FactoredFit):
    """Sparse rows of the task factor."""

    task_penalty = L1

    def schedule(self) -> Schedule:
        return replace(super().schedule(), inner=close(self.model.tol))


@dataclass(eq=False, repr=False)
class PlainFactors(TaskModel):
    """Abstract two-factor model with a ridge on the feature factor."""

    n_components: of.Components = 5
    _: KW_ONLY
    alpha_feature: of.AlphaFeature = 0.1
    alpha_task: Annotated[NonNegative, Doc("λ2, the penalty of the task factor.")] = 1.0
    loss: of.Loss = "auto"
    fit_intercept: of.PlainIntercept = True
    standardize: of.Standardize = "auto"
    max_iter: of.MaxIter = 500
    tol: of.Tol = 1e-5
    random_state: of.RandomState = None

    _algorithm_class = FactoredFit

    adapt = adapt

    @property
    def n_components_(self) -> int:
        """Columns of the factors after capping at ``min(P, T)``."""
        return int(self.feature_factor_.shape[1])


@documented
class FactoredRegressor(RegressorOutputs, PlainFactors):
    r"""Factored multitask learning (FMTL): ridge on both factors.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top F g_{t(i)} - b_{t(i)})^2
        + λ_1 \|F\|_F^2 + λ_2 \|G\|_F^2

    With enough components this is :math:`2 \sqrt{λ_1 λ_2}` times the trace norm of ``W``.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import FactoredRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(200, 5)), np.repeat(np.arange(10), 20)
    >>> W = rng.normal(size=(5, 1)) @ rng.normal(size=(1, 10))
    >>> y = (X * W.T[task]).sum(axis=1)
    >>> FactoredRegressor(1).fit(X, y, task=task).score(X, y, task=task) > 0.99
    True
    """


@documented
class FactoredClassifier(ClassifierOutputs, PlainFactors):
    r"""Factored multitask learning for classes; see :class:`FactoredRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import FactoredClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    >>> y = X[:, 0] > 0
    >>> FactoredClassifier(1).fit(X, y, task=task).score(X, y, task=task) > 0.9
    True
    """


@documented
class GroupOverlapRegressor(RegressorOutputs, PlainFactors):
    r"""Group overlap multitask learning (GO-MTL): each task uses a few of the latent features.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top F g_{t(i)} - b_{t(i)})^2
        + λ_1 \|F\|_F^2 + λ_2 \|G\|_1

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import GroupOverlapRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(200, 5)), np.repeat(np.arange(10), 20)
    >>> W = rng.normal(size=(5, 1)) @ rng.normal(size=(1, 10))
    >>> y = (X * W.T[task]).sum(axis=1)
    >>> GroupOverlapRegressor(1).fit(X, y, task=task).score(X, y, task=task) > 0.99
    True
    """

    _algorithm_class = GroupOverlapFit


@documented
class GroupOverlapClassifier(ClassifierOutputs, PlainFactors):
    r"""Group overlap multitask learning for classes; see :class:`GroupOverlapRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import GroupOverlapClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    >>> y = X[:, 0] > 0
    >>> GroupOverlapClassifier(1).fit(X, y, task=task).score(X, y, task=task) > 0.9
    True
    """

    _algorithm_class = GroupOverlapFit
