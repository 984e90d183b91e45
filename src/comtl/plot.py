"""Figures of fitted models and of comparisons, drawn by matplotlib (extra ``report``)."""

from .show.plot_fits import history, sensitivity
from .show.plot_relations import feature_relation, task_relation
from .show.plot_scores import calibration, task_errors
from .show.plot_weights import coclusters

__all__ = [
    "calibration",
    "coclusters",
    "feature_relation",
    "history",
    "sensitivity",
    "task_errors",
    "task_relation",
]
