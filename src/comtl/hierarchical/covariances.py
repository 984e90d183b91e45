"""Covariances of the random effects (slopes, and last the intercept), and families of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from ..arrays import DENSE_SIDE
from ..saving.registry import formerly, saved

MIN_VARIANCE = 1e-12
"""Smallest variance, in units of the standardised data."""


def _former(content: dict[str, Any]) -> dict[str, Any]:
    """Fields from those of the matrix, or of the class that each family had, in old files."""
    if "matrix" in content:
        matrix = np.asarray(content["matrix"])
        if matrix.ndim != 2 or len(matrix) != matrix.shape[1]:
            raise ValueError
        return vars(EffectCovariance.of(matrix))
    if {"variances", "directions"} <= set(content) and "rest" not in content:
        return content
    directions = content.get("directions", np.zeros((0, 0)))
    slopes = content.get("slopes", content.get("rest", 0.0))
    size = content.get("features", max(len(directions), np.size(slopes)))
    if not 0 < size <= DENSE_SIDE:
        raise ValueError
    variances = np.append(np.broadcast_to(slopes, size), content["intercept"])
    columns = np.zeros((size + 1, np.shape(directions)[1]))
    columns[: len(directions)] = directions
    return {"variances": variances, "directions": columns}


@formerly("InterceptOnly", _former)
@formerly("Diagonal", _former)
@formerly("Factor", _former)
@formerly("Full", _former)
@formerly("EffectCovariance", _former)
@saved
@dataclass(frozen=True, eq=False)
class EffectCovariance:
    """Covariance ``B = diag(variances) + D Dᵀ`` of the random effects, ``D`` the directions."""

    variances: np.ndarray
    directions: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray) -> EffectCovariance:
        """Covariance of a matrix; effects whose variance is zero are not random."""
        if not np.any(matrix - np.diag(matrix.diagonal())):
            return cls.diagonal(matrix.diagonal().copy())
        varying = matrix.diagonal() != 0.0
        values, vectors = np.linalg.eigh(matrix[varying][:, varying])
        directions = np.zeros((len(varying), len(values)))
        directions[varying] = vectors * np.sqrt(np.maximum(values, MIN_VARIANCE))
        return cls(np.zeros(len(varying)), directions)

    @classmethod
    def diagonal(cls, variances: np.ndarray) -> EffectCovariance:
        """Covariance of independent effects."""
        return cls(variances, np.zeros((len(variances), 0)))

    @property
    def matrix(self) -> np.ndarray:
        """``B`` as a dense matrix."""
        return np.diag(self.variances) + self.directions @ self.directions.T

    @property
    def own(self) -> np.ndarray:
        """Variance of each effect."""
        return self.variances + (self.directions**2).sum(axis=1)

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """Product with the rows of a matrix, ``V B``."""
        return vectors * self.variances + (vectors @ self.directions) @ self.directions.T

    def raised(self, least: float) -> EffectCovariance:
        """Return the covariance with so much more of all slopes that none varies less."""
        variances = self.variances.copy()
        variances[:-1] = np.maximum(variances[:-1], least)
        return replace(self, variances=variances)


@dataclass(frozen=True, eq=False)
class CovarianceFamily:
    """Covariances of a linear structure; a prior (inverse Wishart) favours a diagonal ``center``.

    ``variances``: one for "none" of the slopes, for "all", or for "each", beside directions if any,
    or a "matrix".
    """

    n_components: int = 2
    prior_weight: float | None = None
    center: np.ndarray | None = None

    variances: ClassVar[str] = "matrix"
    refines: ClassVar[bool] = False  # whether the fit starts from that of the isotropic family

    @property
    def n_directions(self) -> int:
        """Directions beside the variances."""
        return 0

    def project(self, matrix: np.ndarray) -> np.ndarray:
        """Nearest matrix of the structure, where that is a linear space of matrices."""
        return 0.5 * (matrix + matrix.T)

    def starting(self, covariance: EffectCovariance) -> EffectCovariance:
        """Member of the family to start from, given one of a simpler family."""
        return covariance

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

    def log_prior(self, covariance: EffectCovariance) -> float:
        """Logarithm of the prior, up to a constant."""
        if self.center is None:
            return 0.0
        values, basis = np.linalg.eigh(covariance.matrix)
        values = np.maximum(values, MIN_VARIANCE)
        trace = float(self.center @ (basis**2 / values).sum(axis=1))
        return -0.5 * self.weight * (float(np.log(values).sum()) + trace)


class InterceptOnly(CovarianceFamily):
    """A random intercept, and slopes in common."""

    variances = "none"

    def starting(self, covariance: EffectCovariance) -> EffectCovariance:
        variances = np.zeros_like(covariance.variances)
        variances[-1] = covariance.variances[-1]
        return EffectCovariance.diagonal(variances)


class Isotropic(CovarianceFamily):
    """One variance for all slopes."""

    variances = "all"


class Diagonal(CovarianceFamily):
    """A variance for each slope."""

    variances = "each"


class Full(CovarianceFamily):
    """Any covariance, with a prior about the diagonal of the isotropic fit."""

    refines = True

    def with_prior(self, start: EffectCovariance) -> Self:
        return replace(self, center=start.own)


class Factor(CovarianceFamily):
    """Some directions of the slopes, and one variance around them (a factor analysis)."""

    variances = "all"
    refines = True

    @property
    def n_directions(self) -> int:
        return self.n_components


COVARIANCE_FAMILIES: dict[str, type[CovarianceFamily]] = {
    "intercept": InterceptOnly,
    "isotropic": Isotropic,
    "diagonal": Diagonal,
    "full": Full,
    "factor": Factor,
}
