"""State of many fits, the Grams of their rows, and which solver each fit takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array, namespace
from ..datafits.gram_datafit import GramDatafit, GramLocalQuadratic
from ..engine.feature_step import DENSE_UNKNOWNS
from ..engine.task_steps import WOODBURY_WIDTH
from ..factors import Factors, State
from ..losses import Squared
from ..rows.design import Covariance
from .batch_penalties import spectra


@dataclass(frozen=True)
class Fits(State):
    """States of B fits, their factors padded to one width by columns of zeros."""

    penalties: Mapping[str, Any]
    shared: Array = None  # (B,), as the next one
    intercept_penalty: Array = None
    inside: Array = None  # (B, K): one for a column of a fit, zero for padding

    @property
    def has_random_intercepts(self) -> bool:
        """Whether there are intercepts; deviations of fits without stay zero."""
        return self.intercept

    @cached_property
    def _pools(self) -> Array:
        penalty = self.intercept_penalty
        return penalty < float("inf") if self.intercept else penalty < 0.0

    @cached_property
    def deviates(self) -> Array:
        penalty = self.intercept_penalty
        return namespace(penalty).astype(self._pools, penalty.dtype)

    @cached_property
    def deviation_curvature(self) -> Array:
        """Curvature of the penalty of the deviations; one where there are none."""
        penalty = self.intercept_penalty
        xp = namespace(penalty)
        return xp.where(self._pools, 2.0 * penalty, xp.ones_like(penalty))

    @property
    def rank(self) -> Array:
        return namespace(self.inside).sum(self.inside, axis=1)

    @property
    def regularizer(self) -> Array:
        xp = namespace(self.intercept_penalty)
        point, total = self.factors, self.factor_penalty
        if self.shared is not None:
            total = total + self.shared * xp.sum(point.shared**2, axis=1)
        # Deviations are zero where there are none.
        return total + 0.5 * self.deviation_curvature * xp.sum(point.random_intercepts**2, axis=1)

    @property
    def is_annealed(self) -> Array:
        return self.penalties["F"].is_annealed & self.penalties["G"].is_annealed

    @property
    def relearned(self) -> Fits:
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
    total_energy: Array  # (B,): weighted sum of squared targets
    n_weighted: Array  # (B,)
    basis: Array  # (B, P, P): eigenvectors of the pooled covariance
    spread: Array  # (B, P): its eigenvalues

    loss: ClassVar[Squared] = Squared()

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

    @property
    def covariance(self) -> Covariance:
        return Covariance(self.basis, self.spread, 0.0)

    def product(self, weights: Array) -> Array:
        """Each task's Gram times its own vector, (B, T, P + 1)."""
        return (self.gram @ weights[..., None])[..., 0]

    def quadratic_at(self, point: Factors) -> GramLocalQuadratic:
        return GramLocalQuadratic.at(self, point.task_weights)


Part = tuple[slice, int, bool]
"""Fits from where to where, the width of the widest, and whether the solver is direct."""


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
