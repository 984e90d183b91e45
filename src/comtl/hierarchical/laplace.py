r"""Rows of two classes, and the quadratic model of their log likelihood about given scores.

With the sign :math:`s_i = ±1` of a row and :math:`\ell_i(η) = \log σ(s_i η)`, about :math:`η_i`

.. math:: \ell_i(η_i + δ) \approx \ell_i(η_i) + g_i δ - \tfrac12 h_i δ^2, \quad
    g_i = s_i σ(-s_i η_i), \quad h_i = σ(η_i) σ(-η_i)

About the most likely scores this is the approximation of Laplace.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

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
from .posterior import Posterior
from .task_data import TaskRows

MOST_SCORE = 30.0
"""Largest score about which there is a model; beyond it has no curvature left."""


class Expansion(NamedTuple):
    """A normal likelihood with the quadratic model of another, and what is beside it."""

    data: TaskRows
    constant: float
    n_rows: float


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Rows of two classes, task by task."""

    rows: Array  # standardised, with a last column of ones
    signs: Array
    weights: Array
    offsets: np.ndarray

    def sums(self, coef: np.ndarray | None) -> tuple[Array, ...]:
        """Grams, constants, linear parts and weights of the model by task.

        About the scores by weights ``coef`` of the tasks, ``None`` being zeros.
        """
        slope, height, constant = self._model(coef)
        scores = self._scores(coef)
        gram = segment_gram(self.rows, height, self.offsets)
        moment = segment_sum(self.rows * (slope + height * scores)[:, None], self.offsets)
        return gram, segment_sum(constant, self.offsets), moment, self._counts

    def skew_sums(self, coef: np.ndarray, covariances: np.ndarray) -> Array:
        """What the log determinant falls by as scores rise, times the rows, by task."""
        rows = self.rows
        spread = asarray_like(covariances, rows, rows.dtype if on_device(rows) else None)
        skew = self._skew(coef, segment_forms(rows, spread, self.offsets))
        return segment_sum(rows * skew[:, None], self.offsets)

    def _scores(self, coef: np.ndarray | None) -> Array:
        xp, rows = namespace(self.rows), self.rows
        if coef is None:
            return xp.zeros_like(self.signs)
        coef = asarray_like(coef, rows, rows.dtype if on_device(rows) else None)
        scores = row_dots(rows, xp.take(coef, segment_codes(self.offsets, rows), axis=0))
        return xp.clip(scores, min=-MOST_SCORE, max=MOST_SCORE)

    def _model(self, coef: np.ndarray | None) -> tuple[Array, Array, Array]:
        """Slope, curvature and what is beside them, of each row."""
        xp, scores, signs = namespace(self.rows), self._scores(coef), self.signs
        wrong = 1.0 / (1.0 + xp.exp(signs * scores))
        slope, height = self.weights * signs * wrong, self.weights * wrong * (1.0 - wrong)
        value = -xp.logaddexp(xp.zeros_like(scores), -signs * scores)
        return slope, height, self.weights * value - slope * scores - 0.5 * height * scores**2

    def _skew(self, coef: np.ndarray, variances: Array) -> Array:
        """Half the variance of each score times the derivative of its curvature, below zero."""
        xp, scores = namespace(self.rows), self._scores(coef)
        chance = 1.0 / (1.0 + xp.exp(-scores))
        slope = chance * (1.0 - chance) * (1.0 - 2.0 * chance)
        return -0.5 * self.weights * slope * xp.clip(variances, min=0.0)

    @cached_property
    def _counts(self) -> Array:
        return segment_sum(self.weights, self.offsets)


class ClassSums(Protocol):
    """Sums of the quadratic model by task, of rows here or elsewhere."""

    def sums(self, coef: np.ndarray | None) -> tuple[Array, ...]:
        """As of :class:`ClassRows`."""

    def skew_sums(self, coef: np.ndarray, covariances: np.ndarray) -> Array:
        """As of :class:`ClassRows`."""


@dataclass(frozen=True, eq=False)
class SummedClasses:
    """Tasks of two classes by second moments."""

    rows: ClassSums

    def expansion(self, coef: np.ndarray | None) -> Expansion:
        """The model about the scores by weights of the tasks, or about zero."""
        # The rows stay where they lie; inference from their sums is a matter of the host.
        gram, constant, moment, weight = map(to_numpy, self.rows.sums(coef))
        sums = GramDatafit(gram, moment, np.zeros(len(gram)))
        return Expansion(TaskRows.of_grams(sums), float(constant.sum()), float(weight.sum()))

    def skews(self, coef: np.ndarray, posterior: Posterior) -> list[np.ndarray]:
        """Change of the log determinant by the scores, as targets of the posterior's blocks."""
        moment = to_numpy(self.rows.skew_sums(coef, posterior.covariances))
        return [
            np.linalg.solve(np.swapaxes(block.rows, 1, 2), moment[block.tasks][:, :, None])[:, :, 0]
            for block in posterior.data.blocks
        ]


@dataclass(frozen=True, eq=False)
class EachClassRow:
    """The same by the rows, where tasks have fewer of them than features."""

    rows: ClassRows

    def expansion(self, coef: np.ndarray | None) -> Expansion:
        """The model: of each row a value with noise of one over its curvature."""
        rows, weights = self.rows, self.rows.weights
        slope, height, constant = rows._model(coef)
        target = rows._scores(coef) + slope / np.where(height > 0.0, height, 1.0)
        data = TaskRows.of(rows.rows, target, height, rows.offsets)
        return Expansion(data, float(constant.sum()), float(weights.sum()))

    def skews(self, coef: np.ndarray, posterior: Posterior) -> list[np.ndarray]:
        """Change of the log determinant by the scores, as targets of the posterior's blocks."""
        skew = self.rows._skew(coef, posterior.score_variances)
        return [
            np.where(block.index >= 0, skew[block.index], 0.0)
            / np.where(block.ones > 0.0, block.ones, 1.0)
            for block in posterior.data.blocks
        ]
