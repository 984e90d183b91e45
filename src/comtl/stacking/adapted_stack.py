"""New tasks of a fitted stack: its members take them, and what is made of members follows."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..adapt import columns_beside
from ..arrays import asarray_like, namespace, take, to_numpy
from ..hierarchical.hierarchical_estimators import HierarchicalModel
from ..linear import OutputColumns
from ..models.task_model import TaskModel
from ..rows.observations import Observations
from .fitted_stack import FittedStack
from .members import FittedEstimator
from .stack_rows import TargetScaling

FOLDS = 5
"""Parts of the rows of each new task that are held out in turn, to measure errors to come."""


def grown_stack(
    old: Any, data: Observations, columns: OutputColumns, *, residual: bool
) -> tuple[Any, TargetScaling]:
    """Copy of a stack with further tasks, and the units of their targets."""
    if vars(old).get("_blend_shift") is None:
        raise ValueError(
            "This model was saved by a version of comtl whose stacks take no new tasks: fit it "
            "again, with the new tasks among the others."
        )
    units = replace(TargetScaling.of(data), log=vars(old).get("loss_") == "log")
    if units.log and not float(to_numpy(data.y).min()) > 0.0:
        raise ValueError(
            "The model fits logarithms of positive targets, but y has values of zero or less; fit "
            'it again with loss="squared", and with the new tasks among the others.'
        )
    given = replace(units.transform(data), X=old._hinges.expanded(data.X))
    model, stack = copy.copy(old), old._nonlinear
    models = {name: one for name, one in old.members_.items() if isinstance(one, TaskModel)}
    if stack is not None:
        models = {name: one.model for name, one in stack.members[0].items()}
    models = {
        name: grown_member(one, given, columns, residual=residual) for name, one in models.items()
    }
    model.members_ = {name: models.get(name, one) for name, one in old.members_.items()}
    if stack is not None:
        below = {name: FittedEstimator(one) for name, one in models.items()}
        scale = np.concatenate([stack.scale, units.scale])
        model._nonlinear = FittedStack((below, *stack.members[1:]), stack.blends, scale)
    like = old._linear.weights.shared
    count = len(columns.task)
    coef = namespace(like).zeros((count, like.shape[0]), dtype=like.dtype)
    shift = old._blend_shift + vars(old).get("_log_correction", 0.0)
    intercepts = asarray_like(np.full(count, shift), like, like.dtype)
    for name, one in model.members_.items():
        if name in models:
            # The new columns are the last.
            weights, share = one._linear.weights, old.weights_[name]
            new = np.arange(weights.n_columns - count, weights.n_columns)
            coef[:, : weights.shared.shape[0]] += share * take(weights.coef, new)
            intercepts += share * take(weights.intercepts, new)
    coef, intercepts = units.inverse_transform(coef, intercepts, columns.task)
    if "thresholds_" in vars(old):
        # As of a task never seen.
        more = np.full(data.n_tasks, old.thresholds_.mean())
        model.thresholds_ = np.concatenate([old.thresholds_, more])
        intercepts = intercepts - asarray_like(more[columns.task], like, like.dtype)
    new_columns = columns_beside(old._linear.weights, coef, intercepts)
    model._set_linear(old._linear.joined(data.tasks, columns, new_columns))
    model._target_scale = np.concatenate([old._target_scale, units.scale])
    return model, units


def grown_member(
    model: TaskModel, data: Observations, columns: OutputColumns, *, residual: bool
) -> TaskModel:
    """Copy of a member with further tasks: by posteriors, on its factors, or by the mean of all."""
    width = model._linear.weights.shared.shape[0]
    if width < data.n_features:
        data = replace(data, X=data.X[:, :width])
    algorithm = model._algorithm
    if isinstance(model, HierarchicalModel) or (algorithm is not None and algorithm.rank_names):
        return model._adapted(data, columns, residual=residual)
    linear, grown = model._linear, copy.copy(model)
    means = linear.extended
    place = linear.columns.places[-1][columns.label if columns.index is not None else 0]
    place = np.broadcast_to(place, columns.task.shape)
    coef, intercepts = take(means.coef, place), take(means.intercepts, place)
    grown._set_linear(
        linear.joined(data.tasks, columns, columns_beside(linear.weights, coef, intercepts))
    )
    return grown


def held_out_errors(
    old: Any, data: Observations, units: TargetScaling, *, residual: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors of the rows of new tasks, each held out of a part, in units of their targets.

    With their weights and tasks; of a task of a single row there are none.
    """
    errors, weights, task = [], [], []
    for train, test in _folds(data):
        part = _taken(data, train)
        model, _ = grown_stack(old, part, OutputColumns.of(part), residual=residual)
        rest = _taken(replace(data, X=old._hinges.expanded(data.X)), test)
        guess = model._observation_scores(rest, model._linear.codes(rest.tasks)[rest.codes])
        own = data.codes[test]
        truth = to_numpy(rest.y)
        if units.log:
            truth = np.log(truth) + old._log_correction
        errors.append((truth - to_numpy(guess)) / units.scale[own])
        weights.append(to_numpy(rest.weights))
        task.append(own)
    none = [np.zeros(0)]
    codes = np.concatenate([np.zeros(0, np.intp), *task])
    return np.concatenate(none + errors), np.concatenate(none + weights), codes


def _folds(data: Observations) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Numbers of observations to fit to and to hold out, such that no task is left without any."""
    sizes = np.diff(data.offsets)
    place = np.arange(data.n_observations) - np.repeat(data.offsets[:-1], sizes)
    shared = np.repeat(sizes > 1, sizes)
    for fold in range(FOLDS):
        test = shared & (place % FOLDS == fold)
        if test.any():
            yield np.flatnonzero(~test), np.flatnonzero(test)


def _taken(data: Observations, chosen: np.ndarray) -> Observations:
    """Some of the observations, of the tasks that have some of them."""
    codes = data.codes[chosen]
    known = np.unique(codes)
    rows = chosen if data.rows is None else data.rows[chosen]
    return replace(
        data,
        y=take(data.y, chosen),
        weights=take(data.weights, chosen),
        offsets=np.append(np.searchsorted(codes, known), len(codes)),
        tasks=data.tasks[known],
        rows=rows,
    )
