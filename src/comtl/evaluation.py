"""What a model is worth on rows it did not see, against simpler models, task by task."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .data import encode_tasks, read_rows
from .frames import read_classes, read_numbers
from .hierarchical.bend_evidence import evidence_for_bends
from .hierarchical.error_bars import ErrorBars
from .rows import Rows
from .saving.registry import saved
from .simpler import simple_fit
from .training import TaskModel

__all__ = ["Comparison", "compare", "evidence_for_bends"]

NAMES = ("model", "pooled", "separate", "mean")
"""The model, one ridge model for all tasks, one for each task, and a constant."""
LEVELS = np.linspace(0.1, 0.9, 9)
"""Probabilities at which intervals are checked."""
Judged = tuple[TaskModel, Rows]
"""A fitted model, and the held-out rows as it takes them."""
MANY_ROWS = 5000
"""Rows beyond which one fold is held out rather than each in turn."""


@saved
@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors on held-out rows by task.

    Parameters
    ----------
    tasks : ndarray of shape (n_tasks,)
        Labels.
    train_rows, test_rows : ndarrays of shape (n_tasks,)
        Rows of each task in all, and rows that were held out.
    metric : str
        "RMSE" of a regressor, "Brier score" of a classifier (half the squared distance between
        probabilities and truth, summed over classes); lower is better.
    errors : dict of str to ndarray of shape (n_tasks,)
        Metric of each task by the names "model", "pooled", "separate" and "mean"; NaN where no row
        was held out.
    overall : dict of str to float
        Metric of all held-out rows.
    accuracy : dict of str to float, or None
        Share of held-out rows whose class was right; None for a regressor.
    gains, gain_errors : dicts of str to ndarray of shape (n_tasks,)
        How much lower the mean loss (squared error, or Brier score) of each task is than that of
        "pooled" and "separate", and the standard error of that difference (NaN below two rows).
    levels, covered : ndarrays of shape (n_levels,), or None
        Probabilities asked of the intervals, and shares of held-out targets found in them; None
        where the model has no intervals.
    """

    tasks: np.ndarray
    train_rows: np.ndarray
    test_rows: np.ndarray
    metric: str
    errors: dict[str, np.ndarray]
    overall: dict[str, float]
    accuracy: dict[str, float] | None
    gains: dict[str, np.ndarray]
    gain_errors: dict[str, np.ndarray]
    levels: np.ndarray | None
    covered: np.ndarray | None


def compare(
    model: TaskModel,
    X: Any,
    y: Any,
    task: Any = None,
    sample_weight: Any = None,
    *,
    folds: int = 5,
    choose: Callable[[Rows], TaskModel] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Errors of a model and of simpler ones on rows that none of them saw.

    Each fold holds out an equal part of every task; beyond 5,000 rows only the first does. The
    simpler models choose their penalty by cross-validation on the training rows, and where the
    model took bends (``basis="hinges"``) also whether they take the same: the difference is then
    what is made of tasks.

    Parameters
    ----------
    model : estimator
        Any regressor or classifier of comtl, fitted or not; copies of it are fitted.
    X, y, task, sample_weight
        As in fit.
    folds : int, default=5
        Number of folds.
    choose : callable, optional
        Makes the estimator for the training rows of a fold, where its parameters depend on them;
        without it a copy of ``model`` serves.
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
    rows = Rows(X, y, task, sample_weight)
    reader = clone(model)
    data = rows.read(reader)
    splits = rows.splits(reader, min(folds, data.X.shape[0]))
    if data.X.shape[0] > MANY_ROWS:
        splits = splits[:1]
    told = progress or (lambda done, total: None)
    parts = []
    for number, (train, test) in enumerate(splits):
        part, rest = rows.take(train), rows.take(test)
        with warnings.catch_warnings():
            # What a fit that stopped early is worth is what is measured here.
            warnings.simplefilter("ignore", ConvergenceWarning)
            told(3 * number, 3 * len(splits))
            own = clone(model) if choose is None else choose(part)
            fitted: dict[str, Judged] = {"model": (own.fit_within(part), rest)}
            for place, name in enumerate(NAMES[1:3], start=1):
                told(3 * number + place, 3 * len(splits))
                fitted[name] = simple_fit(name, own, part, rest)
        parts.append(_held_out(reader, fitted, part, rest, data.tasks))
    told(3 * len(splits), 3 * len(splits))
    held = {key: np.concatenate([part[key] for part in parts], axis=-1) for key in parts[0]}
    return _summed(held, data.tasks, np.bincount(data.codes, minlength=data.n_tasks), reader)


def _held_out(
    reader: TaskModel, fitted: dict[str, Judged], part: Rows, rest: Rows, tasks: np.ndarray
) -> dict[str, np.ndarray]:
    """Losses (names × cells), tasks, and where they apply hits and intervals of held-out cells."""
    _, labels = read_rows(reader, rest.X, rest.task)
    if reader._classification:
        truth, missing = read_classes(rest.y)
        before, gaps = read_classes(part.y)
    else:
        truth, missing = read_numbers(rest.y, np.dtype(float))
        before, gaps = read_numbers(part.y, np.dtype(float))
    codes = np.zeros(len(truth), dtype=np.intp) if labels is None else encode_tasks(labels, tasks)
    if truth.ndim == 2:
        codes = np.broadcast_to(np.arange(truth.shape[1]), truth.shape)
    kept = ~missing
    found: dict[str, np.ndarray] = {"task": codes[kept]}
    if reader._classification:
        found |= _class_losses(fitted, truth, kept, before[~gaps])
        return found
    guesses: list[Any] = [one.predict(own.X, task=own.task) for one, own in fitted.values()]
    guesses.append(np.full(truth.shape, before[~gaps].mean()))
    found["losses"] = np.stack([(truth - guess)[kept] ** 2 for guess in guesses])
    own, _ = fitted["model"]
    if isinstance(own, ErrorBars):
        bounds = [own.predict_interval(rest.X, level, task=rest.task) for level in LEVELS]
        found["inside"] = np.stack([((low <= truth) & (truth <= up))[kept] for low, up in bounds])
    return found


def _class_losses(
    fitted: dict[str, Judged], truth: np.ndarray, kept: np.ndarray, seen: np.ndarray
) -> dict[str, np.ndarray]:
    classes, counts = np.unique(seen, return_counts=True)
    right = truth[kept][:, None] == classes
    chances, hits = [], []
    for one, own in fitted.values():
        # What is said may be cut elsewhere than at even odds.
        hits.append(one.predict(own.X, task=own.task)[kept] == truth[kept])
        chance = one.predict_proba(own.X, task=own.task)
        if truth.ndim == 2:
            chance = np.stack([1.0 - chance, chance], axis=-1)
        # A fold's model may have seen fewer classes than there are.
        table = np.zeros((kept.sum(), len(classes)))
        table[:, np.searchsorted(classes, one.classes_)] = chance[kept]
        chances.append(table)
    chances.append(np.broadcast_to(counts / counts.sum(), right.shape))
    hits.append(right[:, counts.argmax()])
    losses = [0.5 * ((chance - right) ** 2).sum(axis=1) for chance in chances]
    return {"losses": np.stack(losses), "hits": np.stack(hits)}


def _summed(
    held: dict[str, np.ndarray], tasks: np.ndarray, rows: np.ndarray, reader: TaskModel
) -> Comparison:
    codes, losses = held["task"], dict(zip(NAMES, held["losses"], strict=True))
    counts = np.bincount(codes, minlength=len(tasks))
    shape: Callable[[Any], Any] = (lambda v: v) if reader._classification else np.sqrt
    gaps = {name: losses[name] - losses["model"] for name in NAMES[1:3]}
    means = {name: _by_task(gap, codes, counts) for name, gap in gaps.items()}
    inside = held.get("inside")
    hits = held.get("hits")
    return Comparison(
        tasks,
        rows,
        counts,
        "Brier score" if reader._classification else "RMSE",
        {name: shape(_by_task(loss, codes, counts)) for name, loss in losses.items()},
        {name: float(shape(loss.mean())) for name, loss in losses.items()},
        None if hits is None else _shares(hits),
        means,
        {name: _standard_error(gap, codes, counts, means[name]) for name, gap in gaps.items()},
        None if inside is None else LEVELS,
        None if inside is None else inside.mean(axis=1),
    )


def _shares(hits: np.ndarray) -> dict[str, float]:
    return {name: float(np.mean(one)) for name, one in zip(NAMES, hits, strict=True)}


def _by_task(values: np.ndarray, codes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    total = np.bincount(codes, values, minlength=len(counts))
    return np.divide(total, counts, out=np.full(len(counts), np.nan), where=counts > 0)


def _standard_error(
    values: np.ndarray, codes: np.ndarray, counts: np.ndarray, means: np.ndarray
) -> np.ndarray:
    squares = np.bincount(codes, (values - means[codes]) ** 2, minlength=len(counts))
    pairs = counts * (counts - 1)
    spread = np.divide(squares, pairs, out=np.full(len(counts), np.nan), where=pairs > 0)
    return np.sqrt(spread)
