r"""New tasks of a fitted population: the posterior of each, with the population held.

What was learned of the common effects is ``β ∼ N(m, C)``, so that the weights of a new task are
``β + u ∼ N(m, C + B)`` before its rows are seen. Of a single new task the posterior is the one of a
fit to all rows at the same ``B`` and noise.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh

from ..adapt import columns_beside
from ..arrays import asarray_like, on_device, to_numpy
from ..arrays.blocks import single_blas
from ..linear import OutputColumns
from ..rows.observations import Observations
from .intervals_mixin import PredictiveVariance
from .laplace import ClassRows
from .likelihoods import LONGEST_NEWTON, NOISE_WEIGHT
from .population import Population

if TYPE_CHECKING:
    from .hierarchical_estimators import HierarchicalModel

MAX_STEPS, TOLERANCE = 500, 1e-9
"""Steps to the mode of classes, or of the tasks' own noise, and the change at which they end."""


@dataclass(frozen=True, eq=False)
class NewTasks:
    """Means and covariances of the weights of new columns, the intercept last, and their noise."""

    weights: np.ndarray
    covariances: np.ndarray
    noise: np.ndarray


def adapted(model: HierarchicalModel, data: Observations, columns: OutputColumns) -> Any:
    """Copy of the model with the columns of further tasks."""
    known = vars(model).get("_common")
    if known is None:
        raise ValueError(
            "This model was saved by a version of comtl whose hierarchical models take no new "
            "tasks: fit it again, with the new tasks among the others."
        )
    whole = Population(model._binary(data, columns), model._units)
    several = columns.index is not None
    groups = [np.flatnonzero(columns.label == c) if several else None for c in range(len(known))]
    size, count = len(known[0][0]), len(columns.task)
    found = NewTasks(np.empty((count, size)), np.empty((count, size, size)), np.empty(count))
    priors = []
    with single_blas():
        for prior, common, group in zip(model._priors, known, groups, strict=True):
            population = whole if group is None else whole.of_columns(group)
            chosen = np.arange(count) if group is None else group
            if len(chosen):
                heteroscedastic = model.get_params().get("noise") == "task"
                new = infer_new(population, prior, common, model._classification, heteroscedastic)
                found.weights[chosen], found.covariances[chosen] = new.weights, new.covariances
                found.noise[chosen] = new.noise
            priors.append(replace(prior, noise=np.append(prior.noise, found.noise[chosen])))
    units, weights = model._units, found.weights
    if on_device(units.shift):
        weights = asarray_like(weights, units.shift, units.shift.dtype)
    coef = weights[:, :-1] * (units.target_scale * units.inverse_scale)
    intercepts = units.intercepts(weights[:, -1], weights[:, :-1] @ units.shift)
    linear = model._linear
    new_columns = columns_beside(linear.weights, coef, intercepts)
    grown = copy.copy(model)
    grown._priors = priors
    grown._set_linear(linear.joined(data.tasks, columns, new_columns))
    if "_spread" in vars(model):
        grown._spread = _spread_with(model._spread, found, whole)
    return grown


def _spread_with(known: Any, found: NewTasks, population: Population) -> Any:
    """Variances of predictions, of new tasks too, in the form that they have."""
    if isinstance(known, PredictiveVariance):
        return known.joined(found.covariances, found.noise)
    parts = [known.rows]
    rows = np.sqrt(population.obs.weights)[:, None] * population.dense
    for noise, ends in zip(found.noise, pairwise(population.obs.offsets), strict=True):
        own = rows[slice(*ends)]
        total = known.covariance.times(own) @ own.T + noise * np.eye(len(own))
        parts.append(np.linalg.cholesky(np.linalg.inv(total)).T @ own)
    offsets = np.append(known.offsets, known.offsets[-1] + population.obs.offsets[1:])
    noise = np.concatenate([known.noise[:-1], found.noise, known.noise[-1:]])
    return replace(known, rows=np.concatenate(parts), offsets=offsets, noise=noise)


def infer_new(
    population: Population,
    prior: Any,
    common: tuple[np.ndarray, np.ndarray | None],
    classification: bool,
    heteroscedastic: bool,
) -> NewTasks:
    """Posterior of the weights of each column, given mean and covariance of the common effects."""
    mean, covariance = common
    total = prior.covariance.matrix
    if covariance is not None:
        total = total + covariance
    values, basis = eigh(total)
    root = basis * np.sqrt(np.maximum(values, 0.0))
    if classification:
        obs = population.obs
        rows = ClassRows(population.dense, population.target, obs.weights, obs.offsets)
        return _of_classes(rows, mean, root)
    sums = population.sums
    moment, energy = np.asarray(to_numpy(sums.moment), float), to_numpy(sums.energy)
    tasks, size = moment.shape
    gram = np.broadcast_to(np.asarray(to_numpy(sums.gram), float), (tasks, size, size))
    noise, counts = np.full(tasks, prior.residual_variance), gram[:, -1, -1]
    for _ in range(MAX_STEPS):
        weights, covariances = _posterior(gram, moment, noise, mean, root)
        if not heteroscedastic:
            break
        image = (gram @ weights[:, :, None])[:, :, 0]
        squares = energy + np.sum(weights * (image - 2.0 * moment), axis=1)
        squares += np.sum(gram * covariances, axis=(1, 2))
        # As the fit weighs the noise of a task and the common level.
        fresh = squares + NOISE_WEIGHT * prior.residual_variance
        fresh /= counts + NOISE_WEIGHT
        change, noise = np.abs(fresh / noise - 1.0).max(), fresh
        if change <= TOLERANCE:
            break
    return NewTasks(weights, covariances, noise)


def _of_classes(rows: ClassRows, mean: np.ndarray, root: np.ndarray) -> NewTasks:
    """About the mode of the weights, by Newton's method."""
    weights = np.tile(mean, (len(rows.offsets) - 1, 1))
    for _ in range(MAX_STEPS):
        gram, _, moment, _ = (np.asarray(to_numpy(part), float) for part in rows.sums(weights))
        noise = np.ones(len(moment))
        fresh, covariances = _posterior(gram, moment, noise, mean, root)
        change = np.abs(fresh - weights).max(axis=1, keepdims=True)
        weights = weights + np.minimum(1.0, LONGEST_NEWTON / np.maximum(change, 1e-300)) * (
            fresh - weights
        )
        if float(change.max()) <= TOLERANCE * (1.0 + float(np.abs(fresh).max())):
            break
    return NewTasks(weights, covariances, noise)


def _posterior(
    gram: np.ndarray, moment: np.ndarray, noise: np.ndarray, mean: np.ndarray, root: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and covariances of normal weights with the prior ``N(mean, root rootᵀ)``."""
    scaled = gram / noise[:, None, None]
    inverse = np.linalg.inv(np.eye(root.shape[1]) + root.T @ scaled @ root)
    gap = moment / noise[:, None] - scaled @ mean
    latent = (inverse @ (gap @ root)[:, :, None])[:, :, 0]
    return mean + latent @ root.T, root @ inverse @ root.T
