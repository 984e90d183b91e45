"""The choice of a method's setting by cross-validation on training rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from comtl.models.search import search
from comtl.models.task_model import TaskModel
from comtl.rows.fit_input import FitInput
from comtl.rows.folds import TaskStratifiedKFold

from .methods import Method

WIDENINGS, FINALISTS, PARTITIONS = 4, 8, 3
"""How often the grid of a penalty grows where the winner lies at its edge, how many of the best
settings meet on further partitions, and how many partitions there are."""

SEARCH_TOL = 1e-4
"""Tolerance of the fits that are only compared; the chosen setting is fitted to the model's own."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """The chosen setting, fitted to all training rows."""

    model: TaskModel
    setting: dict[str, Any]
    loss: float


def tune(method: Method, rows: FitInput, *, text: bool = False, folds: int = 3) -> Tuned:
    """Choose a method's setting by cross-validation on the rows, and fit it to them.

    Where the winner has a penalty at the edge of its grid, the grid grows by a factor of ten on
    that side and only the new settings are tried. The winner's penalties are then tried at half a
    step to either side. Last, the best few meet on further partitions into folds, and the mean over
    all decides: one partition of tasks with few rows is decided by chance too often.
    """
    losses: list[Scored] = []

    def score(settings: list[dict[str, Any]], partition: int = 0) -> list[float]:
        models = [method.model(text=text, **each) for each in settings]
        for model in models:
            model.set_params(tol=max(model.tol, SEARCH_TOL))
        cuts = TaskStratifiedKFold(folds, random_state=partition)
        # A table of classes, a column for each task, has no one class a row to spread evenly.
        labels = rows.y if text and rows.task is not None else None
        splits = list(cuts.split(rows.X, labels, rows.task))
        return search(models[0], models, rows, cv=splits, warm=not partition).mean.tolist()

    axes = method.axes(text=text)
    ranks = method.rank_settings(text=text)
    wanted = _settings(ranks, axes)
    with warnings.catch_warnings():
        # Many of the settings are far off and may well stop early.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for widening in range(WIDENINGS + 1):
            losses += zip(score(wanted), wanted, strict=True)
            best = min(losses, key=_loss)[1]
            wanted = _wider(ranks, axes, best) if widening < WIDENINGS else []
            if not wanted:
                break
        finer = _between(axes, best)
        losses += zip(score(finer), finer, strict=True)
        final = _finalists(losses)
        settings = [setting for _, setting in final]
        all_losses = [[one for one, _ in final]]
        all_losses += [score(settings, partition) for partition in range(1, PARTITIONS)]
        means = np.mean(all_losses, axis=0).tolist()
        loss, best = min(zip(means, settings, strict=True), key=_loss)
        model = method.model(text=text, **best)._fit_quietly(rows)
    return Tuned(model, best, loss)


Scored = tuple[float, dict[str, Any]]
"""A setting with its held-out loss."""


def _loss(scored: Scored) -> float:
    return scored[0]


def _finalists(losses: Sequence[Scored]) -> list[Scored]:
    """The best few settings. Those that come to one recipe have one loss; the first stands."""
    distinct = {loss: (loss, setting) for loss, setting in reversed(losses)}
    return sorted(distinct.values(), key=_loss)[:FINALISTS]


def _wider(
    ranks: Sequence[dict[str, int]], axes: dict[str, list[float]], best: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Settings beyond the edges that the winner lies at; the axes take them in."""
    wanted = []
    for name, values in axes.items():
        further = _beyond(best[name], values)
        if further is not None:
            wanted += _settings(ranks, {**axes, name: [further]})
            values.append(further)
    return wanted


def _between(axes: Mapping[str, Sequence[float]], best: dict[str, Any]) -> list[dict[str, Any]]:
    """Settings half a step from one on the grid, one penalty at a time."""
    wanted = []
    for name, values in axes.items():
        for other in values:
            if other != best[name] and not any(
                min(other, best[name]) < value < max(other, best[name]) for value in values
            ):
                middle = float(f"{(other * best[name]) ** 0.5:.2g}")
                wanted.append({**best, name: middle})
    return wanted


def setting_text(setting: Mapping[str, Any]) -> str:
    """A setting in one short line."""
    return " ".join(f"{name}={value:g}" for name, value in setting.items())


def _settings(
    ranks: Sequence[dict[str, int]], axes: Mapping[str, Sequence[float]]
) -> list[dict[str, Any]]:
    penalties = [dict(zip(axes, choice, strict=True)) for choice in product(*axes.values())]
    return [{**choice, **penalty} for choice in ranks for penalty in penalties]


def _beyond(value: float, values: Sequence[float]) -> float | None:
    """Next value outside the grid where ``value`` is an end of it, in steps of ten."""
    if value == min(values):
        return float(f"{value / 10.0:.3g}")
    if value == max(values):
        return float(f"{value * 10.0:.3g}")
    return None
