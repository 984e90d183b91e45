r"""Extrapolation after each sweep, along the way from the last one.

Block descent creeps along the valley where ``F`` and ``G`` trade off. Two sweeps show its
direction, where penalties see singular values alone once their factors are turned to match: ``F``
and ``G`` are then defined up to a rotation. The longer step is kept only where it lowers the
objective; its length follows how often that is so. See benchmarks/bench_engine.md.
"""

from __future__ import annotations

from ..arrays import Array, namespace
from ..factors import Factors, State
from ..penalties import rotation_invariant


def can_rotate(state: State) -> bool:
    """Whether factors may be turned freely: all learned, penalised by singular values alone."""
    return not state.fixed and rotation_invariant(state.penalties.values())


def extrapolate(last: Factors, state: State, share: float) -> State:
    """State on the line from the last factors, rotated to match where penalties allow it."""
    point = state.factors
    left, core, right = last.F, last.S, last.G
    if can_rotate(state):
        if core is None:
            one = other = rotation(last.F.T @ point.F + last.G.T @ point.G)
        else:
            one, other = rotation(last.F.T @ point.F), rotation(last.G.T @ point.G)
            core = one.T @ core @ other
        left, right = left @ one, right @ other

    def extrapolate_linear(before: Array, now: Array) -> Array:
        return now + share * (now - before)

    moved = {}
    for name, before in (("F", left), ("S", core), ("G", right)):
        if before is not None and name not in state.fixed:
            ahead = extrapolate_linear(before, getattr(point, name))
            moved[name] = state.penalties[name].prox(ahead, 0.0)
    point = point.with_(
        **moved,
        shared=extrapolate_linear(last.shared, point.shared),
        offset=extrapolate_linear(last.offset, point.offset),
        random_intercepts=extrapolate_linear(last.random_intercepts, point.random_intercepts),
    )
    state = state.at(point)
    for name in moved:
        state = state.updated(name)
    return state


def rotation(product: Array) -> Array:
    """Orthogonal matrix nearest to a small square one."""
    left, _, right = namespace(product).linalg.svd(product)
    return left @ right
