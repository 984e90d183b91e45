"""Figures of fitted models and of comparisons, drawn by matplotlib (extra ``report``)."""

from .fits import history, sensitivity
from .relations import feature_relation, task_relation
from .scores import calibration, task_errors
from .weights import coclusters

__all__ = [
    "calibration",
    "coclusters",
    "feature_relation",
    "history",
    "sensitivity",
    "task_errors",
    "task_relation",
]
