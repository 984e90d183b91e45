"""Rows of many fits as Grams, one set for each fit, and the loss as a function of the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Array, namespace, with_corner
from ..datafits.gram import GramDatafit
from ..factors import Factors


@dataclass(frozen=True)
class Cells:
    """Sufficient statistics of squared loss for B fits to T tasks each.

    Parameters
    ----------
    gram, moment : arrays of shapes (B, T, P + 1, P + 1) and (B, T, P + 1)
        Those of :class:`~comtl.datafits.gram.GramDatafit`.
    energy, weight : arrays of shape (B,)
        Weighted sum of the squared targets, and of the weights.
    basis, spread : arrays of shapes (B, P, P) and (B, P)
        Eigenvectors and eigenvalues of the pooled covariance.
    """

    gram: Array
    moment: Array
    energy: Array
    weight: Array
    basis: Array
    spread: Array

    @classmethod
    def of(cls, datafits: Sequence[GramDatafit], fold: np.ndarray) -> Cells:
        """Rows of each fit: those of the data numbered by ``fold``, all of one shape."""
        like = datafits[0].gram
        xp = namespace(like)
        places = xp.asarray(fold)

        def each(values: list[Array]) -> Array:
            return xp.take(xp.stack(values), places, axis=0)

        def numbers(values: list[float]) -> Array:
            return xp.asarray(np.array(values)[fold], dtype=like.dtype)

        return cls(
            each([fit.gram for fit in datafits]),
            each([fit.moment for fit in datafits]),
            numbers([fit.total_energy for fit in datafits]),
            numbers([fit.n_weighted for fit in datafits]),
            each([fit.covariance.basis for fit in datafits]),
            each([fit.covariance.values for fit in datafits]),
        )

    @cached_property
    def sums(self) -> Array:
        """Second derivative of the loss by the intercept of each task, (B, T)."""
        return 2.0 * self.gram[..., -1, -1]

    def product(self, weights: Array) -> Array:
        """Each task's Gram times its own vector, (B, T, P + 1)."""
        return (self.gram @ weights[..., None])[..., 0]

    def expand(self, point: Factors) -> tuple[Array, Array]:
        """Gradient of the loss by the weights of each task, (B, T, P + 1), and the loss (B,)."""
        xp = namespace(self.gram)
        weights = weights_of(point)
        push = self.product(weights)
        value = self.energy + xp.sum(weights * (push - 2.0 * self.moment), axis=(1, 2))
        return 2.0 * (push - self.moment), value

    def quadratic(self, slope: Array, value: Array, features: Array) -> Quadratics:
        """Loss by the latent weights and intercept of each task, about a point."""
        xp = namespace(features)
        lifted = with_corner(features)
        fits, tasks, rows, _ = self.gram.shape
        columns = lifted.shape[2]
        # All tasks of a fit in one product each time.
        seen = xp.reshape(self.gram, (fits, tasks * rows, rows)) @ lifted
        seen = xp.reshape(seen, (fits, tasks, rows, columns)).mT
        hessian = 2.0 * xp.reshape(seen, (fits, tasks * columns, rows)) @ lifted
        return Quadratics(
            xp.reshape(hessian, (fits, tasks, columns, columns)), slope @ lifted, value
        )


@dataclass(frozen=True)
class Quadratics:
    """Loss of many fits by each task's latent weights and intercept.

    Parameters
    ----------
    hessian, gradient : arrays of shapes (B, T, K + 1, K + 1) and (B, T, K + 1)
        By latent weights and intercept.
    value : array of shape (B,)
        The losses.
    """

    hessian: Array
    gradient: Array
    value: Array

    def moved(self, old: Factors, new: Factors) -> Quadratics:
        """Return the same quadratics about a new point with the same ``F``."""
        xp = namespace(self.value)
        change = (new.intercepts - old.intercepts)[..., None]
        step = xp.concat([new.mixing - old.mixing, change], axis=-1)
        gradient = self.gradient + (self.hessian @ step[..., None])[..., 0]
        # The mean slope over the way, so that what cancels does so in one product.
        value = self.value + 0.5 * xp.sum((self.gradient + gradient) * step, axis=(1, 2))
        return Quadratics(self.hessian, gradient, value)


def weights_of(point: Factors) -> Array:
    """Weights of all tasks with their intercepts, (B, T, P + 1)."""
    xp = namespace(point.F)
    weights = point.mixing @ point.F.mT + point.shared[:, None, :]
    return xp.concat([weights, point.intercepts[..., None]], axis=-1)
