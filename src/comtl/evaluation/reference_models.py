"""The reference models that a model is compared with: one for all tasks, one for each."""

from dataclasses import replace
from typing import Any

from sklearn.base import clone

from .. import baselines
from ..models.search import search
from ..models.task_model import TaskModel
from ..rows.fit_input import FitInput
from ..rows.reading import read_rows
from ..stacking.hinges import Hinges
from ..stacking.multitask import MultitaskModel

KINDS: dict[str, tuple[Any, Any]] = {
    "pooled": (baselines.PooledRegressor, baselines.PooledClassifier),
    "separate": (baselines.IndependentRegressor, baselines.IndependentClassifier),
}
"""Reference models of numbers and of classes."""
PENALTIES = tuple(10.0**power for power in range(-2, 4))


def choose_hinges(model: Any) -> Hinges:
    """Hinges of a fitted model; none for other models."""
    return model._hinges if isinstance(model, MultitaskModel) else Hinges.none()


def simple_fit(
    name: str, like: TaskModel, part: FitInput, rest: FitInput
) -> tuple[TaskModel, FitInput]:
    """Reference model fitted to ``part``, perhaps with hinges of ``like``, and ``rest`` for it."""
    classes = like._classification
    # The loss of ``like`` too, so that the comparison is of what models do with tasks.
    stacked = classes or isinstance(like, MultitaskModel)
    loss = "auto" if stacked else like.get_params().get("loss", "auto")
    candidates = [(*tuned(name, classes, like.task_column, part, loss), part, rest)]
    hinges = choose_hinges(like)
    if len(hinges.columns):
        wide, wide_rest = (_with_hinges(hinges, like, rows) for rows in (part, rest))
        candidates.append((*tuned(name, classes, None, wide), wide, wide_rest))
    _, model, train, test = min(candidates, key=lambda one: one[0])
    return model._fit_quietly(train), test


def _with_hinges(hinges: Hinges, schema: TaskModel, rows: FitInput) -> FitInput:
    """Rows with the hinges as further columns, and the task beside them."""
    X, labels = read_rows(schema, rows.X, rows.task)
    return replace(rows, X=hinges.expanded(X), task=labels)


def tuned(
    name: str, classes: bool, task_column: str | int | None, rows: FitInput, loss: str = "auto"
) -> tuple[float, TaskModel]:
    """Held-out loss, and ridge model "pooled" or "separate", not fitted, of the best penalty."""
    kind = KINDS[name][classes]
    # A seed, so that what is drawn for a start does not depend on what ran before.
    fixed: dict[str, Any] = {"loss": loss, "task_column": task_column, "random_state": 0}
    settings = [kind(alpha, **fixed) for alpha in PENALTIES]
    result = search(clone(settings[0]), settings, rows, cv=3)
    return float(result.mean[result.best]), settings[result.best]
