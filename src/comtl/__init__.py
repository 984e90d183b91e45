"""comtl: co-clustering for multitask learning."""

from importlib import import_module
from types import ModuleType

from .hierarchical.hierarchical_estimators import HierarchicalClassifier, HierarchicalRegressor
from .models.cofactor_estimators import (
    BiFactorClassifier,
    BiFactorRegressor,
    TriFactorClassifier,
    TriFactorRegressor,
)
from .models.search_estimators import (
    BiFactorClassifierCV,
    BiFactorRegressorCV,
    TriFactorClassifierCV,
    TriFactorRegressorCV,
)
from .rows.disk import open_rows, parquet_blocks, spool_rows
from .rows.folds import TaskStratifiedKFold
from .rows.packing import pack_tasks
from .saving import load
from .stacking.multitask_estimators import MultitaskClassifier, MultitaskRegressor

__version__ = "0.1.0"

_LATER = frozenset({"datasets", "evaluation", "plot", "tables"})
"""Modules that are imported when they are first named: some need more than comtl itself does."""


def __getattr__(name: str) -> ModuleType:
    if name in _LATER:
        return import_module(f".{name}", __name__)
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
