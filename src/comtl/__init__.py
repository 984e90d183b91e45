"""comtl: co-clustering for multitask learning."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .hierarchical.hierarchical_estimators import HierarchicalClassifier, HierarchicalRegressor
from .model_selection import (
    BiFactorClassifierCV,
    BiFactorRegressorCV,
    TriFactorClassifierCV,
    TriFactorRegressorCV,
)
from .models.coclustering import (
    BiFactorClassifier,
    BiFactorRegressor,
    TriFactorClassifier,
    TriFactorRegressor,
)
from .rows.disk import open_rows, parquet_blocks, spool_rows
from .rows.fit_input import pack_tasks
from .rows.folds import TaskStratifiedKFold
from .saving import load

__version__ = "0.2.0"

if TYPE_CHECKING:
    from .stacking.multitask import MultitaskClassifier, MultitaskRegressor

_MODULES = frozenset({"datasets", "evaluation", "plot", "tables"})
_STACKS = frozenset({"MultitaskClassifier", "MultitaskRegressor"})
"""What is imported when it is first named: modules, some of which need more than comtl, and stacks,
which need most of it."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _STACKS:
        return getattr(import_module(".stacking.multitask", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BiFactorClassifier",
    "BiFactorClassifierCV",
    "BiFactorRegressor",
    "BiFactorRegressorCV",
    "HierarchicalClassifier",
    "HierarchicalRegressor",
    "MultitaskClassifier",
    "MultitaskRegressor",
    "TaskStratifiedKFold",
    "TriFactorClassifier",
    "TriFactorClassifierCV",
    "TriFactorRegressor",
    "TriFactorRegressorCV",
    "__version__",
    "load",
    "open_rows",
    "pack_tasks",
    "parquet_blocks",
    "spool_rows",
]
