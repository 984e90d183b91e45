"""A model against reference models on rows that none of them saw, task by task."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..arrays import to_numpy
from ..hierarchical.intervals_mixin import IntervalMixin
from ..models.task_model import TaskModel
from ..parameters import require_integer
from ..rows.fit_input import FitInput
from ..rows.observations import Observations
from ..rows.reading import encode_tasks, read_classes, read_numbers, read_rows, read_weights
from .comparison import Comparison
from .reference_models import simple_fit

NAMES = ("model", "pooled", "separate", "mean")
"""The model, one ridge model for all tasks, one for each task, and a constant."""
LEVELS = np.linspace(0.1, 0.9, 9)
"""Probabilities at which intervals are checked."""
MANY_ROWS = 5000
"""Rows beyond which one fold is held out rather than each in turn."""
FoldFits = dict[str, tuple[TaskModel, FitInput]]
"""By name a fitted model, and the held-out rows as it takes them."""


def compare(
    model: TaskModel,
    X: Any,
    y: Any,
    task: Any = None,
    sample_weight: Any = None,
    *,
    folds: int = 5,
    choose: Callable[[FitInput], TaskModel] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Errors of a model and of reference models on rows that none of them saw.

    Each fold holds out an equal part of every task; beyond 5,000 rows only the first does. The
    reference models choose their penalty by cross-validation on the training rows, and where the
    model took hinges (``form_``) also whether to take the same: but for trees, the models then
    differ only in what they do with tasks.

    Parameters
    ----------
    model : estimator
        Any regressor or classifier of comtl, fitted or not; copies of it are fitted.
    X, y, task, sample_weight
        As in fit.
    folds : int, default=5
        Number of folds, at least 2; no more than there are rows are made.
    choose : callable, optional
        Makes the estimator for the training rows of a fold, where its parameters depend on them;
        without it a copy of ``model`` is fitted.
    progress : callable, optional
        Called with the number of fits done and of all.

    Returns
    -------
    Comparison
        Errors by task and of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import HierarchicalRegressor
    >>> from comtl.evaluation import compare
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(300, 3)), np.repeat(np.arange(20), 15)
    >>> y = X[:, 0] + rng.normal(size=20)[task] + 0.5 * rng.normal(size=300)
    >>> found = compare(HierarchicalRegressor(), X, y, task)
    >>> found.overall["model"] < min(found.overall["pooled"], found.overall["separate"])
    True
    """
    if not isinstance(model, TaskModel):
        kind = type(model).__name__
        raise TypeError(f"model must be an estimator of comtl, got {kind}; pass one of these.")
    require_integer("folds", folds, low=2)
    schema = clone(model)
    rows = FitInput.of(schema, X, y, task, sample_weight)
    data = rows.read(schema)
    count, targets = len(rows.counted), _read_targets(schema, rows, data)
    if count < 2:
        raise ValueError("X has a single row with an observed y of weight above 0; give more.")
    splits = rows.splits(schema, min(folds, count))
    if count > MANY_ROWS:
        splits = splits[:1]
    report = progress or (lambda done, total: None)
    parts = []
    for number, (train, test) in enumerate(splits):
        part, rest = rows.take(train), rows.take(test)
        before = targets.take(train)
        if data.multi_output and not (observed := before.kept.any(axis=0)).all():
            few = f"too few observed values to hold some out: {data.tasks[~observed][:10].tolist()}"
            raise ValueError(f"y has columns with {few}. Drop these columns.")
        with warnings.catch_warnings():
            # What a fit that stopped early is worth is what is measured here.
            warnings.simplefilter("ignore", ConvergenceWarning)
            report(3 * number, 3 * len(splits))
            own = clone(model) if choose is None else choose(part)
            fitted: FoldFits = {"model": (own._fit_quietly(part), rest)}
            for place, name in enumerate(NAMES[1:3], start=1):
                report(3 * number + place, 3 * len(splits))
                fitted[name] = simple_fit(name, own, part, rest)
        losses_of = _class_losses if schema._classification else _squared_losses
        parts.append(losses_of(fitted, before, targets.take(test)))
    report(3 * len(splits), 3 * len(splits))
    losses = {key: np.concatenate([part[key] for part in parts], axis=-1) for key in parts[0]}
    return _summarized(losses, targets.take(np.concatenate([test for _, test in splits])), data)


@dataclass(frozen=True, eq=False)
class _Targets:
    """Targets of rows, in one column or one for each task; weight zero is not observed."""

    values: np.ndarray
    weights: np.ndarray
    codes: np.ndarray

    def take(self, numbers: np.ndarray) -> _Targets:
        return _Targets(self.values[numbers], self.weights[numbers], self.codes[numbers])

    @property
    def kept(self) -> np.ndarray:
        return self.weights > 0.0


def _read_targets(schema: TaskModel, rows: FitInput, data: Observations) -> _Targets:
    y = to_numpy(rows.y)
    values, missing = read_numbers(y, np.dtype(float)) if data.classes is None else read_classes(y)
    weights = read_weights(to_numpy(rows.sample_weight), values.shape)
    # The weight of a row is that of each of its observations.
    weights = np.where(missing.T, 0.0, weights.T).T
    if data.multi_output:
        observed = weights.any(axis=0)  # Other columns are no tasks.
        values, weights = values[:, observed], weights[:, observed]
        return _Targets(values, weights, np.broadcast_to(np.arange(data.n_tasks), values.shape))
    _, labels = read_rows(schema, rows.X, rows.task)
    codes = np.zeros(len(y), np.intp) if labels is None else encode_tasks(labels, data.tasks)
    return _Targets(values.ravel(), weights.ravel(), codes)


def _squared_losses(fitted: FoldFits, before: _Targets, held: _Targets) -> dict[str, np.ndarray]:
    """Losses (names × targets), and whether the intervals hold them where the model has some."""
    truth, kept = held.values, held.kept
    predictions: list[Any] = [one.predict(own.X, task=own.task) for one, own in fitted.values()]
    known = np.where(before.kept, before.values, 0.0)
    predictions.append(np.average(known, axis=0, weights=before.weights))
    losses = np.stack([(truth - guess)[kept] ** 2 for guess in predictions])
    model, rest = fitted["model"]
    if not isinstance(model, IntervalMixin):
        return {"losses": losses}
    bounds = [model.predict_interval(rest.X, level, task=rest.task) for level in LEVELS]
    inside = np.stack([((low <= truth) & (truth <= up))[kept] for low, up in bounds])
    return {"losses": losses, "inside": inside}


def _class_losses(fitted: FoldFits, before: _Targets, held: _Targets) -> dict[str, np.ndarray]:
    """Losses and hits (names × targets)."""
    truth, kept = held.values, held.kept
    # A class may be held out altogether: the models give it probability zero.
    classes = np.union1d(before.values[before.kept], truth[kept])
    right = truth[kept][:, None] == classes
    probabilities, hits = [], []
    for one, own in fitted.values():
        # The threshold may lie elsewhere than at even odds.
        hits.append((one.predict(own.X, task=own.task) == truth)[kept])
        chance = one.predict_proba(own.X, task=own.task)
        if truth.ndim == 2:
            chance = np.stack([1.0 - chance, chance], axis=-1)
        # A fold's model may have seen fewer classes than there are.
        table = np.zeros(right.shape)
        table[:, np.searchsorted(classes, one.classes_)] = chance[kept]
        probabilities.append(table)
    # Share of each class in all rows, or in those of each column of a table.
    members = before.values[..., None] == classes
    weights = np.broadcast_to(before.weights[..., None], members.shape)
    shares = np.average(members, axis=0, weights=weights)
    probabilities.append(np.broadcast_to(shares, (*truth.shape, len(classes)))[kept])
    hits.append((classes[shares.argmax(axis=-1)] == truth)[kept])
    losses = [0.5 * ((chance - right) ** 2).sum(axis=1) for chance in probabilities]
    return {"losses": np.stack(losses), "hits": np.stack(hits)}


def _summarized(measured: dict[str, np.ndarray], held: _Targets, data: Observations) -> Comparison:
    codes, weights = held.codes[held.kept], held.weights[held.kept]
    rows, counts = (np.bincount(one, minlength=data.n_tasks) for one in (data.codes, codes))
    # Of each row in the weight of its task.
    shares = weights / np.bincount(codes, weights)[codes]
    losses = dict(zip(NAMES, measured["losses"], strict=True))
    gaps = {name: losses[name] - losses["model"] for name in NAMES[1:]}
    inside, hits = measured.get("inside"), measured.get("hits")
    metric: Callable[[Any], Any] = np.sqrt if hits is None else np.asarray
    accuracy = None
    if hits is not None:
        accuracy = dict(zip(NAMES, np.average(hits, axis=1, weights=weights).tolist(), strict=True))

    def by_task(values: Any) -> np.ndarray:
        return np.where(counts > 0, np.bincount(codes, shares * values, len(counts)), np.nan)

    def standard_error(gap: np.ndarray) -> np.ndarray:
        squares = np.bincount(codes, (shares * (gap - by_task(gap)[codes])) ** 2, len(counts))
        return np.sqrt(squares * counts / np.where(counts > 1, counts - 1, np.nan))

    return Comparison(
        data.tasks,
        rows,
        counts,
        "RMSE" if hits is None else "Brier score",
        {name: metric(by_task(loss)) for name, loss in losses.items()},
        {name: float(metric(np.average(loss, weights=weights))) for name, loss in losses.items()},
        accuracy,
        {name: by_task(gap) for name, gap in gaps.items()},
        {name: standard_error(gap) for name, gap in gaps.items()},
        None if inside is None else LEVELS,
        None if inside is None else np.average(inside, axis=1, weights=weights),
        np.bincount(codes, weights, data.n_tasks),
    )
