"""What the alternation asks of the rows, wherever they live."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, namespace
from ..arrays.algebra import matrix_dot, with_corner
from ..factors import Factors
from ..losses import Loss
from ..rows.design import Covariance

_TASKS = 4096
"""Tasks summed up at a time."""


def by_factors(hessian: Array, gradient: Array, left: Array | None) -> tuple[Array, Array]:
    """Hessians and gradients by ``(g_t, b_t)`` from those by weights ``left @ g_t``."""
    if left is None:
        return hessian, gradient
    lift = with_corner(left)
    wide = lift[..., None, :, :]
    return wide.mT @ (hessian @ wide), gradient @ lift


@dataclass(frozen=True)
class TaskQuadratic:
    """Loss as a quadratic of ``(a_t, b_t)``, where ``xᵀF·a_t + b_t`` is the score of a row.

    A leading axis may hold many fits.
    """

    hessian: Array  # (T, k+1, k+1)
    gradient: Array  # (T, k+1)
    value: Any

    @property
    def slopes(self) -> Array:
        return self.gradient[..., -1]

    @property
    def curvatures(self) -> Array:
        return self.hessian[..., -1, -1]

    def system(self, core: Array | None, ridge: Array, slope: Array) -> tuple[Array, Array]:
        """Blocks and right side of the Newton step of ``(g_t, b_t)``, of as many as ``ridge`` has.

        The latent weights are ``S g_t`` with a core. ``slope`` is the gradient of their penalty.
        """
        hessian, gradient = by_factors(self.hessian, self.gradient, core)
        size = ridge.shape[-1]
        return hessian[..., :size, :size], -(gradient[..., :size] + slope)

    def core_sums(self, G: Array, rows: int) -> tuple[Array, Array]:
        """Hessian (K1², K2²) and gradient (K1, K2) by a core of K1 = ``rows`` rows."""
        xp = namespace(G)
        *many, tasks, width = G.shape
        matrix = xp.zeros((*many, rows * rows, width * width), dtype=G.dtype)
        for first in range(0, tasks, _TASKS):
            last = min(first + _TASKS, tasks)
            part, blocks = G[..., first:last, :], self.hessian[..., first:last, :rows, :rows]
            pairs = part[..., :, None] * part[..., None, :]
            pairs = xp.reshape(pairs, (*many, last - first, width * width))
            blocks = xp.reshape(blocks, (*many, last - first, rows * rows))
            matrix = matrix + blocks.mT @ pairs
        return matrix, self.gradient[..., :rows].mT @ G

    def translated(self, step: Array) -> TaskQuadratic:
        """Return the same quadratic about the point moved by ``step`` (T, k+1)."""
        gradient = self.gradient + (self.hessian @ step[..., None])[..., 0]
        # The mean slope over the way, so that what cancels does so in one product.
        value = self.value + 0.5 * matrix_dot(self.gradient + gradient, step)
        return TaskQuadratic(self.hessian, gradient, value)


RowSolve = Callable[[Array, Array, Array], tuple[Array, Array, Array]]
"""Maps ``(P, k)``, ``(T,)`` and one number to the like."""


@dataclass(frozen=True)
class FeaturePenalty:
    """What the feature step adds to the Hessian of the loss; infinite for what is not fitted."""

    alpha: float
    low_rank: Array  # αI - NNᵀ for every column of F
    shared: float  # for a last column that all tasks share
    level: float  # for the intercept of each task
    offset: bool  # whether there is a common intercept, which has no penalty


class LocalQuadratic(ABC):
    """Local quadratic model of the loss at a point; exact for quadratic losses."""

    @property
    @abstractmethod
    def value(self) -> float:
        """The loss."""

    def value_with(self, loadings: Array) -> float:
        """Loss, made together with the :meth:`gradient` that is likely to be asked for next."""
        return self.value

    @property
    @abstractmethod
    def curvature_sums(self) -> Array:
        """Second derivative by the intercept of each task, ``(T,)``."""

    @abstractmethod
    def gradient(self, loadings: Array) -> tuple[Array, Array]:
        """Gradient by ``Q`` (P, k) of scores ``xᵀQ m_t + b_t``, and by ``b`` (T,)."""

    @abstractmethod
    def normal(self, step: Array, loadings: Array, intercepts: Array) -> tuple[Array, Array]:
        """Hessian of the same unknowns applied to a step."""

    def dual_ridge(
        self, loadings: Array, penalty: FeaturePenalty, passes: float
    ) -> RowSolve | None:
        """Penalised inverse Hessian by all unknowns; None if dearer than ``passes`` over X."""
        return None

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

    @property
    def start_scores(self) -> tuple[float, Array] | None:
        """Intercepts to start from, one for all and one for each task; None: start at zero."""
        return None

    @abstractmethod
    def quadratic_at(self, point: Factors) -> LocalQuadratic:
        """Return the local quadratic model at a point."""

    @abstractmethod
    def with_tasks_pooled(self, labels: np.ndarray, count: int) -> Datafit:
        """The same observations with the tasks of each of ``count`` labels as one task."""

    @abstractmethod
    def losses(self, weights: Array, intercepts: Array) -> Array:
        """Loss of each task under models with weights (m, P) and intercepts (m,), ``(T, m)``."""

    @abstractmethod
    def along_segment(self, start: Factors, stop: Factors) -> Callable[[float], float]:
        """Return the loss along the segment between two points that differ in one block."""
