r"""A model in the course of its fit: the factors, and the penalties as learned so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .arrays import dot
from .factors import Factors
from .penalties import Penalty
from .saving.registry import saved


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
    pooling : float
        Penalty of the tasks' deviations from the common intercept; infinite for none.
    pools : bool
        Whether that penalty is estimated as the fit goes on; else it stays as given.
    """

    factors: Factors
    penalties: Mapping[str, Penalty]
    fixed: frozenset[str] = field(default_factory=frozenset)
    shared: float | None = None
    intercept: bool = True
    pooling: float = float("inf")
    pools: bool = True

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
        if self.pooled:
            total += self.pooling * dot(point.deviations, point.deviations)
        return total

    @property
    def least(self) -> float:
        """What the smoothing adds to the objective whatever the factors."""
        return sum(p.least for name, p in self.penalties.items() if name not in self.fixed)

    @property
    def pooled(self) -> bool:
        """Whether tasks have intercepts of their own."""
        return self.intercept and self.pooling < float("inf")

    @property
    def settled(self) -> bool:
        """Whether the smoothing of every penalty has come to rest."""
        return all(p.settled for name, p in self.penalties.items() if name not in self.fixed)

    @property
    def whole(self) -> bool:
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

    def refreshed(self, name: str) -> State:
        """Return the state with one factor's relation brought up to date."""
        fresh = self.penalties[name].refreshed(getattr(self.factors, name))
        return self.penalized(**{name: fresh})
