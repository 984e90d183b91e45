"""The members of the stacked estimators: a fixed list, cut to what a data set has room for."""

from __future__ import annotations

from typing import Any

from ..arrays import DENSE_SIDE
from ..baselines import (
    FactoredClassifier,
    FactoredRegressor,
    IndependentClassifier,
    IndependentRegressor,
    PooledClassifier,
    PooledRegressor,
)
from ..hierarchical.coregionalised import (
    CoregionalisedRidgeClassifier,
    CoregionalisedRidgeRegressor,
    has_room,
)
from ..hierarchical.hierarchical_estimators import HierarchicalClassifier, HierarchicalRegressor
from ..hierarchical.population import too_wide
from ..models.cofactor_estimators import BiFactorClassifier, BiFactorRegressor
from .member_estimators import FactorMember, HierarchicalMember, WideMember
from .members import Member, Shape

STEPS, FEWER_STEPS = 40, 20
"""Steps of a member's fit: the marginal likelihood has nearly reached its top; see
benchmarks/bench_roughness.md."""
LITTLE_WORK, MOST_WORK = 2e7, 1e8
"""Tasks times the cube of the features, which a step of evidence costs, up to which all structures
take part, and up to which some do; see benchmarks/bench_width.md."""
FEWER = ("intercept", "isotropic", "full", "factor 1", "factor 3", "factor 8")
DIRECTIONS = (1, 2, 3, 5, 8, 12)
RANK = 15
PENALTIES = (0.03, 0.3, 3.0)
RIDGES = (10.0, 30.0)
RELATED, NOISES = (1, 3), (1.0, 3.0, 10.0, 30.0)
TEXT = {"standardize": False, "loss": "squared", "smoothing": 10.0, "alpha_task": 1.0}
REGRESSORS: dict[str, Any] = {
    "pooled": PooledRegressor,
    "independent": IndependentRegressor,
    "hierarchical": HierarchicalRegressor,
    "related": CoregionalisedRidgeRegressor,
    "bifactor": BiFactorRegressor,
    "factored": FactoredRegressor,
}
CLASSIFIERS: dict[str, Any] = {
    "pooled": PooledClassifier,
    "independent": IndependentClassifier,
    "hierarchical": HierarchicalClassifier,
    "related": CoregionalisedRidgeClassifier,
    "bifactor": BiFactorClassifier,
    "factored": FactoredClassifier,
}


def default_members(shape: Shape, *, classification: bool) -> list[Member]:
    """Members worth their time at this size, simpler structures before those that start from them.

    Classes of a single task have nothing that tells structures apart.
    """
    kinds = CLASSIFIERS if classification else REGRESSORS
    P, T = shape.n_features, shape.n_columns
    wide = is_wide(P, T)
    # Columns of text are of one scale as they are.
    text = wide and shape.sparse
    scaled = {"standardize": not text}
    plain = {**scaled, "random_state": 0}
    members: list[Member] = [FactorMember("pooled", kinds["pooled"](1.0, **plain))]
    related = wide and has_room(P, T)
    if T > 1 and not related and P <= DENSE_SIDE:
        members.append(FactorMember("independent", kinds["independent"](1.0, **plain)))
    if not wide:
        members += _hierarchical(kinds["hierarchical"], shape, classification=classification)
    if min(P, T) < 2:
        return members
    if related and shape.on_device:
        raise TypeError(
            f"X has {P} features and there are {T} tasks: some members for tables so wide work on "
            "arrays of NumPy alone. Convert them first, or use BiFactor models."
        )
    if related:
        # Cheaper than a Gram for each task.
        members.append(WideMember("independent", kinds["related"](0, rest=1.0, **scaled)))
        members += [
            WideMember(
                f"related {count}, {noise:g}", kinds["related"](count, noise=noise, **scaled)
            )
            for count in RELATED
            for noise in NOISES
        ]
    if text:
        return [*members, FactorMember("bifactor", kinds["bifactor"](10, random_state=0, **TEXT))]
    for kind, penalties in (("bifactor", PENALTIES), ("factored", RIDGES)):
        members += [
            FactorMember(f"{kind} {one:g}", kinds[kind](RANK, alpha_task=one, random_state=0))
            for one in penalties
        ]
    return members


def reference_member(names: list[str]) -> int | None:
    """Number of the member that serves where rows are too few to tell: the mixed model."""
    known = [name for name in ("isotropic", "intercept") if name in names]
    return names.index(known[0]) if known else None


def is_wide(n_features: int, n_tasks: int) -> bool:
    """Whether covariances of the features are too many for the tasks."""
    return too_wide(n_features, n_tasks) or _work(n_features, n_tasks) > MOST_WORK


def _work(n_features: int, n_tasks: int) -> int:
    return n_tasks * (n_features + 1) ** 3


def _hierarchical(kind: Any, shape: Shape, *, classification: bool) -> list[Member]:
    structures, steps = _structures(shape.n_features, shape.n_tasks), STEPS
    if _work(shape.n_features, shape.n_columns) > LITTLE_WORK:
        structures = {name: structures[name] for name in FEWER if name in structures}
        steps = FEWER_STEPS
    # Guesses gain by shrinking what tasks have in common: benchmarks/bench_shrinking.md.
    common = {"shrink_common": True, "max_iter": steps}
    return [
        HierarchicalMember(name, kind(**setting, **common))
        for name, setting in structures.items()
        if "noise" not in setting or not classification
    ]


def _structures(n_features: int, n_tasks: int) -> dict[str, dict[str, Any]]:
    settings: dict[str, dict[str, Any]] = {"intercept": {"structure": "intercept"}}
    if n_tasks < 2:
        return settings
    settings["isotropic"] = {"structure": "isotropic"}
    if n_features > 1:
        settings["diagonal"] = {"structure": "diagonal"}
    # A slope may go with the level, also where it is the only one.
    settings["full"] = {"structure": "full"}
    settings["full, loose"] = {"structure": "full", "prior_weight": 1.0}
    settings["full, own noise"] = {"structure": "full", "noise": "task"}
    if n_features < 2:
        return settings
    # Where columns come in one unit, as scores of a principal component analysis, spread counts.
    settings["isotropic, as given"] = {"structure": "isotropic", "standardize": False}
    settings["full, as given"] = {"structure": "full", "standardize": False}
    for count in DIRECTIONS:
        if count < min(n_features, n_tasks):
            settings[f"factor {count}"] = {"structure": "factor", "n_components": count}
    return settings
