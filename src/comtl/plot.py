"""Figures of fitted models and of comparisons, drawn by matplotlib (extra ``report``)."""

from .show.plot_curves import partial_dependence
from .show.plot_scores import calibration, history, sensitivity, task_errors
from .show.plot_weights import coclusters, feature_relation, task_relation

__all__ = [
    "calibration",
    "coclusters",
    "feature_relation",
    "history",
    "partial_dependence",
    "sensitivity",
    "task_errors",
    "task_relation",
]
