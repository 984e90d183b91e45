r"""A step beyond each sweep, along the way from the last one.

Block descent creeps along the valley where ``F`` and ``G`` trade off. Two sweeps show its
direction once their factors are turned to match: with penalties on singular values alone ``F``
and ``G`` are defined up to a rotation. The longer step is kept only where it lowers the
objective; its length follows how often that is so. See benchmarks/bench_engine.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .arrays import Array, namespace
from .factors import Factors
from .penalties import spectral
from .state import State


@dataclass(frozen=True)
class Reach:
    """How far to go beyond a sweep, as a share of its step."""

    share: float = 0.5
    longer: float = 1.3
    shorter: float = 0.5
    most: float = 8.0

    def after(self, success: bool) -> Reach:
        """Return the reach to try next.

        Examples
        --------
        >>> from comtl.extrapolation import Reach
        >>> Reach().after(True).share, Reach().after(False).share
        (0.65, 0.25)
        """
        factor = self.longer if success else self.shorter
        return replace(self, share=min(factor * self.share, self.most))


def can_turn(state: State) -> bool:
    """Whether factors may be turned freely: all learned, penalised by singular values alone."""
    return not state.fixed and spectral(state.penalties.values())


def can_reach(state: State) -> bool:
    """Whether two sweeps show a direction: factors that turn to match, or one that is all."""
    learned = [penalty for name, penalty in state.penalties.items() if name not in state.fixed]
    return can_turn(state) or (len(learned) == 1 and learned[0].smooth)


def beyond(last: Factors, state: State, share: float) -> State:
    """State beyond the present one, on the line from the last factors."""
    point = state.factors

    def further(before: Array, now: Array) -> Array:
        return now if before is now else now + share * (now - before)

    if state.fixed:
        left, core, right = last.F, point.S, last.G
    elif point.S is None:
        turn = rotation(last.F.T @ point.F + last.G.T @ point.G)
        left, core, right = last.F @ turn, None, last.G @ turn
    else:
        one, other = rotation(last.F.T @ point.F), rotation(last.G.T @ point.G)
        left, right = last.F @ one, last.G @ other
        core = further(one.T @ last.S @ other, point.S)
    point = Factors(
        further(left, point.F),
        core,
        further(right, point.G),
        further(last.shared, point.shared),
        further(last.offset, point.offset),
        further(last.deviations, point.deviations),
    )
    return state.at(point).refreshed("F").refreshed("G")


def rotation(product: Array) -> Array:
    """Orthogonal matrix nearest to a small square one.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.extrapolation import rotation
    >>> rotation(np.array([[0.0, 2.0], [-3.0, 0.0]])).round(6) + 0.0
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    left, _, right = namespace(product).linalg.svd(product)
    return left @ right
