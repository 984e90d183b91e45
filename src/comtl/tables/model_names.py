"""Estimators by their names on the command line."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..evaluation.reference_models import simple_model
from ..hierarchical.hierarchical_estimators import HierarchicalClassifier, HierarchicalRegressor
from ..hierarchical.intervals_mixin import IntervalMixin
from ..models.search_estimators import (
    BiFactorClassifierCV,
    BiFactorRegressorCV,
    TriFactorClassifierCV,
    TriFactorRegressorCV,
)
from ..models.task_model import TaskModel
from ..rows.fit_input import FitInput
from ..stacking.multitask_estimators import MultitaskClassifier, MultitaskRegressor
from .labels import CLASSIFICATION
from .table_errors import TableError

MODELS = ("auto", "hinges", "hierarchical", "bifactor", "trifactor", "pooled", "separate")
FORMER_MODELS = {"bends": "hinges"}
"""Models by their former names."""
SIMPLE = ("pooled", "separate")
ESTIMATORS: dict[str, tuple[Any, Any]] = {
    "auto": (MultitaskRegressor, MultitaskClassifier),
    "hinges": (MultitaskRegressor, MultitaskClassifier),
    "hierarchical": (HierarchicalRegressor, HierarchicalClassifier),
    "bifactor": (BiFactorRegressorCV, BiFactorClassifierCV),
    "trifactor": (TriFactorRegressorCV, TriFactorClassifierCV),
}
"""Regressor and classifier by name."""
RANKS = (1, 2, 4, 8)
CLUSTERS = (2, 5)
ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0)
FOLDS = 3


def choose_model(
    name: str, kind: str, rows: FitInput, *, seed: int = 0, jobs: int | None = None
) -> TaskModel:
    """Estimator, not fitted, by its name on the command line."""
    name, classes = FORMER_MODELS.get(name, name), kind == CLASSIFICATION
    if name not in MODELS:
        raise TableError(f"model is one of {', '.join(MODELS)}, got {name!r}.")
    if name in SIMPLE:
        with warnings.catch_warnings():
            # A penalty whose fit stops early can still be distinguished from the others.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return simple_model(name, classes, rows)
    estimator = ESTIMATORS[name][classes]
    if name == "hierarchical":
        return estimator()
    if name in ("auto", "hinges"):
        return estimator(basis="hinges" if name == "hinges" else None, n_jobs=jobs)
    ranks = (RANKS,) if name == "bifactor" else (CLUSTERS, CLUSTERS)
    return estimator(*ranks, alphas=ALPHAS, cv=FOLDS, shared=True, random_state=seed, n_jobs=jobs)


def choose_adaptable(estimator: Any) -> TaskModel:
    """Refuse a model that takes no new tasks once it is fitted."""
    if isinstance(estimator, TaskModel) and estimator._algorithm_class is not None:
        return estimator
    raise TableError(
        f"A {type(estimator).__name__} takes no new tasks once it is fitted: fit again with the "
        "rows of all tasks, or fit with --model bifactor, which does."
    )


def choose_interval_model(estimator: Any) -> IntervalMixin:
    """Refuse a model without intervals."""
    if isinstance(estimator, IntervalMixin):
        return estimator
    raise TableError(
        f"A {type(estimator).__name__} has no intervals: fit a regression with --model auto, "
        "--model hinges or --model hierarchical."
    )


def choose_classifier(estimator: Any, kind: str) -> Any:
    """Refuse a model without probabilities."""
    if kind == CLASSIFICATION:
        return estimator
    raise TableError(
        "Probabilities are for classes, and this model is a regression: ask for --interval, or fit "
        "with --kind classification."
    )
