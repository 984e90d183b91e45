r"""Two moves that speed up block descent, which creeps where ``F`` and ``G`` trade off.

Balance: ``W`` stays put and the penalty falls, in closed form. Splitting ``W = UσVᵀ`` between the
factors is free: ``F = Uσ^x``, ``S = σ^y``, ``G = Vσ^z`` with ``x + y + z = 1``. A penalty with
root ``q`` (1 for the learned relation, 2 for ridge) is lowest when its factor takes the share
``(1/q) / Σ(1/q)`` of the exponent; scalars then balance the penalties' values.

Extrapolation: two sweeps show the direction of the valley, where penalties see singular values
alone once their factors are turned to match: ``F`` and ``G`` are then defined up to a rotation.
The longer step is kept only where it lowers the objective; its length follows how often that is
so. See benchmarks/bench_engine.md.
"""

from __future__ import annotations

import math

from ..arrays import Array, namespace
from ..factors import Factors, State, thin_svd
from ..penalties import Penalty, rotation_invariant


def balance_step(state: State) -> State:
    """Return the state with the same ``W`` and the lowest penalty found."""
    if state.fixed:
        return state
    # A split shows its worth only once balanced.
    candidates = (state, balanced(state), balanced(_split(state)))
    return min(candidates, key=lambda candidate: candidate.regularizer)


def split_exponents(penalties: dict[str, Penalty]) -> dict[str, float] | None:
    """Share of ``log σ`` that each factor takes; None where a penalty breaks the symmetry."""
    inverse: dict[str, float] = {}
    for name, penalty in penalties.items():
        if penalty.spectral_power is None:
            return None
        inverse[name] = 1.0 / penalty.spectral_power
    total = sum(inverse.values())
    return {name: value / total for name, value in inverse.items()}


def rectangular(values: Array, rows: int, columns: int) -> Array:
    """Rectangular diagonal matrix."""
    xp = namespace(values)
    matrix = xp.zeros((rows, columns), dtype=values.dtype)
    count = values.shape[0]
    matrix[:count, :count] = values[:, None] * xp.eye(count, dtype=values.dtype)
    return matrix


def split_factors(factors: Factors, exponents: dict[str, float]) -> Factors:
    """Return factors with the same ``W``, its singular values split by the exponents."""
    K1, K2 = factors.F.shape[1], factors.G.shape[1]
    rank = min(K1, K2)
    U, sigma, V = thin_svd(factors.feature_loadings, factors.G)
    U, sigma, V = U[:, :rank], sigma[:rank], V[:, :rank]
    F = (U * sigma[None, :] ** exponents["F"]) @ rectangular(sigma**0, sigma.shape[0], K1)
    G = (V * sigma[None, :] ** exponents["G"]) @ rectangular(sigma**0, sigma.shape[0], K2)
    core = None
    if factors.S is not None:
        core = rectangular(sigma ** exponents["S"], K1, K2)
    return factors.with_(F=F, S=core, G=G)


def _split(state: State) -> State:
    exponents = split_exponents(dict(state.penalties))
    if exponents is None:
        return state
    return state.at(split_factors(state.factors, exponents)).updated("F").updated("G")


def balanced(state: State) -> State:
    """Scale the factors by numbers of product one so that no penalty can be traded down."""
    logs, inverse = {}, {}
    for name, penalty in state.penalties.items():
        if penalty.homogeneity is None:
            continue
        # A factor without penalty would take all the scale; there is no balance.
        rate = penalty.scale_derivative(getattr(state.factors, name))
        if not rate > 0.0:
            return state
        logs[name] = math.log(rate)
        inverse[name] = 1.0 / penalty.homogeneity
    if len(logs) < 2:
        return state
    level = sum(inverse[n] * logs[n] for n in logs) / sum(inverse.values())
    for name in logs:
        scale = math.exp(inverse[name] * (level - logs[name]))
        scaled = getattr(state.factors, name) * scale
        state = state.at(state.factors.with_(**{name: scaled}))
        state = state.penalized(**{name: state.penalties[name].scaled(scale)})
    return state


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
