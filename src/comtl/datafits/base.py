"""What the alternation asks of the rows, wherever they live."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays import Array, dot
from ..design import Covariance
from ..factors import Factors
from ..losses import Loss


@dataclass(frozen=True)
class TaskQuadratic:
    """Loss as a quadratic of each task's own latent weights and intercept.

    With ``z = xᵀF`` the score of a row is ``z·a_t + b_t``. ``hessian`` (T, k+1, k+1) and
    ``gradient`` (T, k+1) are those of the loss by ``(a_t, b_t)``, ``value`` is the loss.
    """

    hessian: Array
    gradient: Array
    value: float

    def moved(self, step: Array) -> TaskQuadratic:
        """Return the same quadratic about the point moved by ``step`` (T, k+1)."""
        gradient = self.gradient + (self.hessian @ step[:, :, None])[:, :, 0]
        # The mean slope over the way, so that what cancels does so in one product.
        value = self.value + 0.5 * dot(self.gradient + gradient, step)
        return TaskQuadratic(self.hessian, gradient, value)


class Expansion(ABC):
    """Local quadratic model of the loss at a point; exact for quadratic losses."""

    @property
    @abstractmethod
    def value(self) -> float:
        """The loss."""

    def value_with(self, mixing: Array) -> float:
        """Loss where :meth:`gradient` is likely to be asked for next, with the same mixing."""
        return self.value

    @property
    @abstractmethod
    def curvature_sums(self) -> Array:
        """Second derivative by the intercept of each task, ``(T,)``."""

    @abstractmethod
    def gradient(self, mixing: Array) -> tuple[Array, Array]:
        """Gradient by ``Q`` (P, k) of scores ``xᵀQ m_t + b_t``, and by ``b`` (T,)."""

    @abstractmethod
    def normal(self, step: Array, mixing: Array, intercepts: Array) -> tuple[Array, Array]:
        """Hessian of the same unknowns applied to a step."""

    @abstractmethod
    def task_gradient(self, features: Array) -> Array:
        """Gradient by ``a_t`` (T, k) of scores ``xᵀ F a_t``."""

    @abstractmethod
    def task_quadratic(self, features: Array) -> TaskQuadratic:
        """Return the loss as a quadratic of ``(a_t, b_t)``."""


class Datafit(ABC):
    """Loss of all rows as a function of the factors."""

    loss: Loss
    n_features: int
    n_tasks: int
    n_weighted: float
    same_design: bool = False

    @property
    @abstractmethod
    def name(self) -> str:
        """Where the rows live, for ``solver_``."""

    @property
    @abstractmethod
    def covariance(self) -> Covariance:
        """Pooled second moments of the features, for the preconditioner."""

    @abstractmethod
    def expand(self, point: Factors) -> Expansion:
        """Return the local quadratic model at a point."""

    @abstractmethod
    def merged(self, labels: np.ndarray, count: int) -> Datafit:
        """Return the same cells with the tasks of a label taken as one.

        There are ``count`` labels, and each has a task.
        """

    @abstractmethod
    def losses(self, weights: Array, intercepts: Array) -> Array:
        """Loss of each task under each of m models, ``(T, m)``.

        ``weights`` (m, P) and ``intercepts`` (m,) hold the models.
        """

    @abstractmethod
    def line(self, start: Factors, stop: Factors) -> Callable[[float], float]:
        """Return the loss along the segment between two points that differ in one block."""
