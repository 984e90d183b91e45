r"""Losses of one score and one target: value, derivative, curvature.

A loss is a frozen object with three vectorised functions of ``(y, score)``. The engine needs
nothing else of it: it works with the local quadratic model
:math:`\ell(s + d) \approx \ell(s) + \ell'(s) d + \tfrac12 \ell''(s) d^2`, which is exact where
``quadratic`` is true.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from .arrays import Array, namespace
from .penalties.factor_penalties import Simplex


class Loss(ABC):
    """Loss of a score for a target; ``quadratic`` says that the curvature is constant."""

    quadratic: ClassVar[bool]

    @abstractmethod
    def value(self, y: Array, score: Array) -> Array:
        """Loss of each entry."""

    @abstractmethod
    def derivative(self, y: Array, score: Array) -> Array:
        """First derivative by the score."""

    @abstractmethod
    def curvature(self, y: Array, score: Array) -> Array:
        """Second derivative by the score, never negative."""

    @abstractmethod
    def dispersion(self, deviance: float, df: float) -> float:
        """Variance of a working response of curvature one, ``deviance`` being its spread."""

    @abstractmethod
    def probability(self, score: Array) -> Array:
        """Probability of the label +1."""

    @abstractmethod
    def class_probabilities(self, scores: Array, seen: Array) -> Array:
        """Probabilities of several classes (columns) from the score of each against the rest.

        ``seen`` marks the classes that a row may have.
        """


@dataclass(frozen=True)
class Squared(Loss):
    r"""Squared error :math:`(y - s)^2`, as the paper has it (no one half).

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.losses import Squared
    >>> Squared().value(np.array([1.0]), np.array([3.0]))
    array([4.])
    """

    quadratic: ClassVar[bool] = True

    def value(self, y: Array, score: Array) -> Array:
        return (y - score) ** 2

    def derivative(self, y: Array, score: Array) -> Array:
        return 2.0 * (score - y)

    def curvature(self, y: Array, score: Array) -> Array:
        return namespace(score).full_like(score, 2.0)

    def dispersion(self, deviance: float, df: float) -> float:
        return deviance / df

    def probability(self, score: Array) -> Array:
        return namespace(score).clip(0.5 * (1.0 + score), min=0.0, max=1.0)

    def class_probabilities(self, scores: Array, seen: Array) -> Array:
        # The scores estimate the probabilities themselves: take the nearest that sum to one.
        xp = namespace(scores)
        out = -2.0 - 2.0 * xp.max(xp.abs(scores))
        return Simplex().prox(xp.where(seen, 0.5 * (1.0 + scores), out), 1.0)


@dataclass(frozen=True)
class Logistic(Loss):
    r"""Negative log-likelihood :math:`\log(1 + e^{-y s})` of a label ``y`` of -1 or +1.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.losses import Logistic
    >>> Logistic().value(np.array([1.0]), np.array([0.0])).round(4)
    array([0.6931])
    """

    quadratic: ClassVar[bool] = False

    def value(self, y: Array, score: Array) -> Array:
        xp = namespace(score)
        return xp.logaddexp(xp.zeros_like(score), -y * score)

    def derivative(self, y: Array, score: Array) -> Array:
        return -y * sigmoid(-y * score)

    def curvature(self, y: Array, score: Array) -> Array:
        return sigmoid(score) * sigmoid(-score)

    def dispersion(self, deviance: float, df: float) -> float:
        return 1.0

    def probability(self, score: Array) -> Array:
        return sigmoid(score)

    def class_probabilities(self, scores: Array, seen: Array) -> Array:
        xp = namespace(scores)
        least = float(xp.finfo(scores.dtype).smallest_normal)
        chance = xp.where(seen, xp.clip(sigmoid(scores), min=least), xp.zeros_like(scores))
        return chance / xp.sum(chance, axis=1, keepdims=True)


def sigmoid(score: Array) -> Array:
    """Logistic function, safe for scores of any size."""
    xp = namespace(score)
    small = xp.exp(-xp.abs(score))
    return xp.where(score < 0.0, small, xp.ones_like(score)) / (1.0 + small)
