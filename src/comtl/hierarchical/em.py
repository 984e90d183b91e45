"""Priors that the rows make most likely: expectation and maximisation in turn.

Plain steps creep where a variance is small. Each is therefore followed by a change of the scales of
the effects, fitted to the rows as if they were regression weights (parameter expansion), and taken
up by the covariance; the variance of the common weights goes further with it. Where the marginal
likelihood does not rise with this the plain step stands. Fits that take long go further along their
way too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..engine.extrapolation import StepLength
from .covariances import extrapolate_linear
from .likelihoods import Likelihood
from .posterior import Posterior, Prior

LEAST_VARIANCE = 1e-8
"""Of the common weights: of smaller ones rounding makes a mock evidence."""
MIN_PLAIN_STEPS = 40
"""Steps before extrapolation starts; see benchmarks/bench_evidence.md. Members of
stacks stop there."""
WINDOW = 10
"""Steps whose gains count together from then on: those of single steps rise and fall."""


@dataclass(frozen=True, eq=False)
class EMIteration:
    """Prior and posterior after some steps; ``objective`` counts the log priors too."""

    likelihood: Likelihood
    prior: Prior
    posterior: Posterior
    objective: float
    step: int
    converged: bool


def maximise(
    likelihood: Likelihood, prior: Prior, *, max_iter: int, tol: float
) -> Iterator[EMIteration]:
    """Yield ever more likely priors, the first one first.

    It ends once what the steps to come may still gain is less than ``tol`` for each row: by how
    fast the gains of plain steps fall, or by what the last few steps gained together.
    """
    stage = _stage(likelihood, prior, 0)
    yield stage
    last, step_length, path = prior, StepLength(), [stage.objective]
    for number in range(1, max_iter + 1):
        ahead = stage
        if number > MIN_PLAIN_STEPS:
            ahead, step_length = _extrapolated(last, stage, step_length)
        fresh = _advanced(ahead, number)
        path.append(fresh.objective)
        done = _left(path) <= tol * likelihood.n_rows
        last, stage = stage.prior, replace(fresh, converged=done)
        yield stage
        if done:
            return


def _left(path: list[float]) -> float:
    """What steps may still gain, by the objective after each so far."""
    if len(path) > MIN_PLAIN_STEPS + 1:
        return path[-1] - path[-1 - WINDOW]
    latest = path[-1] - path[-2]
    before = path[-2] - path[-3] if len(path) > 2 else float("inf")
    rate = min(max(latest / before, 0.0), 0.99) if before > 0.0 else 0.0
    return latest / (1.0 - rate)


def _extrapolated(
    last: Prior, stage: EMIteration, step_length: StepLength
) -> tuple[EMIteration, StepLength]:
    """Extrapolate the step from the last prior, if the objective rises."""
    prior = stage.prior
    structure = prior.structure.extrapolated(last.structure, step_length.share)
    variance = prior.mean_variance
    if np.isfinite(variance):
        variance = max(
            float(extrapolate_linear(last.mean_variance, variance, step_length.share)),
            LEAST_VARIANCE,
        )
    # Noise stays: where rows can be met exactly there is no end to what less of it would gain.
    further_on = replace(prior, structure=structure, mean_variance=variance)
    ahead = _stage(stage.likelihood, further_on, stage.step)
    if ahead.objective > stage.objective:
        return ahead, step_length.after(True)
    return stage, step_length.after(False)


def _stage(likelihood: Likelihood, prior: Prior, step: int) -> EMIteration:
    posterior = likelihood.infer(prior)
    objective = posterior.log_evidence + prior.structure.log_prior + likelihood.log_prior(prior)
    return EMIteration(likelihood, prior, posterior, objective, step, False)


def _advanced(stage: EMIteration, step: int) -> EMIteration:
    prior, posterior = stage.prior, stage.posterior
    tasks = len(posterior.effects)
    structure = prior.structure.fitted(posterior.moments, tasks)
    variance, bold = _mean_variances(prior, posterior)
    plain = replace(prior, structure=structure, mean_variance=variance)
    # Scales are fitted to the rows alone; a prior has its say in the plain steps between.
    if not structure.has_prior or step % 2:
        scales, gain = _scales(posterior, structure.groups)
        expanded = replace(plain, mean_variance=bold)
        likelihood, expanded = stage.likelihood.updated(expanded, posterior, gain)
        fresh = _stage(likelihood, expanded.with_structure(structure.rescaled(scales)), step)
        if fresh.objective >= stage.objective:
            return fresh
    likelihood, plain = stage.likelihood.updated(plain, posterior, 0.0)
    return _stage(likelihood, plain, step)


def _mean_variances(prior: Prior, posterior: Posterior) -> tuple[float, float]:
    """Variance of the common weights by a plain step, and by one that goes much further down.

    The second divides their squares by how many of them the rows determine, not by all. Both stay
    where the marginal likelihood has its top.
    """
    if not np.isfinite(prior.mean_variance):
        return prior.mean_variance, prior.mean_variance
    squares = posterior.mean[:-1] ** 2
    spread = np.diagonal(posterior.mean_covariance)[:-1]
    plain = max(float(np.mean(squares + spread)), LEAST_VARIANCE)
    determined = max(float(np.sum(1.0 - spread / prior.mean_variance)), LEAST_VARIANCE)
    return plain, max(min(plain, float(np.sum(squares)) / determined), LEAST_VARIANCE)


def _scales(posterior: Posterior, groups: np.ndarray) -> tuple[np.ndarray, float]:
    """Scales of groups of effects that suit the rows best, and what they take off the errors."""
    member = np.eye(groups.max() + 1)[groups]
    pull = member.T @ posterior.pull
    stiffness = member.T @ posterior.stiffness @ member
    scales = np.linalg.lstsq(stiffness, pull, rcond=1e-10)[0]
    gap = scales - 1.0
    # The quadratic of the scales has its minimum there.
    return np.abs(scales), float(gap @ stiffness @ gap)
