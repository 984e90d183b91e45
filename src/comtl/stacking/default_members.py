"""The members of the stacked estimators: a fixed list, less what a data set has no room for."""

from collections.abc import Callable, Iterator
from typing import Any

from .. import baselines
from ..arrays import DENSE_SIDE
from ..hierarchical.coregionalised import (
    CoregionalisedRidgeClassifier,
    CoregionalisedRidgeRegressor,
    has_room,
)
from ..hierarchical.hierarchical_estimators import (
    HierarchicalClassifier,
    HierarchicalRegressor,
    too_wide,
)
from ..models.coclustering import BiFactorClassifier, BiFactorRegressor
from .members import (
    EstimatorMember,
    Member,
    Shape,
    learn_factors,
    learn_hierarchical,
    learn_items,
    learn_wide,
)
from .trees import TreeMember

STEPS: dict[str, Any] = {"max_iter": 10, "tol": 3e-4}
"""Where a hierarchical member may stop, near the top; see benchmarks/bench_members.md."""
LITTLE_WORK, MOST_WORK = 2e7, 1e8
"""Tasks times the cube of the features, which a step of evidence costs, up to which all structures
take part, and up to which some do; see benchmarks/bench_width.md."""
FEWER = ("intercept", "isotropic", "full", "factor 3")
RANK, PENALTIES, FACTOR_COLUMNS = 15, (0.03, 0.3, 3.0), 5
"""Factors and penalties of BiFactor members, and columns from which there are any."""
ROUGH: dict[str, Any] = {"tol": 1e-2, "max_iter": 10}
"""Where factor models may stop: what is left to gain does not count on held-out rows."""
RELATED, NOISES = (1, 3), (1.0, 3.0, 10.0, 30.0)
TEXT: dict[str, Any] = {
    "standardize": False,
    "loss": "squared",
    "smoothing": 10.0,
    "alpha_task": 1.0,
}
ITEMS: dict[str, Any] = {"shared": True, "tol": 1e-3, "random_state": 0}
FEW_FACTORS: dict[str, Any] = {"n_components": 8, "alpha_shared": 16.0, **ITEMS}
MANY_FACTORS: dict[str, Any] = {
    "n_components": 15,
    "feature_penalty": "ridge",
    "task_penalty": "ridge",
    **ITEMS,
}
FEW_PENALTIES, MANY_PENALTIES = (1e-5, 3e-5, 1e-4), {5.0: 4.0, 20.0: 16.0, 40.0: 32.0, 80.0: 64.0}
"""Ratings have levels of items, with penalties of the latter values, and a few strong factors or
many weak ones: see :func:`learn_items` and benchmarks/bench_indicators.md."""
STRUCTURES: dict[str, dict[str, Any]] = {
    "intercept": {"structure": "intercept"},
    "intercept, noise per task": {"structure": "intercept", "noise": "task"},
    "isotropic": {"structure": "isotropic"},
    "diagonal": {"structure": "diagonal"},
    "full": {"structure": "full"},
    # Where columns come in one unit, as scores of a principal component analysis, spread counts.
    "isotropic, as given": {"structure": "isotropic", "standardize": False},
    "factor 3": {"structure": "factor", "n_components": 3},
}
"""Others were fitted and gained nothing beside these; see benchmarks/bench_members.md."""
HINGED = ("intercept", "isotropic", "diagonal", "full")
MAX_HINGED_COLUMNS, MAX_TREE_COLUMNS, MIN_TREE_ROWS = 60, 500, 60
"""Columns up to which hinges and trees are tried, and rows from which trees are."""
COMPONENTS, MAX_COMPONENT_ROWS = 2, 2000
"""Columns over rows from which folds are fitted to principal components, and rows up to which."""
WARM_TASKS = 2
"""Tasks for each number of a covariance from which folds may start at that of all rows."""
# A slope may go with the level, also where it is the only one.
ONE_FEATURE = ("intercept", "intercept, noise per task", "isotropic", "full")
KINDS: dict[str, tuple[Any, Any, Any]] = {
    "pooled": (learn_factors, baselines.PooledRegressor, baselines.PooledClassifier),
    "independent": (learn_factors, baselines.IndependentRegressor, baselines.IndependentClassifier),
    "hierarchical": (learn_hierarchical, HierarchicalRegressor, HierarchicalClassifier),
    "related": (learn_wide, CoregionalisedRidgeRegressor, CoregionalisedRidgeClassifier),
    "bifactor": (learn_factors, BiFactorRegressor, BiFactorClassifier),
    "items": (learn_items, BiFactorRegressor, BiFactorClassifier),
}


def default_members(shape: Shape, *, classification: bool) -> list[Member]:
    """Members worth their time at this size, simpler structures before those that start there."""

    P, T = shape.n_features, shape.n_columns

    def member(kind: str, name: str, hinged: bool = False, **settings: Any) -> Member:
        learn, *models = KINDS[kind]
        model = models[classification](**settings)
        width = P + hinged * shape.n_hinges
        warm = kind == "hierarchical" and (
            WARM_TASKS * _n_covariances(model, width) <= shape.n_tasks
        )
        return EstimatorMember(name, model, learn, hinged, warm)

    wide = is_wide(P, T)
    # Columns of text are of one scale as they are.
    items = wide and shape.indicators
    text = wide and shape.sparse and not items
    scaled: dict[str, Any] = {"standardize": False if text else "auto"}
    plain: dict[str, Any] = {"alpha": 1.0, "random_state": 0, **scaled}
    related = wide and has_room(P if not suits_components(shape) else shape.n_rows, T)
    members = []
    if wide:
        members.append(member("pooled", "pooled", **plain))
        if T > 1 and not related and not items and P <= DENSE_SIDE:
            members.append(member("independent", "independent", **plain))
    else:
        few = _work(P, T) > LITTLE_WORK
        # Guesses gain by shrinking what tasks have in common: benchmarks/bench_shrinking.md.
        common: dict[str, Any] = {"shrink_common": True, **STEPS}
        members += [
            member("hierarchical", name, **STRUCTURES[name], **common)
            for name in _structures(P, shape.n_tasks)
            if (not few or name in FEWER)
            and (name != "intercept, noise per task" or not classification)
        ]
        members += _hinged_members(shape, member, common)
    if min(P, T) < 2 or not (wide or P >= FACTOR_COLUMNS):
        return members
    if items:
        return members + [member("items", name, **one) for name, one in _factors_of_items()]
    if related and shape.on_device:
        raise TypeError(
            f"X has {P} features and there are {T} tasks: some members for tables so wide work on "
            "arrays of NumPy alone. Convert them first, or use BiFactor models."
        )
    if related:
        # Cheaper than a Gram for each task.
        members.append(member("related", "independent", n_components=0, rest=1.0, **scaled))
        members += [
            member("related", f"related {n}, {noise:g}", n_components=n, noise=noise, **scaled)
            for n in RELATED
            for noise in NOISES
        ]
    if text:
        return [*members, member("bifactor", "bifactor", n_components=10, random_state=0, **TEXT)]
    ranked: dict[str, Any] = {"n_components": RANK, "random_state": 0, **ROUGH}
    return members + [
        member("bifactor", f"bifactor {alpha:g}", alpha_task=alpha, **ranked) for alpha in PENALTIES
    ]


def _hinged_members(
    shape: Shape, member: Callable[..., Member], common: dict[str, Any]
) -> list[Member]:
    """Members with slopes of hinges too, as far as their covariances are few."""
    width = shape.n_features + shape.n_hinges
    if not shape.n_hinges or is_wide(width, shape.n_columns):
        return []
    few = _work(width, shape.n_columns) > LITTLE_WORK
    return [
        member("hierarchical", f"{name}, hinges", True, **STRUCTURES[name], **common)
        for name in HINGED
        if shape.n_tasks > 1 or name == "intercept"
        if not (few and name not in ("intercept", "isotropic"))
    ]


def _n_covariances(model: Any, width: int) -> int:
    """Numbers that a covariance of the effects is made of."""
    sizes = {"intercept": 1, "isotropic": 2, "diagonal": width, "full": width * (width + 1) // 2}
    return sizes.get(model.structure, width * model.n_components)


def suits_components(shape: Shape) -> bool:
    """Whether folds are worth fitting to principal components, which are at most the rows."""
    small = COMPONENTS * shape.n_rows < shape.n_features and shape.n_rows <= MAX_COMPONENT_ROWS
    named = shape.indicators or shape.on_device
    return small and not named and is_wide(shape.n_features, shape.n_columns)


def suits_hinges(shape: Shape) -> bool:
    """Whether hinges are worth a try unasked."""
    return not shape.sparse and not shape.on_device and shape.n_features <= MAX_HINGED_COLUMNS


def default_trees(shape: Shape) -> list[TreeMember]:
    """Trees to choose from: of text and of few rows none."""
    few = shape.n_rows < MIN_TREE_ROWS or shape.n_features > MAX_TREE_COLUMNS
    if shape.sparse or shape.on_device or few:
        return []
    return [TreeMember("trees on residuals"), TreeMember("trees", above_score=False)]


def _factors_of_items() -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and settings of models of ratings."""
    for alpha in FEW_PENALTIES:
        yield f"few factors {alpha:g}", {"alpha_task": alpha, **FEW_FACTORS}
    for alpha, levels in MANY_PENALTIES.items():
        settings = {"alpha_task": alpha, "alpha_shared": levels, **MANY_FACTORS}
        yield f"many factors {alpha:g}", settings


def reference_member(names: list[str]) -> int | None:
    """Number of the member to fall back on where rows are few: the mixed model."""
    known = [name for name in ("isotropic", "intercept") if name in names]
    return names.index(known[0]) if known else None


def is_wide(n_features: int, n_tasks: int) -> bool:
    """Whether covariances of the features are too many for the tasks."""
    return too_wide(n_features, n_tasks) or _work(n_features, n_tasks) > MOST_WORK


def _work(n_features: int, n_tasks: int) -> int:
    return n_tasks * (n_features + 1) ** 3


def _structures(n_features: int, n_tasks: int) -> list[str]:
    """Names of the structures that there are features and tasks for."""
    if n_tasks < 2:
        return ["intercept"]
    if n_features < 2:
        return list(ONE_FEATURE)
    most = min(n_features, n_tasks)
    return [name for name, one in STRUCTURES.items() if one.get("n_components", 0) < most]
