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
from ..models.task_model import TaskModel

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


def default_regression_members(
    n_features: int, n_tasks: int, *, together: int, sparse: bool
) -> dict[str, TaskModel]:
    """Members for values, by name.

    ``together`` is the number of tasks that share a prior.
    """
    return _members(
        {
            "pooled": PooledRegressor,
            "independent": IndependentRegressor,
            "hierarchical": HierarchicalRegressor,
            "related": CoregionalisedRidgeRegressor,
            "bifactor": BiFactorRegressor,
            "factored": FactoredRegressor,
        },
        n_features,
        n_tasks,
        together,
        sparse,
    )


def default_classification_members(
    n_features: int, n_tasks: int, *, together: int, sparse: bool
) -> dict[str, TaskModel]:
    """Members for classes, by name.

    ``n_tasks`` counts the classes of a task beyond two, and ``together`` the tasks of one class,
    which share a prior: classes of a single task have nothing that tells structures apart.
    """
    return _members(
        {
            "pooled": PooledClassifier,
            "independent": IndependentClassifier,
            "hierarchical": HierarchicalClassifier,
            "related": CoregionalisedRidgeClassifier,
            "bifactor": BiFactorClassifier,
            "factored": FactoredClassifier,
        },
        n_features,
        n_tasks,
        together,
        sparse,
    )


def reference_member(library: dict[str, TaskModel]) -> int | None:
    """Number of the member that serves where rows are too few to tell: the mixed model."""
    names = list(library)
    known = [name for name in ("isotropic", "intercept") if name in names]
    return names.index(known[0]) if known else None


def is_wide(n_features: int, n_tasks: int) -> bool:
    """Whether covariances of the features are too many for the tasks."""
    return too_wide(n_features, n_tasks) or _work(n_features, n_tasks) > MOST_WORK


def _work(n_features: int, n_tasks: int) -> int:
    return n_tasks * (n_features + 1) ** 3


def _members(
    kinds: dict[str, Any], P: int, T: int, together: int, sparse: bool
) -> dict[str, TaskModel]:
    wide = is_wide(P, T)
    # Columns of text are of one scale as they are.
    scaled = {"standardize": not (wide and sparse)}
    plain = {**scaled, "random_state": 0}
    members: dict[str, TaskModel] = {"pooled": kinds["pooled"](1.0, **plain)}
    related = wide and has_room(P, T)
    if T > 1 and not related and P <= DENSE_SIDE:
        members["independent"] = kinds["independent"](1.0, **plain)
    if not wide:
        structures = _structures(P, together)
        steps = STEPS
        if _work(P, T) > LITTLE_WORK:
            structures = {name: structures[name] for name in FEWER if name in structures}
            steps = FEWER_STEPS
        for name, setting in structures.items():
            if "noise" not in setting or kinds["hierarchical"] is HierarchicalRegressor:
                # Guesses gain by it: benchmarks/bench_shrinking.md.
                common = {"shrink_common": True, "max_iter": steps}
                members[name] = kinds["hierarchical"](**setting, **common)
    if min(P, T) < 2:
        return members
    if related:
        # Cheaper than a Gram for each task.
        members["independent"] = kinds["related"](0, rest=1.0, **scaled)
        for count in RELATED:
            for noise in NOISES:
                member = kinds["related"](count, noise=noise, **scaled)
                members[f"related {count}, {noise:g}"] = member
    if wide and sparse:
        members["bifactor"] = kinds["bifactor"](10, random_state=0, **TEXT)
        return members
    for penalty in PENALTIES:
        member = kinds["bifactor"](RANK, alpha_task=penalty, random_state=0)
        members[f"bifactor {penalty:g}"] = member
    for penalty in RIDGES:
        member = kinds["factored"](RANK, alpha_task=penalty, random_state=0)
        members[f"factored {penalty:g}"] = member
    return members


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
