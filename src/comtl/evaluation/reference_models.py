"""The reference models that a model is compared with: one for all tasks, one for each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.base import clone

from ..baselines import (
    IndependentClassifier,
    IndependentRegressor,
    PooledClassifier,
    PooledRegressor,
)
from ..models.search import search
from ..models.training import TaskModel
from ..rows.fit_input import FitInput
from ..rows.reading import read_rows
from ..stacking.hinges import Hinges
from ..stacking.multitask import MultitaskModel

PENALTIES = tuple(10.0**power for power in range(-2, 4))


def choose_hinges(model: Any) -> Hinges:
    """Bends that a fitted model took; none for models that have no use for them."""
    return model._hinges if isinstance(model, MultitaskModel) else Hinges.none()


def simple_model(name: str, like: TaskModel, rows: FitInput) -> TaskModel:
    """Ridge model, not fitted, with the penalty that cross-validation on these rows finds best.

    Parameters
    ----------
    name : {"pooled", "separate"}
        One model for all tasks, or one for each.
    like : estimator
        Whose kind, regressor or classifier, and task column it takes.
    rows : Rows
        What it will be fitted to.

    Returns
    -------
    estimator
        The model.
    """
    return _tuned(name, like._classification, like.task_column, rows)[1]


def simple_fit(
    name: str, like: TaskModel, part: FitInput, rest: FitInput
) -> tuple[TaskModel, FitInput]:
    """Reference model fitted to ``part``, and ``rest`` as that model takes it.

    Where ``like``, a fitted model, took hinges, the reference has the choice of the same hinges,
    by cross-validation: what tells the two apart is what they do with tasks.
    """
    found = [(*_tuned(name, like._classification, like.task_column, part), part, rest)]
    hinges = choose_hinges(like)
    if len(hinges.columns):
        bent, bent_rest = (_with_hinges(hinges, like, rows) for rows in (part, rest))
        found.append((*_tuned(name, like._classification, None, bent), bent, bent_rest))
    _, model, train, test = min(found, key=lambda one: one[0])
    return model._fit_quietly(train), test


def _with_hinges(hinges: Hinges, schema: TaskModel, rows: FitInput) -> FitInput:
    """Rows with the hinges as further columns, and the task beside them."""
    X, labels = read_rows(schema, rows.X, rows.task)
    return replace(rows, X=hinges.expanded(X), task=labels)


def _tuned(
    name: str, classes: bool, task_column: str | int | None, rows: FitInput
) -> tuple[float, TaskModel]:
    """Held-out loss and model of the best penalty."""
    kinds = {
        ("pooled", False): PooledRegressor,
        ("pooled", True): PooledClassifier,
        ("separate", False): IndependentRegressor,
        ("separate", True): IndependentClassifier,
    }
    kind: Any = kinds[name, classes]
    settings = [kind(alpha, task_column=task_column) for alpha in PENALTIES]
    found = search(clone(settings[0]), settings, rows, cv=3)
    return float(found.mean[found.best]), settings[found.best]
