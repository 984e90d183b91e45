"""What the experiments on text share: a classifier tuned on training rows, its cut, its scores."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from comtl.models.task_model import TaskModel
from comtl.rows.fit_input import FitInput

from .methods import Method
from .metrics import choose_cut, macro_f
from .tuning import setting_text, tune

FOLDS = 3
COLUMNS = ("f", "f_pooled", "f_cut", "f_cut_pooled", "f_train", "cv_loss", "setting")
"""Macro-F at a cut of zero, at the threshold chosen on training rows, and what it reached there."""


def held_out_scores(model: TaskModel, rows: FitInput) -> np.ndarray:
    """Scores of the training rows by models that have not seen them."""
    scores = np.zeros(len(rows.y))
    for train, test in rows.splits(model, FOLDS):
        part, rest = rows.take(train), rows.take(test)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = clone(model)._fit_quietly(part)
        scores[test] = fitted.decision_function(rest.X, task=rest.task)
    return scores


def fit_and_score(method: Method, rows: FitInput, test: FitInput) -> dict[str, Any]:
    """Tune a method and its cut on training rows, and measure it on others."""
    tuned = tune(method, rows, text=True, folds=FOLDS)
    truth = np.asarray(rows.y) > 0
    reached, cuts = choose_cut(truth, held_out_scores(tuned.model, rows), np.asarray(rows.task))
    scores = tuned.model.decision_function(test.X, task=test.task)
    return {
        **scored(test, scores, cuts),
        "f_train": reached,
        "cv_loss": tuned.loss,
        "setting": setting_text(tuned.setting),
    }


def scored(test: FitInput, scores: np.ndarray, cuts: dict[Any, float]) -> dict[str, float]:
    """Macro-F of scores, threshold zero and as given."""
    task, truth = np.asarray(test.task), np.asarray(test.y) > 0
    names, codes = np.unique(task, return_inverse=True)
    own = np.array([cuts[name] for name in names.tolist()])[codes]
    plain, cut = macro_f(truth, scores > 0.0, task), macro_f(truth, scores > own, task)
    return {**plain, "f_cut": cut["f"], "f_cut_pooled": cut["f_pooled"]}
