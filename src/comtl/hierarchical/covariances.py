"""Covariances of the random effects (slopes, and last the intercept), and families of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from ..arrays import DENSE_SIDE
from ..engine.acceleration import rotation
from ..saving.registry import formerly, saved

MIN_VARIANCE = 1e-12
"""Smallest variance, in units of the standardised data."""
MAX_FACTOR = 1e3
"""Factor by which an extrapolation may change a variance at most."""


def extrapolate_variance(before: Any, now: Any, share: float) -> Any:
    """Variances beyond the present ones by a share of their last step, in logarithms."""
    now = np.maximum(now, MIN_VARIANCE)
    change = (now / np.maximum(before, MIN_VARIANCE)) ** share
    return np.maximum(now * np.clip(change, 1.0 / MAX_FACTOR, MAX_FACTOR), MIN_VARIANCE)


def _former(content: dict[str, Any]) -> dict[str, Any]:
    """Fields from those of the class that each family had of its own in old files."""
    if "matrix" in content:
        return {"matrix": content["matrix"]}
    directions = content.get("directions", ())
    variances = content.get("slopes", content.get("rest", 0.0))
    size = content.get("features", max(len(directions), np.size(variances)))
    if not 0 < size <= DENSE_SIDE:
        raise ValueError
    matrix = np.zeros((size + 1, size + 1))
    np.fill_diagonal(matrix, variances)
    if "directions" in content:
        matrix[:-1, :-1] += directions @ directions.T
    matrix[-1, -1] = content["intercept"]
    return {"matrix": matrix}


@formerly("InterceptOnly", _former)
@formerly("Diagonal", _former)
@formerly("Factor", _former)
@formerly("Full", _former)
@saved
@dataclass(frozen=True, eq=False)
class EffectCovariance:
    """Covariance ``B`` of the random effects; effects whose variance is zero are not random."""

    matrix: np.ndarray

    @cached_property
    def eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues and eigenvectors, of the effects that are random."""
        varying = self.matrix.diagonal() != 0.0
        values, vectors = np.linalg.eigh(self.matrix[varying][:, varying])
        basis = np.zeros((len(varying), len(values)))
        basis[varying] = vectors
        return np.maximum(values, MIN_VARIANCE), basis

    @cached_property
    def root(self) -> np.ndarray:
        """``L`` with ``B = L Lᵀ``, of shape (P + 1, number of random effects)."""
        values, basis = self.eigen
        return basis * np.sqrt(values)

    def rescaled(self, scales: np.ndarray) -> EffectCovariance:
        """Return the covariance of the effects, each times its scale."""
        return EffectCovariance(_floored(self.matrix * (scales[:, None] * scales), self.matrix))

    def raised(self, least: float) -> EffectCovariance:
        """Return the covariance with so much more of all slopes that none varies less."""
        lack = max(least - float(np.linalg.eigvalsh(self.matrix[:-1, :-1])[0]), 0.0)
        slopes = np.append(np.ones(len(self.matrix) - 1), 0.0)
        return EffectCovariance(self.matrix + np.diag(lack * slopes))


def _floored(matrix: np.ndarray, varying: np.ndarray) -> np.ndarray:
    """Raise, in place, the variances of effects that vary in another matrix to the least."""
    low = (matrix.diagonal() < MIN_VARIANCE) & (varying.diagonal() > 0.0)
    matrix[low, low] = MIN_VARIANCE
    return matrix


@dataclass(frozen=True, eq=False)
class CovarianceFamily(ABC):
    """Covariances of one structure; a prior (inverse Wishart) favours the diagonal ``center``."""

    n_components: int = 2
    prior_weight: float | None = None
    center: np.ndarray | None = None

    refines: ClassVar[bool] = False  # whether the fit starts from that of the isotropic family

    @abstractmethod
    def project(self, moment: np.ndarray) -> np.ndarray:
        """Member of the family with the highest likelihood where ``E[u uᵀ]`` is ``moment``."""

    def groups(self, size: int) -> np.ndarray:
        """Group of each effect: the slopes and the intercept have scales of their own."""
        return np.append(np.zeros(size - 1, dtype=np.intp), 1)

    def with_prior(self, start: EffectCovariance) -> Self:
        """Return the family with the prior that goes with a start of the fit."""
        return self

    @property
    def weight(self) -> float:
        """Tasks that the prior counts for."""
        if self.center is None:
            return 0.0
        weight = len(self.center) - 1 if self.prior_weight is None else self.prior_weight
        return max(float(weight), 1e-6)

    def estimate(self, moments: np.ndarray, tasks: int) -> EffectCovariance:
        """M step, from the sum of ``E[u uᵀ]`` over tasks."""
        if self.center is not None:
            moments = moments + self.weight * np.diag(self.center)
        matrix = self.project(moments / (tasks + self.weight))
        return EffectCovariance(_floored(matrix, matrix))

    def extrapolated(
        self, before: EffectCovariance, now: EffectCovariance, share: float
    ) -> EffectCovariance:
        """Return a member of the family beyond the present one, on the geodesic from an earlier."""
        # In a basis that makes the one covariance the identity and the other diagonal.
        inverse = before.eigen[1] / np.sqrt(before.eigen[0])
        values, basis = np.linalg.eigh(inverse.T @ now.matrix @ inverse)
        turned = before.root @ basis
        ratios = extrapolate_variance(np.ones_like(values), values, share)
        return EffectCovariance(self.project((turned * ratios) @ turned.T))

    def log_prior(self, covariance: EffectCovariance) -> float:
        """Logarithm of the prior, up to a constant."""
        if self.center is None:
            return 0.0
        values, basis = covariance.eigen
        trace = float(self.center @ (basis**2 / values).sum(axis=1))
        return -0.5 * self.weight * (float(np.log(values).sum()) + trace)


class InterceptOnly(CovarianceFamily):
    """A random intercept, and slopes in common."""

    def project(self, moment: np.ndarray) -> np.ndarray:
        matrix = np.zeros_like(moment)
        matrix[-1, -1] = moment[-1, -1]
        return matrix


class Isotropic(CovarianceFamily):
    """One variance for all slopes."""

    def project(self, moment: np.ndarray) -> np.ndarray:
        variances = moment.diagonal().copy()
        variances[:-1] = variances[:-1].mean()
        return np.diag(variances)


class Diagonal(CovarianceFamily):
    """A variance for each slope."""

    def project(self, moment: np.ndarray) -> np.ndarray:
        return np.diag(moment.diagonal())

    def groups(self, size: int) -> np.ndarray:
        return np.arange(size)


class Full(Diagonal):
    """Any covariance, with a prior about the diagonal of the isotropic fit."""

    refines = True

    def project(self, moment: np.ndarray) -> np.ndarray:
        return 0.5 * (moment + moment.T)

    def with_prior(self, start: EffectCovariance) -> Self:
        return replace(self, center=np.diagonal(start.matrix).copy())


class Factor(CovarianceFamily):
    """Some directions of the slopes, and one variance around them (a factor analysis)."""

    refines = True

    def project(self, moment: np.ndarray) -> np.ndarray:
        return self._joined(*self._split(moment))

    def extrapolated(
        self, before: EffectCovariance, now: EffectCovariance, share: float
    ) -> EffectCovariance:
        # A geodesic would leave the family; directions are known up to a rotation among themselves.
        (old, *former), (directions, *latest) = map(self._split, (before.matrix, now.matrix))
        directions = directions + share * (directions - old @ rotation(old.T @ directions))
        variances = extrapolate_variance(former, latest, share)
        return EffectCovariance(self._joined(directions, *variances))

    def _split(self, moment: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Directions, variance of the slopes around them, and of the intercept."""
        values, basis = np.linalg.eigh(moment[:-1, :-1])
        split = len(values) - min(self.n_components, len(values) - 1)
        rest = max(float(values[:split].mean()), MIN_VARIANCE)
        size = np.sqrt(np.maximum(values[split:] - rest, 0.0))
        return basis[:, split:] * size, rest, float(moment[-1, -1])

    def _joined(self, directions: np.ndarray, rest: float, intercept: float) -> np.ndarray:
        matrix = np.diag(np.append(np.full(len(directions), rest), intercept))
        matrix[:-1, :-1] += directions @ directions.T
        return matrix


COVARIANCE_FAMILIES: dict[str, type[CovarianceFamily]] = {
    "intercept": InterceptOnly,
    "isotropic": Isotropic,
    "diagonal": Diagonal,
    "full": Full,
    "factor": Factor,
}
