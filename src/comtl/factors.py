"""The unknowns of a model of factors, and their state as the fit goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .arrays import Array, dot, namespace, orthonormal
from .penalties import Penalty
from .saving.registry import saved


@saved
@dataclass(frozen=True)
class Factors:
    """Factors, shared part and intercepts of ``T`` tasks on ``P`` features.

    Parameters
    ----------
    F : array of shape (P, K1)
        Feature factor.
    S : array of shape (K1, K2) or None
        Core; None for the two-factor model, where K1 = K2 and the core is the identity.
    G : array of shape (T, K2)
        Task factor.
    shared : array of shape (P,)
        Common part ``w0`` of all tasks.
    offset : float
        Common part of the intercepts.
    random_intercepts : array of shape (T,)
        What each task's intercept adds to the offset.
    """

    F: Array
    S: Array
    G: Array
    shared: Array
    offset: float
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
        """Intercept of each task."""
        return self.offset + self.random_intercepts

    @property
    def coef_shape(self) -> tuple[int, int]:
        """Features and tasks."""
        return self.F.shape[0], self.G.shape[0]

    @property
    def coef(self) -> Array:
        """Weights of all tasks, ``P × T``: for small sizes and for looking at."""
        return self.shared[:, None] + self.F @ self.loadings.T

    def with_(self, **changes: Any) -> Factors:
        """Return a copy with some parts replaced."""
        return replace(self, **changes)

    def interpolate(self, other: Factors, share: float) -> Factors:
        """Return the point at ``share`` of the way to another: used along one block only."""

        def between(a: Any, b: Any) -> Any:
            return a if a is b else a + share * (b - a)

        core = None if self.S is None else between(self.S, other.S)
        return Factors(
            between(self.F, other.F),
            core,
            between(self.G, other.G),
            between(self.shared, other.shared),
            between(self.offset, other.offset),
            between(self.random_intercepts, other.random_intercepts),
        )


def padded(values: Array, columns: int) -> Array:
    """First columns of a matrix, zeros for those it lacks."""
    xp = namespace(values)
    missing = max(columns - values.shape[1], 0)
    blank = xp.zeros((values.shape[0], missing), dtype=values.dtype)
    kept = values if values.shape[1] <= columns else values[:, :columns]
    return xp.concat([kept, blank], axis=1)


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
    """Factors, their penalties, and the penalties of shared part and intercepts.

    Parameters
    ----------
    factors : Factors
        The unknowns.
    penalties : mapping
        Penalty of the factors "F", "S" and "G"; without "S" for the two-factor model.
    fixed : frozenset of str
        Factors that are held where they are.
    shared : float or None
        Ridge penalty of the common part ``w0``; None for no common part.
    intercept : bool
        Whether scores have an intercept.
    intercept_penalty : float
        Penalty of the tasks' deviations from the common intercept; infinite for none.
    estimates_pooling : bool
        Whether that penalty is estimated as the fit goes on; else it stays as given.
    """

    factors: Factors
    penalties: Mapping[str, Penalty]
    fixed: frozenset[str] = field(default_factory=frozenset)
    shared: float | None = None
    intercept: bool = True
    intercept_penalty: float = float("inf")
    estimates_pooling: bool = True

    @property
    def regularizer(self) -> float:
        """All of the objective but the loss."""
        point = self.factors
        total = 0.0
        for name, penalty in self.penalties.items():
            if name not in self.fixed:
                total += penalty.value(getattr(point, name))
        if self.shared is not None:
            total += self.shared * dot(point.shared, point.shared)
        if self.has_random_intercepts:
            total += self.intercept_penalty * dot(point.random_intercepts, point.random_intercepts)
        return total

    @property
    def floor(self) -> float:
        """What the smoothing adds to the objective whatever the factors."""
        return sum(p.floor for name, p in self.penalties.items() if name not in self.fixed)

    @property
    def has_random_intercepts(self) -> bool:
        """Whether tasks have intercepts of their own."""
        return self.intercept and self.intercept_penalty < float("inf")

    @property
    def is_annealed(self) -> bool:
        """Whether the smoothing of every penalty has come to rest."""
        return all(p.is_annealed for name, p in self.penalties.items() if name not in self.fixed)

    @property
    def unfactored(self) -> bool:
        """Whether the task factor holds the weights themselves: a held square ``F``, one."""
        rows, columns = self.factors.F.shape
        return "F" in self.fixed and "G" not in self.fixed and rows == columns

    def at(self, factors: Factors) -> State:
        """Return the state with other factors."""
        return replace(self, factors=factors)

    def penalized(self, **changes: Penalty) -> State:
        """Return the state with some penalties replaced."""
        return replace(self, penalties={**self.penalties, **changes})

    def with_(self, **changes: Any) -> State:
        """Return a copy with some parts replaced."""
        return replace(self, **changes)

    def updated(self, name: str) -> State:
        """Return the state with one factor's relation brought up to date."""
        fresh = self.penalties[name].updated(getattr(self.factors, name))
        return self.penalized(**{name: fresh})
