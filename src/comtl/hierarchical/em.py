"""Restricted maximum likelihood by scoring steps.

Each step solves for the change of all variances by the expected curvature of the restricted
likelihood (Fisher scoring), as a matrix where they are few and else by a few conjugate gradients,
and is shortened until the likelihood rises.

The rows of a task have the covariance ``V = X B Xᵀ + σ²``. A change of ``B`` is a vector here;
``change`` has what it makes of ``V``, and ``contract`` what a weight of ``V`` comes to for each of
its entries. Twice the gradient of the restricted likelihood and its expected curvature are
contractions of matrices of the rows, so that no matrix of the features is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .covariances import MIN_VARIANCE, CovarianceFamily, EffectCovariance, InterceptOnly, Isotropic
from .likelihoods import Likelihood
from .posterior import Posterior, Prior
from .tangents import LOWEST, Tangent, tangent_of, with_directions

MIN_COMMON_VARIANCE = 1e-8
"""Of the fixed effects: below, the restricted likelihood is made of rounding."""
MAX_FREE_SHARE = 0.1
"""Fixed effects for each row up to which they are free; more are shrunk to zero."""
START_VARIANCE = 0.1
"""Variances to start from at most, in units of the standardised data."""
START_SHARE = 0.5
"""Variance of scores to start from."""
MIN_START_VARIANCE = 1e-3
"""Variance of slopes that families which refine the isotropic fit start from at least."""
MAX_START_RATIO = 1e3
"""Variance to start from at most, over that of the residuals: equal targets have next to none."""
SHARES = (1.0, 0.4, 0.1, 0.01)
"""Of a step, that are tried until the likelihood rises."""
RESIDUAL = 0.05
"""At which conjugate gradients stop, over the first."""
TRIES, FEW_TRIES = 20, 3
"""Solutions with what came to its bound held there, by the matrix or by conjugate gradients."""
SMALLEST, SINGULAR = 1e-12, 1e-7
"""Roots of the curvature of an entry that counts, over the largest, and what is added to all."""


@dataclass(frozen=True, eq=False)
class EMIteration:
    """Prior and posterior after some steps; ``objective`` counts the log priors too."""

    likelihood: Likelihood
    prior: Prior
    posterior: Posterior
    objective: float
    step: int
    converged: bool


def fit_em(
    likelihood: Likelihood,
    family: CovarianceFamily,
    *,
    shrink_common: bool = False,
    max_iter: int,
    tol: float,
    start: Prior | None = None,
    warm: Prior | None = None,
) -> Iterator[EMIteration]:
    """Yield the steps of a fit; a family that refines another may ``start`` from a fit of that.

    ``warm`` is the prior of a fit of the same family to more rows of the population: the steps
    start there, about the same center of the family's prior.
    """
    tasks, size = len(likelihood.data.counts), likelihood.data.size
    limits: Any = {"max_iter": max_iter, "tol": tol}
    noise = likelihood.start_noise
    most = MAX_START_RATIO * noise
    if tasks > 1 and warm is not None:
        same = len(warm.noise) == tasks
        family = replace(family, center=warm.center)
        prior = warm if same else replace(warm, noise=np.full(tasks, warm.residual_variance))
    elif tasks > 1 and family.refines:
        if start is None:
            *_, stage = fit_em(likelihood, Isotropic(), shrink_common=shrink_common, **limits)
            likelihood, start = stage.likelihood, stage.prior
        # No step gets away from next to nothing, and a prior about it allows nothing else.
        covariance = start.covariance.raised(min(MIN_START_VARIANCE, most))
        family = family.with_prior(covariance)
        prior = replace(start, covariance=covariance, center=family.center)
        if family.n_directions:
            posterior = likelihood.infer(prior)
            covariance = with_directions(covariance, posterior, family.n_directions)
            prior = replace(prior, covariance=covariance)
    else:
        variance = min(START_VARIANCE, most)
        common = min(variance, START_SHARE / size)
        if tasks == 1:
            # Random effects of a single task cannot be separated from the fixed ones.
            family, variance = InterceptOnly(), MIN_VARIANCE
        elif not shrink_common and size <= MAX_FREE_SHARE * likelihood.n_rows:
            common = np.inf
        variances = np.append(np.full(size - 1, min(variance, START_SHARE / size)), variance)
        covariance = family.starting(EffectCovariance.diagonal(variances))
        prior = Prior(covariance, np.full(tasks, noise), noise, common)
    yield from maximise(likelihood, family, prior, **limits)


def maximise(
    likelihood: Likelihood, family: CovarianceFamily, prior: Prior, *, max_iter: int, tol: float
) -> Iterator[EMIteration]:
    """Yield priors of rising restricted likelihood until a row has less than ``tol`` to gain."""
    stage = _stage(likelihood, prior, family, 0)
    yield stage
    path, least = [stage.objective], tol * likelihood.n_rows
    for number in range(1, max_iter + 1):
        stage, predicted = _advanced(family, stage, number)
        path.append(stage.objective)
        stuck = path[-1] == path[-2]
        if stuck or (predicted <= least and _remaining_gain(path) <= least):
            yield replace(stage, converged=True)
            return
        yield stage


def _remaining_gain(path: list[float]) -> float:
    """What steps may still gain, by the objective after each so far."""
    latest = path[-1] - path[-2]
    before = path[-2] - path[-3] if len(path) > 2 else float("inf")
    rate = min(max(latest / before, 0.0), 0.99) if before > 0.0 else 0.0
    return latest / (1.0 - rate)


def _stage(
    likelihood: Likelihood, prior: Prior, family: CovarianceFamily, step: int
) -> EMIteration:
    posterior = likelihood.infer(prior)
    objective = posterior.log_evidence + family.log_prior(prior.covariance)
    objective += likelihood.log_prior(prior)
    return EMIteration(likelihood, prior, posterior, objective, step, False)


def _advanced(family: CovarianceFamily, stage: EMIteration, step: int) -> tuple[EMIteration, float]:
    """One scoring step, as much of it as raises the objective, and the gain that it promised."""
    prior, posterior = stage.prior, stage.posterior
    tangent = tangent_of(family, posterior)
    change, noise, predicted = _scoring_step(tangent, stage.likelihood, prior, posterior)
    common = _common_step(stage.likelihood, prior, posterior)
    likelihood = stage.likelihood.refreshed(posterior)
    for share in SHARES:
        variance = prior.mean_variance
        if np.isfinite(variance):
            variance = max(variance * (1.0 + share * common), MIN_COMMON_VARIANCE)
        further = replace(prior, covariance=tangent.moved(share * change), mean_variance=variance)
        further = likelihood.with_noise(further, 1.0 + share * noise)
        fresh = _stage(likelihood, further, family, step)
        if fresh.objective > stage.objective:
            return fresh, predicted
    return replace(stage, step=step), predicted


def _common_step(likelihood: Likelihood, prior: Prior, posterior: Posterior) -> float:
    """Change of the variance of the fixed effects, as a share of it."""
    if not np.isfinite(prior.mean_variance):
        return 0.0
    trace, squares = posterior.common.determined
    slope, curvature = likelihood.common_prior(prior)
    slope += float(np.sum(posterior.mean[:-1] ** 2)) / prior.mean_variance - trace
    for block, part in zip(posterior.data.blocks, posterior.blocks, strict=True):
        if part.drift is not None:
            moved = block.flat[:, :-1].T @ part.drift.ravel()
            slope += 2.0 * float(posterior.mean[:-1] @ moved)
    curvature += squares
    return max(slope / curvature, LOWEST - 1.0) if curvature > 0.0 else 0.0


def _scoring_step(
    tangent: Tangent, likelihood: Likelihood, prior: Prior, posterior: Posterior
) -> tuple[np.ndarray, np.ndarray, float]:
    """Change of the covariance, of each task's residual variance as a share, and the gain."""
    noise, groups, data = prior.noise, likelihood.noise_groups, posterior.data
    count = 0 if groups is None else int(groups.max()) + 1
    beyond = data.counts.copy()  # Rows that a block has no part in.
    for block in data.blocks:
        beyond[block.tasks] -= block.targets.shape[1]
    slope, curvature = likelihood.noise_prior(prior)

    def contract(weights: list[np.ndarray], more: np.ndarray) -> np.ndarray:
        covariance = tangent.contract(weights)
        if groups is None:
            return covariance
        for block, weight in zip(data.blocks, weights, strict=True):
            more[block.tasks] += noise[block.tasks] * np.trace(weight, axis1=1, axis2=2)
        return np.concatenate([covariance, np.bincount(groups, more, minlength=count)])

    gradient = contract([part.curvature for part in posterior.blocks], data.rest / noise - beyond)
    size = len(gradient) - count
    rise, bend = (likelihood.spread_weight * part for part in tangent.trace())
    gradient[:size] += tangent.prior() - rise
    gradient[size:] += slope

    def product(vector: np.ndarray) -> np.ndarray:
        changes = tangent.change(vector[:size])
        by_task = vector[size:][groups] if groups is not None else None
        weights = []
        for block, part, change in zip(data.blocks, posterior.blocks, changes, strict=True):
            if by_task is not None:
                own = (noise * by_task)[block.tasks]
                change = change + own[:, None, None] * np.eye(change.shape[1])
            weights.append(part.inverse @ change @ part.inverse)
        more = beyond * by_task if by_task is not None else beyond
        found = contract(weights, more)
        found[:size] += tangent.prior(vector[:size]) + bend * vector[:size]
        found[size:] += curvature * vector[size:]
        return found

    operator: Any = product
    matrix = tangent.curvature(noise, beyond) if count <= 1 else None
    if matrix is not None:
        matrix = matrix[: len(gradient), : len(gradient)]
        matrix[np.diag_indices(size)] += bend
        solve = partial(_dense_solve, matrix)
        operator = matrix.__matmul__
    else:
        diagonal = np.zeros(0)
        if groups is not None:
            each = beyond.copy()
            for block, part in zip(data.blocks, posterior.blocks, strict=True):
                squares = np.sum(part.inverse**2, axis=(1, 2))
                each[block.tasks] += noise[block.tasks] ** 2 * squares
            diagonal = np.bincount(groups, each, minlength=count) + curvature

        def precondition(vector: np.ndarray) -> np.ndarray:
            return np.concatenate([tangent.precondition(vector[:size]), vector[size:] / diagonal])

        solve = partial(_conjugate_gradient, product, precondition, tangent.steps)

    held, fixed = np.zeros(len(gradient), dtype=bool), np.zeros(len(gradient))
    if groups is not None:
        # Noise at its floor stays there.
        at_floor = np.bincount(groups, noise > likelihood.least_noise, minlength=count) == 0.0
        held[size:] = at_floor & (gradient[size:] < 0.0)
    for _ in range(TRIES if matrix is not None else FEW_TRIES):
        right = gradient - operator(fixed) if held.any() else gradient
        step = fixed + solve(right, held)
        low = np.append(tangent.bounded(step[:size]), step[size:] < LOWEST - 1.0) & ~held
        if not low.any():
            break
        # What comes to its bound is held there, and the rest solved for once more.
        held |= low
        fixed[low] = LOWEST - 1.0
    step[low] = LOWEST - 1.0
    noise_step = step[size:][groups] if groups is not None else np.zeros(len(noise))
    return step[:size], noise_step, 0.5 * float(gradient @ step)


def _dense_solve(matrix: np.ndarray, right: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Solve for the entries that are not held."""
    size = np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
    free = np.flatnonzero(~held & (size > SMALLEST * size.max(initial=0.0)))
    value, size = np.zeros_like(right), size[free]
    # Directions may turn without any change of the covariance.
    inside = matrix[np.ix_(free, free)] / np.outer(size, size) + SINGULAR * np.eye(len(free))
    with suppress(LinAlgError):  # Weights that sum to less than a row tell nothing of the noise.
        value[free] = cho_solve(cho_factor(inside), right[free] / size) / size
    return value


def _conjugate_gradient(
    operator: Any, precondition: Any, steps: int, right: np.ndarray, held: np.ndarray
) -> np.ndarray:
    """The same by products."""
    value, residual = np.zeros_like(right), np.where(held, 0.0, right)
    direction, old, first = np.zeros_like(right), 0.0, 0.0
    for number in range(steps):
        image = np.where(held, 0.0, precondition(residual))
        size = float(residual @ image)
        if number == 0:
            first = size
        if not size > RESIDUAL**2 * first or not size > 0.0:
            break
        direction = image + (size / old if old else 0.0) * direction
        product = np.where(held, 0.0, operator(direction))
        height = float(direction @ product)
        if not height > 0.0:
            break
        value = value + size / height * direction
        residual = residual - size / height * product
        old = size
    return value
