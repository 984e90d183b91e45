"""Restricted maximum likelihood by scoring steps.

Each step solves for the change of all variances by the expected curvature of the restricted
likelihood (Fisher scoring), by a few conjugate gradients, and is shortened until the likelihood
rises.

The rows of a task have the covariance ``V = X B Xᵀ + σ²``. A change of ``B`` is a vector here;
``change`` has what it makes of ``V``, and ``contract`` what a weight of ``V`` comes to for each of
its entries. Twice the gradient of the restricted likelihood and its expected curvature are
contractions of matrices of the rows, so that no matrix of the features is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from .covariances import MIN_VARIANCE, CovarianceFamily, EffectCovariance, InterceptOnly, Isotropic
from .likelihoods import Likelihood
from .posterior import Posterior, Prior

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


LOWEST = 0.1
"""What is left of a variance after one step at least."""
POWERS = 8
"""Products with the gradient from which its leading eigenvectors come, about."""


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
    common = _common_step(prior, posterior)
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
    if likelihood is not stage.likelihood:
        fresh = _stage(likelihood, prior, family, step)
        if fresh.objective > stage.objective:
            return fresh, predicted
    return replace(stage, step=step), predicted


def _common_step(prior: Prior, posterior: Posterior) -> float:
    """Change of the variance of the fixed effects, as a share of it."""
    trace, squares = posterior.common.determined
    if not np.isfinite(prior.mean_variance) or not squares > 0.0:
        return 0.0
    slope = float(np.sum(posterior.mean[:-1] ** 2)) / prior.mean_variance - trace
    return max(slope / squares, LOWEST - 1.0)


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
    gradient[:size] += tangent.prior()
    gradient[size:] += slope

    def operator(vector: np.ndarray) -> np.ndarray:
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
        found[:size] += tangent.prior(vector[:size])
        found[size:] += curvature * vector[size:]
        return found

    diagonal = np.zeros(0)
    if groups is not None:
        each = beyond.copy()
        for block, part in zip(data.blocks, posterior.blocks, strict=True):
            squares = np.sum(part.inverse**2, axis=(1, 2))
            each[block.tasks] += noise[block.tasks] ** 2 * squares
        diagonal = np.bincount(groups, each, minlength=count) + curvature

    def precondition(vector: np.ndarray) -> np.ndarray:
        return np.concatenate([tangent.precondition(vector[:size]), vector[size:] / diagonal])

    held, fixed = np.zeros(len(gradient), dtype=bool), np.zeros(len(gradient))
    if groups is not None:
        # Noise at its floor stays there.
        at_floor = np.bincount(groups, noise > likelihood.least_noise, minlength=count) == 0.0
        held[size:] = at_floor & (gradient[size:] < 0.0)
    for _ in range(3):
        right = gradient - operator(fixed) if held.any() else gradient
        step = fixed + _conjugate_gradient(operator, precondition, right, held, tangent.steps)
        low = np.append(tangent.bounded(step[:size]), step[size:] < LOWEST - 1.0) & ~held
        if not low.any():
            break
        # What comes to its bound is held there, and the rest solved for once more.
        held |= low
        fixed[low] = LOWEST - 1.0
    step = np.append(step[:size], np.maximum(step[size:], LOWEST - 1.0))
    noise_step = step[size:][groups] if groups is not None else np.zeros(len(noise))
    return step[:size], noise_step, 0.5 * float(gradient @ step)


def _conjugate_gradient(
    operator: Any, precondition: Any, right: np.ndarray, held: np.ndarray, steps: int
) -> np.ndarray:
    """Solve for the entries that are not held."""
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


class Tangent(Protocol):
    """Changes of a covariance within its family."""

    steps: int  # of conjugate gradients that are worth their time

    def change(self, vector: np.ndarray) -> list[np.ndarray]:
        """Change of ``V`` of each block's tasks."""

    def contract(self, weights: Sequence[np.ndarray]) -> np.ndarray:
        """Derivative by each entry of the sum of the products of ``V`` with weights."""

    def prior(self, vector: np.ndarray | None = None) -> np.ndarray:
        """Twice the slope of the log prior, or its curvature times a vector."""

    def precondition(self, vector: np.ndarray) -> np.ndarray:
        """Product with about the inverse of the curvature."""

    def bounded(self, vector: np.ndarray) -> np.ndarray:
        """Which entries go below what is allowed, and could be held there."""

    def moved(self, vector: np.ndarray) -> EffectCovariance:
        """Covariance after a change."""


def tangent_of(family: CovarianceFamily, posterior: Posterior) -> Tangent:
    """Changes of the covariance behind a posterior."""
    kind = DenseTangent if family.variances == "matrix" else VarianceTangent
    return kind(family, posterior)


class VarianceTangent:
    """Changes of variances, as shares of these, and of directions."""

    def __init__(self, family: CovarianceFamily, posterior: Posterior) -> None:
        self.posterior, self.data = posterior, posterior.data
        self.covariance = posterior.prior.covariance
        self.kind, self.count = family.variances, self.covariance.directions.shape[1]
        features = self.data.size - 1
        self.slots = {"none": 0, "all": min(1, features), "each": features}[self.kind]
        self.steps = 10 + 10 * (self.kind == "each") + 5 * self.count
        self.turned = [block.times(self.covariance.directions) for block in self.data.blocks]

    def _parts(self, vector: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        slopes = self.covariance.variances[:-1] * (vector[: self.slots] if self.slots else 0.0)
        intercept = float(self.covariance.variances[-1] * vector[self.slots])
        directions = np.zeros_like(self.covariance.directions)
        directions[:-1] = vector[self.slots + 1 :].reshape(len(slopes), self.count)
        return slopes, intercept, directions

    def change(self, vector: np.ndarray) -> list[np.ndarray]:
        slopes, intercept, directions = self._parts(vector)
        found = []
        for block, turned in zip(self.data.blocks, self.turned, strict=True):
            change = block.spread(slopes, intercept)
            if self.count:
                half = turned @ np.swapaxes(block.times(directions), 1, 2)
                change = change + half + np.swapaxes(half, 1, 2)
            found.append(change)
        return found

    def contract(self, weights: Sequence[np.ndarray]) -> np.ndarray:
        own, features = self.covariance.variances, self.data.size - 1
        slopes, intercept = np.zeros(self.slots), 0.0
        directions = np.zeros((features, self.count))
        for block, turned, weight in zip(self.data.blocks, self.turned, weights, strict=True):
            intercept += float(np.sum(block.ones[:, None, :] @ weight @ block.ones[:, :, None]))
            if self.kind == "all" and features:
                slopes[0] += float(np.vdot(weight, block.kernel))
            elif self.kind == "each":
                slopes += block.effect_sums(weight)
            if self.count:
                image = (weight @ turned).reshape(-1, self.count)
                directions += 2.0 * block.flat[:, :-1].T @ image
        slopes *= own[: self.slots]
        return np.concatenate([slopes, [own[-1] * intercept], directions.ravel()])

    def prior(self, vector: np.ndarray | None = None) -> np.ndarray:
        return np.zeros(self.slots + 1 + self.count * (self.data.size - 1))

    @cached_property
    def _scale(self) -> tuple[np.ndarray, np.ndarray]:
        """Curvature by each variance, and inverse of that by the directions."""
        own, features = self.covariance.variances, self.data.size - 1
        squares, level, inner = np.zeros(self.slots + 1), 0.0, np.zeros((self.count, self.count))
        tasks = len(self.posterior.effects)
        parts = zip(self.data.blocks, self.turned, self.posterior.blocks, strict=True)
        for block, turned, part in parts:
            image = (block.ones[:, None, :] @ part.inverse)[:, 0, :]
            squares[-1] += float(np.sum(np.sum(image * block.ones, axis=1) ** 2))
            if self.kind == "all" and features:
                product = part.inverse @ block.kernel
                squares[0] += float(np.vdot(product, np.swapaxes(product, 1, 2)))
                level += float(np.trace(product, axis1=1, axis2=2).sum())
            elif self.kind == "each":
                squares[:-1] += block.effect_squares(part.inverse)
            if self.count:
                image = (part.inverse @ turned).reshape(-1, self.count)
                inner += turned.reshape(-1, self.count).T @ image
        squares *= np.append(own[: self.slots], own[-1]) ** 2
        inner = 2.0 * inner * max(level, 1e-300) / max(tasks * features, 1)
        return squares, np.linalg.pinv(inner, rcond=1e-10, hermitian=True)

    def precondition(self, vector: np.ndarray) -> np.ndarray:
        squares, inner = self._scale
        safe = np.where(squares > 0.0, squares, np.inf)
        split = self.slots + 1
        directions = vector[split:].reshape(self.data.size - 1, self.count) @ inner
        return np.concatenate([vector[:split] / safe, directions.ravel()])

    def bounded(self, vector: np.ndarray) -> np.ndarray:
        low = vector < LOWEST - 1.0
        low[self.slots + 1 :] = False
        return low

    def moved(self, vector: np.ndarray) -> EffectCovariance:
        vector = np.where(self.bounded(vector), LOWEST - 1.0, vector)
        slopes, intercept, change = self._parts(vector)
        variances = self.covariance.variances + np.append(slopes, intercept)
        variances[(variances < MIN_VARIANCE) & (self.covariance.variances > 0.0)] = MIN_VARIANCE
        directions = self.covariance.directions
        if self.count:
            # The nearest of so many directions to the sum, which has twice as many.
            basis, both = np.linalg.qr(np.hstack([directions, change]))
            one = np.eye(self.count)
            inner = both @ np.block([[one, one], [one, 0.0 * one]]) @ both.T
            values, turn = np.linalg.eigh(inner)
            least = 1e-6 * max(float(values[-1]), float(variances[:-1].mean()))
            values = np.maximum(values[-self.count :], least)
            directions = basis @ turn[:, -self.count :] * np.sqrt(values)
        return EffectCovariance(variances, directions)


class DenseTangent:
    """Changes of any entry, or of those that a family's projection leaves."""

    steps = 3

    def __init__(self, family: CovarianceFamily, posterior: Posterior) -> None:
        self.family, self.data, size = family, posterior.data, posterior.data.size
        self.matrix = posterior.prior.covariance.matrix
        stiff = posterior.common.stiffness
        if stiff is None:
            stiff = sum(
                block.flat.T @ (part.inverse @ block.rows).reshape(block.flat.shape)
                for block, part in zip(self.data.blocks, posterior.blocks, strict=True)
            )
        self.tasks = len(posterior.effects)
        told = np.asarray(stiff) / self.tasks
        told = told + 1e-8 * float(np.trace(told)) / size * np.eye(size)
        root = np.linalg.cholesky(told)
        values, turn = np.linalg.eigh(root.T @ self.matrix @ root)
        self.variances = np.maximum(values, 1e-14 * max(float(values[-1]), 1e-300))
        # B = Q diag Qᵀ, and Qᵀ W Q = I for the mean W of Xᵀ V⁻¹ X: tasks tell one of each entry.
        self.basis, self.inverse = np.linalg.solve(root.T, turn), turn.T @ root.T
        self.strength = family.weight / np.outer(self.variances, self.variances)

    def _projected(self, matrix: np.ndarray) -> np.ndarray:
        return self.family.project(matrix).ravel()

    def change(self, vector: np.ndarray) -> list[np.ndarray]:
        matrix = vector.reshape(self.matrix.shape)
        return [block.times(matrix) @ np.swapaxes(block.rows, 1, 2) for block in self.data.blocks]

    def contract(self, weights: Sequence[np.ndarray]) -> np.ndarray:
        found = sum(
            block.flat.T @ (weight @ block.rows).reshape(block.flat.shape)
            for block, weight in zip(self.data.blocks, weights, strict=True)
        )
        return self._projected(np.asarray(found))

    def prior(self, vector: np.ndarray | None = None) -> np.ndarray:
        if self.family.center is None:
            return np.zeros(self.matrix.size)
        inside = np.diag(-self.variances)
        if vector is not None:
            inside = self.inverse @ vector.reshape(self.matrix.shape) @ self.inverse.T
        else:
            inside += (self.inverse * self.family.center) @ self.inverse.T
        return self._projected(self.inverse.T @ (self.strength * inside) @ self.inverse)

    def precondition(self, vector: np.ndarray) -> np.ndarray:
        inside = self.basis.T @ vector.reshape(self.matrix.shape) @ self.basis
        inside /= self.tasks + self.strength
        return self._projected(self.basis @ inside @ self.basis.T)

    def bounded(self, vector: np.ndarray) -> np.ndarray:
        return np.zeros(vector.shape, dtype=bool)

    def moved(self, vector: np.ndarray) -> EffectCovariance:
        size = np.sqrt(self.variances)
        half = self.inverse / size[:, None]
        ratio = half @ vector.reshape(self.matrix.shape) @ half.T
        values, turn = np.linalg.eigh(0.5 * (ratio + ratio.T))
        directions = (self.basis * size) @ turn * np.sqrt(np.maximum(1.0 + values, LOWEST))
        found = EffectCovariance(np.zeros(len(size)), directions)
        projected = self._projected(found.matrix).reshape(self.matrix.shape)
        return found if np.allclose(projected, found.matrix) else EffectCovariance.of(projected)


def with_directions(
    covariance: EffectCovariance, posterior: Posterior, count: int
) -> EffectCovariance:
    """Return the covariance with directions added along which the likelihood rises most."""
    data, known = posterior.data, covariance.directions.shape[1]
    features, more = data.size - 1, min(count, data.size - 2) - known
    if more < 1:
        return EffectCovariance(covariance.variances, covariance.directions[:, -count:])

    def gradient(vectors: np.ndarray) -> np.ndarray:
        found = np.zeros(vectors.shape)
        for block, part in zip(data.blocks, posterior.blocks, strict=True):
            slopes = block.flat[:, :-1]
            scores = (slopes @ vectors).reshape(*block.targets.shape, -1)
            found += slopes.T @ (part.curvature @ scores).reshape(-1, scores.shape[2])
        return found

    krylov = [np.random.default_rng(0).standard_normal((features, more + 2))]
    while len(krylov) < POWERS and len(krylov) * (more + 2) < features:
        krylov.append(np.linalg.qr(gradient(krylov[-1]))[0])
    space = np.linalg.qr(np.hstack(krylov))[0]
    values, turn = np.linalg.eigh(space.T @ gradient(space))
    values, basis = values[-more:], space @ turn[:, -more:]
    curvature = np.zeros(more)
    for block, part in zip(data.blocks, posterior.blocks, strict=True):
        scores = (block.flat[:, :-1] @ basis).reshape(*block.targets.shape, more)
        curvature += (np.sum(scores * (part.inverse @ scores), axis=1) ** 2).sum(axis=0)
    least = 1e-2 * float(covariance.variances[:-1].mean())
    sizes = np.sqrt(np.maximum(values / np.maximum(curvature, 1e-300), least))
    fresh = np.vstack([basis * sizes, np.zeros(more)])
    return EffectCovariance(covariance.variances, np.hstack([fresh, covariance.directions]))
