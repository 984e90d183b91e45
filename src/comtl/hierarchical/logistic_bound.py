r"""The bound of Jaakkola and Jordan of the logistic likelihood, a quadratic for each row.

It is exact at the score ``ξ`` that the row is given:

.. math:: \log σ(s) \ge \log σ(ξ) + \tfrac12 (s - ξ) - λ(ξ)(s^2 - ξ^2), \quad
    λ(ξ) = \tanh(ξ/2) / 4ξ
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import (
    Array,
    asarray_like,
    namespace,
    on_device,
    row_dots,
    segment_codes,
    segment_forms,
    segment_gram,
    segment_sum,
    to_numpy,
)
from ..datafits.gram_datafit import GramDatafit
from .likelihoods import Bound
from .posterior import Posterior
from .task_data import TaskRows


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Rows of two classes, task by task."""

    rows: Array  # standardised, with a last column of ones
    signs: Array
    weights: Array
    offsets: np.ndarray

    def bound_by_grams(self, posterior: Posterior | None) -> Bound:
        """Bound that suits a posterior best, or scores of zero, by second moments of the tasks."""
        effects = None if posterior is None else (posterior.weights, posterior.covariances)
        # The rows stay where they lie; inference from their sums is a matter of the host.
        return summed_bound(*map(to_numpy, self.sums(effects)))

    def bound_by_rows(self, posterior: Posterior | None) -> Bound:
        """The same by rows, each a value ``± 1 / 4λ`` with noise of variance ``1 / 2λ``."""
        weights, offsets, xi = self.weights, self.offsets, np.zeros(len(self.rows))
        if posterior is not None:
            xi = self._xi(posterior.weights, posterior.score_variances)
        curvature = bound_curvature(xi)
        targets, weight = self.signs / (4.0 * curvature), 2.0 * weights * curvature
        data = TaskRows.of(self.rows, targets, weight, offsets)
        return Bound(data, float(bound_constant(weights, xi).sum()), float(weights.sum()))

    def sums(self, effects: Any) -> tuple[Array, ...]:
        """Grams, constants, linear parts and weights by task; ``effects``: weights, covariances."""
        rows, dtype = self.rows, self.rows.dtype if on_device(self.rows) else None
        if effects is None:
            xi = asarray_like(np.zeros(self.signs.shape), rows, dtype)
        else:
            coef, covariances = (asarray_like(part, rows, dtype) for part in effects)
            xi = self._xi(coef, segment_forms(rows, covariances, self.offsets))
        gram = segment_gram(rows, 2.0 * self.weights * bound_curvature(xi), self.offsets)
        constant = segment_sum(bound_constant(self.weights, xi), self.offsets)
        return gram, constant, *self._linear

    def _xi(self, coef: Array, variances: Array) -> Array:
        """Scores at which the bound is best exact, given weights and variances of scores."""
        xp = namespace(self.rows)
        codes = segment_codes(self.offsets, self.rows)
        scores = row_dots(self.rows, xp.take(coef, codes, axis=0))
        return xp.sqrt(scores**2 + xp.clip(variances, min=0.0))

    @cached_property
    def _linear(self) -> tuple[Array, Array]:
        share = 0.5 * self.weights * self.signs
        moment = segment_sum(self.rows * share[:, None], self.offsets)
        return moment, segment_sum(self.weights, self.offsets)


def summed_bound(
    gram: np.ndarray, constant: np.ndarray, moment: np.ndarray, weight: np.ndarray
) -> Bound:
    """Bound of all tasks, from the sums of each."""
    sums = GramDatafit(gram, moment, np.zeros(len(gram)))
    return Bound(TaskRows.of_grams(sums), float(constant.sum()), float(weight.sum()))


def bound_constant(weights: Array, xi: Array) -> Array:
    """What the bound of each row has beside its quadratic part."""
    xp = namespace(xi)
    value = -xp.logaddexp(xp.zeros_like(xi), -xi) - 0.5 * xi
    return weights * (value + bound_curvature(xi) * xi**2)


def bound_curvature(xi: Array) -> Array:
    """``λ(ξ)``, 1/8 at zero."""
    xp = namespace(xi)
    large = xp.abs(xi) > 1e-4
    safe = xp.where(large, xi, xp.ones_like(xi))
    return xp.where(large, xp.tanh(0.5 * safe) / (4.0 * safe), xp.full_like(xi, 0.125))
