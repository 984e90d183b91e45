"""Penalties of a factor, by their public names, and the relations that a factor learns."""

from .constraints import Constraint, Membership, Simplex
from .elastic_net import ElasticNet
from .entrywise import L1, Free, NonNegative, Ridge
from .learned_relation import LearnedRelation
from .penalty import LEAST, Penalty, rotation_invariant

PENALTIES: dict[str | None, type[Penalty]] = {
    "relation": LearnedRelation,
    "ridge": Ridge,
    "l1": L1,
    "elastic_net": ElasticNet,
    "nonnegative": NonNegative,
    "simplex": Simplex,
    "clusters": Membership,
    None: Free,
}
"""Penalties by their public names."""


def penalty_of(name: str | None, strength: float) -> Penalty:
    """Penalty by its public name."""
    return PENALTIES[name].of_strength(strength)


def factor_penalties(*, core: bool) -> tuple[str, ...]:
    """Names of the penalties of feature and task factor; hard clusters need a core between."""
    return tuple(name for name, one in PENALTIES.items() if name and (core or not one.discrete))


def core_penalties() -> tuple[str | None, ...]:
    """Names of the penalties of a core."""
    return tuple(name for name, one in PENALTIES.items() if one.entrywise)


__all__ = [
    "L1",
    "LEAST",
    "PENALTIES",
    "Constraint",
    "ElasticNet",
    "Free",
    "LearnedRelation",
    "Membership",
    "NonNegative",
    "Penalty",
    "Ridge",
    "Simplex",
    "core_penalties",
    "factor_penalties",
    "penalty_of",
    "rotation_invariant",
]
