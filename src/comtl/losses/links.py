"""Links: what the score of a linear model says about the target."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Array, namespace, project_simplex

MAX_LOG_DEVIATION = 5.0
"""Standard deviation of logarithms beyond which that of the target says nothing more."""


class Link(ABC):
    """Inverse link: the mean of the target at a score.

    ``onnx_operator`` is the operator of ONNX that computes it, None where no single one does.
    """

    onnx_operator: ClassVar[str | None] = None

    @abstractmethod
    def mean(self, score: Array) -> Array:
        """Mean of the target: of labels -1 and +1 the probability of +1."""

    def deviation(self, mean: Array, deviation: Array) -> Array:
        """Standard deviation of the target, from that of what the score is compared with."""
        return deviation


class ClassLink(Link):
    """Link of scores of classes, each against the rest."""

    @abstractmethod
    def class_probabilities(self, scores: Array, seen: Array) -> Array:
        """Probabilities of several classes (columns); ``seen`` marks those that a row may have."""


@dataclass(frozen=True)
class Identity(Link):
    """The score is the mean."""

    onnx_operator: ClassVar[str | None] = "Identity"

    def mean(self, score: Array) -> Array:
        return score


@dataclass(frozen=True)
class Log(Link):
    """The score is the logarithm of the mean, as for counts."""

    onnx_operator: ClassVar[str | None] = "Exp"

    def mean(self, score: Array) -> Array:
        xp = namespace(score)
        return xp.exp(xp.clip(score, max=0.99 * log_range(score)))

    def deviation(self, mean: Array, deviation: Array) -> Array:
        # That of a log-normal target.
        xp = namespace(mean)
        return mean * xp.sqrt(xp.expm1(xp.clip(deviation, max=MAX_LOG_DEVIATION) ** 2))


@dataclass(frozen=True)
class Logit(ClassLink):
    """The score is the log odds of a class."""

    onnx_operator: ClassVar[str | None] = "Sigmoid"

    def mean(self, score: Array) -> Array:
        return sigmoid(score)

    def class_probabilities(self, scores: Array, seen: Array) -> Array:
        xp = namespace(scores)
        least = float(xp.finfo(scores.dtype).smallest_normal)
        chance = xp.where(seen, xp.clip(sigmoid(scores), min=least), xp.zeros_like(scores))
        return chance / xp.sum(chance, axis=1, keepdims=True)


@dataclass(frozen=True)
class ClippedLinear(ClassLink):
    """The score estimates the mean of a label -1 or +1, and may leave that range."""

    def mean(self, score: Array) -> Array:
        return namespace(score).clip(0.5 * (1.0 + score), min=0.0, max=1.0)

    def class_probabilities(self, scores: Array, seen: Array) -> Array:
        # The scores estimate the probabilities themselves: take the nearest that sum to one.
        xp = namespace(scores)
        out = -2.0 - 2.0 * xp.max(xp.abs(scores))
        return project_simplex(xp.where(seen, 0.5 * (1.0 + scores), out))


def sigmoid(score: Array) -> Array:
    """Logistic function, safe for scores of any size."""
    xp = namespace(score)
    small = xp.exp(-xp.abs(score))
    return xp.where(score < 0.0, small, xp.ones_like(score)) / (1.0 + small)


def log_range(score: Array) -> float:
    """Logarithm of the largest number of the type."""
    return math.log(float(namespace(score).finfo(score.dtype).max))
