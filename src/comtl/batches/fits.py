"""Many fits in their course: factors and penalties with one leading axis over the fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..arrays import Array, namespace
from ..factors import Factors
from .penalties import Relations, Ridges, spectra


@dataclass(frozen=True)
class Fits:
    """Factors of B fits, padded to one width by columns of zeros, and their penalties.

    Parameters
    ----------
    factors : Factors
        The unknowns, ``F`` (B, P, K) and so on; ``offset`` is (B, 1).
    penalties : dict
        Penalty of the factors "F", "S" and "G"; without "S" for the two-factor model.
    inside : array of shape (B, K)
        One for a column of a fit, zero for padding.
    shared : array of shape (B,) or None
        Ridge penalty of the common part; None for no common part.
    pooling : array of shape (B,)
        Penalty of the tasks' deviations from the common intercept; infinite for none.
    intercept, pools : bool
        Whether scores have an intercept, and whether its pooling is estimated.
    """

    factors: Factors
    penalties: dict[str, Any]
    inside: Array
    shared: Array | None
    pooling: Array
    intercept: bool
    pools: bool

    @cached_property
    def pooled(self) -> Array:
        """Whether the tasks of a fit have intercepts of their own."""
        return self.pooling < float("inf") if self.intercept else self.pooling < 0.0

    @cached_property
    def double(self) -> Array:
        """Curvature of the penalty of the deviations; one where there are none."""
        xp = namespace(self.pooling)
        return xp.where(self.pooled, 2.0 * self.pooling, xp.ones_like(self.pooling))

    @cached_property
    def member(self) -> Array:
        """One for fits whose tasks have intercepts of their own, zero for the others."""
        return namespace(self.pooling).astype(self.pooled, self.pooling.dtype)

    @cached_property
    def factor_penalty(self) -> Array:
        """Penalties of the factors alone."""
        return sum(p.value(getattr(self.factors, name)) for name, p in self.penalties.items())

    @property
    def regularizer(self) -> Array:
        """All of the objectives but the loss."""
        xp = namespace(self.pooling)
        point, total = self.factors, self.factor_penalty
        if self.shared is not None:
            total = total + self.shared * xp.sum(point.shared**2, axis=1)
        # Deviations are zero where there are none.
        return total + 0.5 * self.double * xp.sum(point.deviations**2, axis=1)

    @property
    def learned(self) -> list[Relations]:
        """Penalties with a smoothing."""
        return [p for p in self.penalties.values() if not isinstance(p, Ridges)]

    @property
    def least(self) -> Array:
        """What the smoothing adds to the objectives whatever the factors."""
        return sum(p.least for p in self.learned)

    @property
    def settled(self) -> Array:
        """Whether the smoothing of every penalty has come to rest."""
        one, other = (p.settled for p in self.learned)
        return one & other

    def at(self, **changes: Array) -> Fits:
        """Return the fits with some of the unknowns replaced."""
        return replace(self, factors=replace(self.factors, **changes))

    def with_(self, **changes: Any) -> Fits:
        """Return a copy with some parts replaced."""
        return replace(self, **changes)

    def penalized(self, **changes: Any) -> Fits:
        """Return the fits with some penalties replaced."""
        return replace(self, penalties={**self.penalties, **changes})

    @property
    def refreshed(self) -> Fits:
        """The fits with the relations of both factors brought up to date."""
        F, G, count = self.factors.F, self.factors.G, self.pooling.shape[0]
        # One decomposition for both, since its time hardly grows with their number.
        products = namespace(F).concat([F.mT @ F, G.mT @ G], axis=0)
        squares, turn = spectra(products)
        return self.penalized(
            F=self.penalties["F"].of(squares[:count, ...], turn[:count, ...]),
            G=self.penalties["G"].of(squares[count:, ...], turn[count:, ...]),
        )
