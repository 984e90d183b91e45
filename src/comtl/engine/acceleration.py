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

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..arrays import Array, namespace
from ..factors import Factors, State, padded, thin_svd
from ..penalties import rotation_invariant


def balance_step(state: State) -> State:
    """Return the state with the same ``W`` and the lowest penalty found."""
    if state.fixed:
        return state
    # A split shows its worth only once balanced.
    candidates = (state, balanced(state), balanced(_split(state)))
    return min(candidates, key=lambda candidate: candidate.regularizer)


def split_exponents(penalties: Mapping[str, Any]) -> dict[str, float] | None:
    """Share of ``log σ`` that each factor takes; None where a penalty breaks the symmetry."""
    powers = {name: penalty.spectral_power for name, penalty in penalties.items()}
    if None in powers.values():
        return None
    total = sum(1.0 / power for power in powers.values())
    return {name: 1.0 / power / total for name, power in powers.items()}


def rectangular(values: Array, rows: int, columns: int) -> Array:
    """Rectangular diagonal matrix."""
    eye = namespace(values).eye(rows, columns, dtype=values.dtype)
    return eye * padded(values[None, :], columns)


def _split(state: State) -> State:
    """The state with the same ``W``, its singular values split by the exponents."""
    exponents = split_exponents(state.penalties)
    if exponents is None:
        return state
    point = state.factors
    K1, K2 = point.F.shape[1], point.G.shape[1]
    rank = min(K1, K2)
    U, sigma, V = thin_svd(point.feature_loadings, point.G)
    sizes = {name: sigma[None, :rank] ** share for name, share in exponents.items()}
    point = point.with_(
        F=padded(U[:, :rank] * sizes["F"], K1),
        S=None if point.S is None else rectangular(sizes["S"][0, :], K1, K2),
        G=padded(V[:, :rank] * sizes["G"], K2),
    )
    return state.at(point).updated("F").updated("G")


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
    if can_rotate(state):
        last = aligned(last, point)
    held = {name: getattr(point, name) for name in state.fixed}
    ahead = point.interpolate(last.with_(**held), -share)
    for name, penalty in state.learned.items():
        ahead = ahead.with_(**{name: penalty.prox(getattr(ahead, name), 0.0)})
    state = state.at(ahead)
    for name in state.learned:
        state = state.updated(name)
    return state


def aligned(last: Factors, point: Factors, turn: Callable[[Array], Array] | None = None) -> Factors:
    """Last factors, turned to match the present ones by ``turn`` of their inner products."""
    turn = turn or rotation
    left, core, right = last.F.mT @ point.F, last.S, last.G.mT @ point.G
    if core is None:
        left = right = turn(left + right)
    else:
        left, right = turn(left), turn(right)
        core = left.mT @ core @ right
    return last.with_(F=last.F @ left, S=core, G=last.G @ right)


def rotation(product: Array) -> Array:
    """Orthogonal matrix nearest to a small square one, or to each of many."""
    left, _, right = namespace(product).linalg.svd(product)
    return left @ right
