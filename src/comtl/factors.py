"""The unknowns of a model of factors, and their state as the fit goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

from .arrays import Array, dot, namespace, orthonormal
from .arrays.algebra import along
from .penalties import Penalty
from .saving.registry import saved


@saved
@dataclass(frozen=True)
class Factors:
    """Factors, shared part and intercepts of ``T`` tasks on ``P`` features.

    In a batch of fits every array has a leading axis, and the offset is one, (B, 1).
    """

    F: Array  # (P, K1)
    S: Array  # None for two factors, where K1 = K2
    G: Array  # (T, K2)
    shared: Array  # common part w0 of all tasks
    offset: float  # common part of the intercepts
    random_intercepts: Array

    @property
    def loadings(self) -> Array:
        """``M = G Sᵀ`` (T × K1): how each task mixes the columns of ``F``."""
        return self.G if self.S is None else self.G @ self.S.mT

    @property
    def feature_loadings(self) -> Array:
        """``F S`` (P × K2): what each column of ``G`` stands for."""
        return self.F if self.S is None else self.F @ self.S

    @property
    def intercepts(self) -> Array:
        return self.offset + self.random_intercepts

    @property
    def coef(self) -> Array:
        """Weights of all tasks, ``P × T``: for small sizes and for looking at."""
        return self.shared[:, None] + self.F @ self.loadings.T

    @property
    def task_weights(self) -> Array:
        """Weights of each task with its intercept, ``T × (P + 1)``."""
        weights = self.loadings @ self.F.mT + self.shared[..., None, :]
        return namespace(weights).concat([weights, self.intercepts[..., None]], axis=-1)

    def with_(self, **changes: Any) -> Factors:
        return replace(self, **changes)

    def plus(self, **steps: Any) -> Factors:
        """Return the point after a step of each unknown that is named."""
        return replace(self, **{name: getattr(self, name) + step for name, step in steps.items()})

    def interpolate(self, other: Factors, share: Any) -> Factors:
        """Return the point at ``share`` of the way to another, which may lie beyond either."""

        def between(name: str) -> Any:
            here, there = getattr(self, name), getattr(other, name)
            if here is there:
                return here
            return here + along(share, getattr(here, "ndim", 0)) * (there - here)

        return Factors(**{one.name: between(one.name) for one in fields(self)})


def padded(values: Array, columns: int) -> Array:
    """First columns of a matrix, or of each of many, and zeros for those it lacks."""
    if values.shape[-1] == columns:
        return values
    xp = namespace(values)
    kept = min(columns, values.shape[-1])  # the array API knows no slices beyond the end
    blank = xp.zeros((*values.shape[:-1], columns - kept), dtype=values.dtype)
    return xp.concat([values[..., :kept], blank], axis=-1)


def thin_svd(left: Array, right: Array) -> tuple[Array, Array, Array]:
    """Singular vectors and values of ``left @ right.T`` without forming it: ``U, σ, V``."""
    xp = namespace(left)
    left, upper = orthonormal(left)
    right, lower = orthonormal(right)
    core = upper @ lower.T
    U, sigma, Vt = xp.linalg.svd(core, full_matrices=False)
    return left @ U, sigma, right @ Vt.T


@saved
@dataclass(frozen=True)
class State:
    """Factors, their penalties, and the penalties of shared part and intercepts."""

    factors: Factors
    penalties: Mapping[str, Penalty]  # by factor: "F", "G" and perhaps "S"
    fixed: frozenset[str] = field(default_factory=frozenset)
    shared: float | None = None  # ridge penalty of w0; None for no common part
    intercept: bool = True
    intercept_penalty: float = float("inf")
    estimates_pooling: bool = True  # whether that penalty is estimated as the fit goes on

    @property
    def learned(self) -> dict[str, Penalty]:
        """Penalties of the factors that are not held."""
        return {name: p for name, p in self.penalties.items() if name not in self.fixed}

    @cached_property
    def factor_penalty(self) -> float:
        """Penalties of the factors."""
        return sum(p.value(getattr(self.factors, name)) for name, p in self.learned.items())

    @property
    def regularizer(self) -> float:
        """All of the objective but the loss."""
        point, total = self.factors, self.factor_penalty
        if self.shared is not None:
            total += self.shared * dot(point.shared, point.shared)
        if self.has_random_intercepts:
            total += self.intercept_penalty * dot(point.random_intercepts, point.random_intercepts)
        return total

    @property
    def floor(self) -> float:
        """What the smoothing adds to the objective whatever the factors."""
        return sum(p.floor for p in self.learned.values())

    @property
    def has_random_intercepts(self) -> bool:
        return self.intercept and self.intercept_penalty < float("inf")

    @property
    def deviates(self) -> Any:
        """One where tasks have intercepts of their own; in a batch zero for fits without."""
        return 1.0

    @property
    def deviation_curvature(self) -> Any:
        """Curvature of the penalty of the deviations."""
        return 2.0 * self.intercept_penalty

    @property
    def rank(self) -> Any:
        """Rank of what the factors may learn."""
        rank = min(self.factors.F.shape[1], self.factors.G.shape[1])
        return 0 if self.fixed >= {"F", "G"} else rank

    @property
    def is_annealed(self) -> bool:
        """Whether the smoothing of every penalty has come to rest."""
        return all(p.is_annealed for p in self.learned.values())

    @property
    def unfactored(self) -> bool:
        """Whether the task factor holds the weights themselves: a held square ``F``, one."""
        rows, columns = self.factors.F.shape
        return "F" in self.fixed and "G" not in self.fixed and rows == columns

    def at(self, factors: Factors) -> Self:
        return replace(self, factors=factors)

    def penalized(self, **changes: Penalty) -> Self:
        return replace(self, penalties={**self.penalties, **changes})

    def with_(self, **changes: Any) -> Self:
        return replace(self, **changes)

    def updated(self, name: str) -> Self:
        """Return the state with one factor's relation brought up to date."""
        fresh = self.penalties[name].updated(getattr(self.factors, name))
        return self.penalized(**{name: fresh})

    def initialised(self, smoothing: float) -> Self:
        """Return the state with penalties as a fit starts with them."""
        items = self.penalties.items()
        fresh = {k: p.initialised(getattr(self.factors, k), smoothing) for k, p in items}
        return self.with_(penalties=fresh)

    def annealed(self, shrink: float, floor: float) -> Self:
        """Return the state with the smoothing of its penalties lowered."""
        items = self.penalties.items()
        lower = {k: p.annealed(getattr(self.factors, k), shrink, floor) for k, p in items}
        return self.with_(penalties=lower)
