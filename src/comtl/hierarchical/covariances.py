r"""Covariances of what tasks have of their own: slopes, and last the intercept.

A structure is a point of a family of covariances ``B``. It knows its root ``B = L Lᵀ``, the member
of its family that maximises the expected likelihood of given second moments, and how to take up
a change of scale of single effects, or of those that must keep one scale together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..engine.extrapolation import rotation
from ..saving.registry import saved

LEAST = 1e-12
"""Smallest variance, in units of the standardised data."""
FURTHEST = 1e3
"""Factor by which an extrapolation may change a variance at most."""


def extrapolate_linear(before: Any, now: Any, share: float) -> Any:
    """Variances as far beyond the present ones, in logarithms, as these are from earlier ones."""
    least = np.maximum(now, LEAST)
    change = np.clip((least / np.maximum(before, LEAST)) ** share, 1.0 / FURTHEST, FURTHEST)
    return np.maximum(least * change, LEAST)


@dataclass(frozen=True, eq=False)
class EffectCovariance(ABC):
    """Covariance of a task's own effects: P slopes and an intercept.

    Parameters
    ----------
    intercept : float
        Variance of the intercept.
    """

    intercept: float

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of slopes."""

    @property
    @abstractmethod
    def root(self) -> np.ndarray:
        """``L`` of shape (P + 1, r)."""

    @property
    @abstractmethod
    def groups(self) -> np.ndarray:
        """For each effect the number of its group, within which scales are one."""

    @abstractmethod
    def fitted(self, moments: np.ndarray, tasks: int) -> EffectCovariance:
        """Return the best member of the family, from the sum of ``E[u uᵀ]`` over tasks."""

    @abstractmethod
    def rescaled(self, scales: np.ndarray) -> EffectCovariance:
        """Return the covariance of the effects times the scales of their groups."""

    @abstractmethod
    def extrapolated(self, before: Self, share: float) -> EffectCovariance:
        """Return a covariance further along the way from an earlier one of the family."""

    @property
    def log_prior(self) -> float:
        """Logarithm of the prior of the covariance, up to a constant."""
        return 0.0

    @property
    def has_prior(self) -> bool:
        """Whether there is such a prior."""
        return False

    @property
    def covariance(self) -> np.ndarray:
        """``B`` itself."""
        return self.root @ self.root.T

    def _extrapolated_intercept(self, before: EffectCovariance, share: float) -> float:
        return float(extrapolate_linear(before.intercept, self.intercept, share))

    def _own(self, moments: np.ndarray, tasks: int) -> float:
        return max(float(moments[-1, -1]) / tasks, LEAST)


@saved
@dataclass(frozen=True, eq=False)
class InterceptOnly(EffectCovariance):
    """No slopes of a task's own: a random intercept."""

    features: int

    @property
    def n_features(self) -> int:
        return self.features

    @property
    def root(self) -> np.ndarray:
        root = np.zeros((self.features + 1, 1))
        root[-1] = self.intercept**0.5
        return root

    @property
    def groups(self) -> np.ndarray:
        return np.zeros(self.features + 1, dtype=np.intp)

    def fitted(self, moments: np.ndarray, tasks: int) -> EffectCovariance:
        return replace(self, intercept=self._own(moments, tasks))

    def rescaled(self, scales: np.ndarray) -> EffectCovariance:
        return replace(self, intercept=max(self.intercept * scales[0] ** 2, LEAST))

    def extrapolated(self, before: Self, share: float) -> EffectCovariance:
        return replace(self, intercept=self._extrapolated_intercept(before, share))


@saved
@dataclass(frozen=True, eq=False)
class Diagonal(EffectCovariance):
    """A variance for each slope."""

    slopes: np.ndarray

    @property
    def n_features(self) -> int:
        return len(self.slopes)

    @property
    def root(self) -> np.ndarray:
        return np.diag(np.sqrt(np.append(self.slopes, self.intercept)))

    @property
    def groups(self) -> np.ndarray:
        return np.arange(self.n_features + 1)

    def fitted(self, moments: np.ndarray, tasks: int) -> EffectCovariance:
        slopes = np.maximum(np.diagonal(moments)[:-1] / tasks, LEAST)
        return replace(self, intercept=self._own(moments, tasks), slopes=slopes)

    def rescaled(self, scales: np.ndarray) -> EffectCovariance:
        variances = np.maximum(np.append(self.slopes, self.intercept) * scales**2, LEAST)
        return replace(self, intercept=float(variances[-1]), slopes=variances[:-1])

    def extrapolated(self, before: Self, share: float) -> EffectCovariance:
        return replace(
            self,
            intercept=self._extrapolated_intercept(before, share),
            slopes=extrapolate_linear(before.slopes, self.slopes, share),
        )


@saved
@dataclass(frozen=True, eq=False)
class Factor(EffectCovariance):
    """Some directions of the slopes in common, and one variance around them: ``F Fᵀ + d I``.

    Without directions the isotropic structure.
    """

    rest: float
    directions: np.ndarray
    width: int

    @classmethod
    def isotropic(cls, intercept: float, slopes: float, features: int) -> Factor:
        """One variance for all slopes."""
        return cls(intercept, slopes, np.zeros((features, 0)), 0)

    def with_directions(self, width: int) -> Factor:
        """Return the family with ``width`` directions, at the same covariance."""
        return replace(self, width=width)

    @property
    def n_features(self) -> int:
        return self.directions.shape[0]

    @property
    def root(self) -> np.ndarray:
        size = self.n_features
        root = np.zeros((size + 1, size + 1))
        # A square root that is symmetric: sqrt(d) I + U (sqrt(λ + d) - sqrt(d)) Uᵀ.
        own = self.rest**0.5
        basis, values, _ = np.linalg.svd(self.directions, full_matrices=False)
        gain = np.sqrt(values**2 + self.rest) - own
        root[:-1, :-1] = own * np.eye(size) + (basis * gain) @ basis.T
        root[-1, -1] = self.intercept**0.5
        return root

    @property
    def groups(self) -> np.ndarray:
        groups = np.zeros(self.n_features + 1, dtype=np.intp)
        groups[-1] = 1
        return groups

    def fitted(self, moments: np.ndarray, tasks: int) -> EffectCovariance:
        values, basis = np.linalg.eigh(moments[:-1, :-1] / tasks)
        split = len(values) - self.width
        rest = max(float(values[:split].mean()), LEAST)
        gain = np.sqrt(np.maximum(values[split:] - rest, 0.0))
        return replace(
            self,
            intercept=self._own(moments, tasks),
            rest=rest,
            directions=basis[:, split:] * gain,
        )

    def rescaled(self, scales: np.ndarray) -> EffectCovariance:
        return replace(
            self,
            intercept=max(self.intercept * scales[1] ** 2, LEAST),
            rest=max(self.rest * scales[0] ** 2, LEAST),
            directions=self.directions * scales[0],
        )

    def extrapolated(self, before: Self, share: float) -> EffectCovariance:
        if before.directions.shape != self.directions.shape:
            return self  # The first step has found the directions.
        # They are known up to a rotation among themselves.
        old = before.directions @ rotation(before.directions.T @ self.directions)
        return replace(
            self,
            intercept=self._extrapolated_intercept(before, share),
            rest=float(extrapolate_linear(before.rest, self.rest, share)),
            directions=self.directions + share * (self.directions - old),
        )


@saved
@dataclass(frozen=True, eq=False)
class Full(EffectCovariance):
    """Any covariance, with an inverse-Wishart prior about another one.

    Parameters
    ----------
    matrix : ndarray of shape (P + 1, P + 1)
        The covariance; its corner is ``intercept``.
    center : ndarray of shape (P + 1,)
        Diagonal of the covariance that the prior favours.
    weight : float
        How many tasks the prior counts for.
    """

    matrix: np.ndarray
    center: np.ndarray
    weight: float

    @classmethod
    def about(cls, center: np.ndarray, weight: float) -> Full:
        """Start at what the prior favours."""
        return cls(float(center[-1]), np.diag(center), center, weight)

    @property
    def n_features(self) -> int:
        return len(self.center) - 1

    @property
    def root(self) -> np.ndarray:
        values, basis = np.linalg.eigh(self.matrix)
        return basis * np.sqrt(np.maximum(values, LEAST))

    @property
    def covariance(self) -> np.ndarray:
        return self.matrix

    @property
    def groups(self) -> np.ndarray:
        return np.arange(self.n_features + 1)

    def fitted(self, moments: np.ndarray, tasks: int) -> EffectCovariance:
        matrix = (moments + self.weight * np.diag(self.center)) / (tasks + self.weight)
        return replace(self, intercept=float(matrix[-1, -1]), matrix=0.5 * (matrix + matrix.T))

    def rescaled(self, scales: np.ndarray) -> EffectCovariance:
        matrix = self.matrix * np.outer(scales, scales)
        return replace(self, intercept=float(matrix[-1, -1]), matrix=matrix)

    def extrapolated(self, before: Self, share: float) -> EffectCovariance:
        # In a basis that makes the one covariance the identity and the other diagonal.
        root = before.root
        flat = root / np.sum(root**2, axis=0)  # its columns are orthogonal
        values, basis = np.linalg.eigh(flat.T @ self.matrix @ flat)
        turned = root @ basis
        matrix = (turned * extrapolate_linear(np.ones_like(values), values, share)) @ turned.T
        return replace(self, intercept=float(matrix[-1, -1]), matrix=matrix)

    @property
    def has_prior(self) -> bool:
        return True

    @property
    def log_prior(self) -> float:
        values, basis = np.linalg.eigh(self.matrix)
        values = np.maximum(values, LEAST)
        spread = float(self.center @ (basis**2 / values).sum(axis=1))
        return -0.5 * self.weight * (float(np.log(values).sum()) + spread)
