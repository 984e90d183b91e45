"""Two factors without learned relations: plain ridge (FMTL), or sparse task codes (GO-MTL)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..engine.alternation import Schedule
from ..models.coclustering import BiFactor
from ..models.docstrings import documented
from ..models.outputs import ClassifierOutputs, RegressorOutputs
from .direct import close


class PlainFactors(BiFactor):
    """Abstract two-factor model with a ridge on the feature factor."""

    feature_penalty = "ridge"
    shared = False
    alpha_shared = 1.0

    def __init__(
        self,
        n_components: int = 5,
        *,
        alpha_feature: float = 0.1,
        alpha_task: float = 1.0,
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
        self.n_components = n_components
        self.alpha_feature = alpha_feature
        self.alpha_task = alpha_task
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.task_column = task_column
        self.unseen_task = unseen_task
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose


class Factored(PlainFactors):
    """Abstract model with a ridge on both factors."""

    task_penalty = "ridge"


class GroupOverlap(PlainFactors):
    """Abstract model with sparse rows of the task factor."""

    task_penalty = "l1"

    def _schedule(self) -> Schedule:
        return replace(super()._schedule(), inner=close(self.tol))


@documented
class FactoredRegressor(RegressorOutputs, Factored):
    r"""Factored multitask learning (FMTL): ridge on both factors.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top F g_{t(i)} - b_{t(i)})^2
        + λ_1 \|F\|_F^2 + λ_2 \|G\|_F^2

    With enough components this is :math:`2 \sqrt{λ_1 λ_2}` times the trace norm of ``W``.

    Parameters
    ----------
    <bi_ranks>
    <plain_lambdas>
    <plain>

    Attributes
    ----------
    <plain_attributes>
    <factor_attributes>

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
class FactoredClassifier(ClassifierOutputs, Factored):
    r"""Factored multitask learning for classes; see :class:`FactoredRegressor`.

    Parameters
    ----------
    <bi_ranks>
    <plain_lambdas>
    <plain>

    Attributes
    ----------
    <classes>
    <plain_attributes>
    <factor_attributes>

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
class GroupOverlapRegressor(RegressorOutputs, GroupOverlap):
    r"""Group overlap multitask learning (GO-MTL): each task uses a few of the latent features.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top F g_{t(i)} - b_{t(i)})^2
        + λ_1 \|F\|_F^2 + λ_2 \|G\|_1

    Parameters
    ----------
    <bi_ranks>
    <plain_lambdas>
    <plain>

    Attributes
    ----------
    <plain_attributes>
    <factor_attributes>

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


@documented
class GroupOverlapClassifier(ClassifierOutputs, GroupOverlap):
    r"""Group overlap multitask learning for classes; see :class:`GroupOverlapRegressor`.

    Parameters
    ----------
    <bi_ranks>
    <plain_lambdas>
    <plain>

    Attributes
    ----------
    <classes>
    <plain_attributes>
    <factor_attributes>

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
