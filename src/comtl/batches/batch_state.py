"""State of many fits, the Grams of their rows, and which solver serves which fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Array, namespace
from ..arrays.algebra import with_corner
from ..datafits.gram_datafit import GramDatafit
from ..engine.feature_step import DENSE_UNKNOWNS
from ..engine.task_steps import WOODBURY_WIDTH
from ..factors import Factors
from .batch_penalties import Relations, Ridges, spectra


@dataclass(frozen=True)
class Fits:
    """Factors of B fits, padded to one width by columns of zeros, and their penalties."""

    factors: Factors  # F is (B, P, K) and so on, the offset (B, 1)
    penalties: dict[str, Any]
    inside: Array  # (B, K): one for a column of a fit, zero for padding
    shared: Array | None  # (B,)
    intercept_penalty: Array  # (B,)
    intercept: bool
    estimates_pooling: bool

    @cached_property
    def has_random_intercepts(self) -> Array:
        penalty = self.intercept_penalty
        return penalty < float("inf") if self.intercept else penalty < 0.0

    @cached_property
    def double(self) -> Array:
        """Curvature of the penalty of the deviations; one where there are none."""
        penalty = self.intercept_penalty
        xp = namespace(penalty)
        return xp.where(self.has_random_intercepts, 2.0 * penalty, xp.ones_like(penalty))

    @cached_property
    def member(self) -> Array:
        """One for fits whose tasks have intercepts of their own, zero for the others."""
        penalty = self.intercept_penalty
        return namespace(penalty).astype(self.has_random_intercepts, penalty.dtype)

    @cached_property
    def factor_penalty(self) -> Array:
        return sum(p.value(getattr(self.factors, name)) for name, p in self.penalties.items())

    @property
    def regularizer(self) -> Array:
        xp = namespace(self.intercept_penalty)
        point, total = self.factors, self.factor_penalty
        if self.shared is not None:
            total = total + self.shared * xp.sum(point.shared**2, axis=1)
        # Deviations are zero where there are none.
        return total + 0.5 * self.double * xp.sum(point.random_intercepts**2, axis=1)

    @property
    def learned(self) -> list[Relations]:
        return [p for p in self.penalties.values() if not isinstance(p, Ridges)]

    @property
    def floor(self) -> Array:
        return sum(p.floor for p in self.learned)

    @property
    def is_annealed(self) -> Array:
        one, other = (p.is_annealed for p in self.learned)
        return one & other

    def at(self, **changes: Array) -> Fits:
        return replace(self, factors=replace(self.factors, **changes))

    def penalized(self, **changes: Any) -> Fits:
        return replace(self, penalties={**self.penalties, **changes})

    @property
    def updated(self) -> Fits:
        """The fits with the relations of both factors brought up to date."""
        F, G, count = self.factors.F, self.factors.G, self.intercept_penalty.shape[0]
        # One decomposition for both, since its time hardly grows with their number.
        products = namespace(F).concat([F.mT @ F, G.mT @ G], axis=0)
        squares, turn = spectra(products)
        return self.penalized(
            F=self.penalties["F"].of(squares[:count, ...], turn[:count, ...]),
            G=self.penalties["G"].of(squares[count:, ...], turn[count:, ...]),
        )


@dataclass(frozen=True)
class BatchGrams:
    """Sufficient statistics of squared loss for B fits to T tasks each."""

    gram: Array  # (B, T, P + 1, P + 1), as in GramDatafit
    moment: Array  # (B, T, P + 1)
    energy: Array  # (B,): weighted sum of squared targets
    weight: Array  # (B,)
    basis: Array  # (B, P, P): eigenvectors of the pooled covariance
    spread: Array  # (B, P): its eigenvalues

    @classmethod
    def of(cls, datafits: Sequence[GramDatafit], fold: np.ndarray) -> BatchGrams:
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

    def quadratic_at(self, point: Factors) -> tuple[Array, Array]:
        """Gradient of the loss by the weights of each task, (B, T, P + 1), and the loss (B,)."""
        xp = namespace(self.gram)
        weights = weights_of(point)
        product = self.product(weights)
        value = self.energy + xp.sum(weights * (product - 2.0 * self.moment), axis=(1, 2))
        return 2.0 * (product - self.moment), value

    def quadratic(self, slope: Array, value: Array, features: Array) -> Quadratics:
        """Loss by the latent weights and intercept of each task, about a point."""
        xp = namespace(features)
        lifted = with_corner(features)
        fits, tasks, rows, _ = self.gram.shape
        columns = lifted.shape[2]
        # All tasks of a fit in one product each time.
        lifted_gram = xp.reshape(self.gram, (fits, tasks * rows, rows)) @ lifted
        lifted_gram = xp.reshape(lifted_gram, (fits, tasks, rows, columns)).mT
        hessian = 2.0 * xp.reshape(lifted_gram, (fits, tasks * columns, rows)) @ lifted
        return Quadratics(
            xp.reshape(hessian, (fits, tasks, columns, columns)), slope @ lifted, value
        )


@dataclass(frozen=True)
class Quadratics:
    """Loss of many fits by each task's latent weights and intercept."""

    hessian: Array  # (B, T, K + 1, K + 1)
    gradient: Array  # (B, T, K + 1)
    value: Array  # (B,)

    def translated(self, old: Factors, new: Factors) -> Quadratics:
        xp = namespace(self.value)
        change = (new.intercepts - old.intercepts)[..., None]
        step = xp.concat([new.loadings - old.loadings, change], axis=-1)
        gradient = self.gradient + (self.hessian @ step[..., None])[..., 0]
        # The mean slope over the way, so that what cancels does so in one product.
        value = self.value + 0.5 * xp.sum((self.gradient + gradient) * step, axis=(1, 2))
        return Quadratics(self.hessian, gradient, value)


def weights_of(point: Factors) -> Array:
    """Weights of all tasks with their intercepts, (B, T, P + 1)."""
    xp = namespace(point.F)
    weights = point.loadings @ point.F.mT + point.shared[:, None, :]
    return xp.concat([weights, point.intercepts[..., None]], axis=-1)


Part = tuple[slice, int, bool]
"""Fits from where to where, the width of the widest, and whether a direct solver serves."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Ranks of the fits of a batch, rising, with their numbers of features and tasks."""

    ranks: np.ndarray
    n_features: int
    n_tasks: int

    @property
    def feature_parts(self) -> list[Part]:
        return self._parts(self.n_features * (self.ranks + 1) + self.n_tasks <= DENSE_UNKNOWNS)

    @property
    def task_parts(self) -> list[Part]:
        return self._parts(self.ranks <= WOODBURY_WIDTH)

    def _parts(self, direct: np.ndarray) -> list[Part]:
        first, last = int(direct.sum()), len(self.ranks)
        bounds = [(0, first, True), (first, last, False)]
        return [
            (slice(start, stop), int(self.ranks[stop - 1]), small)
            for start, stop, small in bounds
            if start < stop
        ]

    def take(self, places: np.ndarray) -> Plan:
        return Plan(self.ranks[places], self.n_features, self.n_tasks)
