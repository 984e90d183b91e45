"""Restricted maximum likelihood by EM steps.

Plain EM steps are slow where a variance is small. Each is therefore followed by a change of the
scales of the random effects, fitted as regression weights (parameter expansion), if the restricted
likelihood rises with it. Long fits extrapolate their steps too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine.recipe import StepLength
from .covariances import (
    MIN_VARIANCE,
    CovarianceFamily,
    EffectCovariance,
    InterceptOnly,
    Isotropic,
    extrapolate_variance,
)
from .likelihoods import Likelihood
from .posterior import Posterior, Prior

MIN_COMMON_VARIANCE = 1e-8
"""Of the fixed effects: below, the restricted likelihood is made of rounding."""
MIN_PLAIN_STEPS = 40
"""Steps before extrapolation, where members of stacks stop; see benchmarks/bench_evidence.md."""
WINDOW = 10
"""Steps whose gains count together from then on: those of single steps rise and fall."""
MAX_FREE_SHARE = 0.1
"""Fixed effects for each row up to which they are free; more are shrunk to zero."""
START_VARIANCE = 0.1
"""Variances to start from, in units of the standardised data."""
MIN_START_VARIANCE = 1e-3
"""Variance of slopes that families which refine the isotropic fit start from at least."""
MAX_START_RATIO = 1e3
"""Variance to start from at most, over that of the residuals: equal targets have next to none."""


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
    tasks, size = len(likelihood.data.counts), len(likelihood.directions)
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
    else:
        common = variance = min(START_VARIANCE, most)
        if tasks == 1:
            # Random effects of a single task cannot be separated from the fixed ones.
            family, variance = InterceptOnly(), MIN_VARIANCE
        elif not shrink_common and size <= MAX_FREE_SHARE * likelihood.n_rows:
            common = np.inf
        covariance = family.estimate(variance * np.eye(size), 1)
        prior = Prior(covariance, np.full(tasks, noise), noise, common)
    yield from maximise(likelihood, family, prior, **limits)


def maximise(
    likelihood: Likelihood, family: CovarianceFamily, prior: Prior, *, max_iter: int, tol: float
) -> Iterator[EMIteration]:
    """Yield priors of rising restricted likelihood until a row has less than ``tol`` to gain."""
    stage = _stage(likelihood, prior, family, 0)
    yield stage
    last, step_length, path = prior, StepLength(), [stage.objective]
    for number in range(1, max_iter + 1):
        ahead = stage
        if number > MIN_PLAIN_STEPS:
            ahead = _extrapolated(family, last, stage, step_length.share)
            step_length = step_length.after(ahead is not stage)
        fresh = _advanced(family, ahead, number)
        path.append(fresh.objective)
        if _remaining_gain(path) <= tol * likelihood.n_rows:
            yield replace(fresh, converged=True)
            return
        last, stage = stage.prior, fresh
        yield stage


def _remaining_gain(path: list[float]) -> float:
    """What steps may still gain, by the objective after each so far."""
    if len(path) > MIN_PLAIN_STEPS + 1:
        return path[-1] - path[-1 - WINDOW]
    latest = path[-1] - path[-2]
    before = path[-2] - path[-3] if len(path) > 2 else float("inf")
    rate = min(max(latest / before, 0.0), 0.99) if before > 0.0 else 0.0
    return latest / (1.0 - rate)


def _extrapolated(
    family: CovarianceFamily, last: Prior, stage: EMIteration, share: float
) -> EMIteration:
    """Extrapolate the step from the last prior if the objective rises, or return the same stage."""
    prior = stage.prior
    covariance = family.extrapolated(last.covariance, prior.covariance, share)
    variance = prior.mean_variance
    if np.isfinite(variance):
        variance = float(extrapolate_variance(last.mean_variance, variance, share))
        variance = max(variance, MIN_COMMON_VARIANCE)
    # Noise stays: where rows can be met exactly there is no end to what less of it would gain.
    further = replace(prior, covariance=covariance, mean_variance=variance)
    ahead = _stage(stage.likelihood, further, family, stage.step)
    return ahead if ahead.objective > stage.objective else stage


def _stage(
    likelihood: Likelihood, prior: Prior, family: CovarianceFamily, step: int
) -> EMIteration:
    posterior = likelihood.infer(prior)
    objective = posterior.log_evidence + family.log_prior(prior.covariance)
    objective += likelihood.log_prior(prior)
    return EMIteration(likelihood, prior, posterior, objective, step, False)


def _advanced(family: CovarianceFamily, stage: EMIteration, step: int) -> EMIteration:
    """One EM step, with parameter expansion where that raises the objective."""
    prior, posterior = stage.prior, stage.posterior
    tasks, size = posterior.effects.shape
    covariance = family.estimate(posterior.moments, tasks)
    variance, bold = _mean_variances(prior, posterior)

    def advanced(covariance: EffectCovariance, variance: float, gain: float) -> EMIteration:
        fresh = replace(prior, covariance=covariance, mean_variance=variance)
        return _stage(*stage.likelihood.updated(fresh, posterior, gain), family, step)

    # Scales are fitted to the rows alone; a prior has its say in the plain steps between.
    if family.center is None or step % 2:
        scales, gain = _scales(posterior, family.groups(size))
        expanded = advanced(covariance.rescaled(scales), bold, gain)
        if expanded.objective >= stage.objective:
            return expanded
    return advanced(covariance, variance, 0.0)


def _mean_variances(prior: Prior, posterior: Posterior) -> tuple[float, float]:
    """Variance of the fixed effects by an EM step, and over as many as the rows determine."""
    if not np.isfinite(prior.mean_variance):
        return prior.mean_variance, prior.mean_variance
    squares = posterior.mean[:-1] ** 2
    variances = posterior.mean_covariance.diagonal()[:-1]
    plain = max(float(np.mean(squares + variances)), MIN_COMMON_VARIANCE)
    determined = float(np.sum(1.0 - variances / prior.mean_variance))
    bold = float(np.sum(squares)) / max(determined, MIN_COMMON_VARIANCE)
    return plain, max(min(plain, bold), MIN_COMMON_VARIANCE)


def _scales(posterior: Posterior, groups: np.ndarray) -> tuple[np.ndarray, float]:
    """Scales of the effects, one a group, that suit the rows best, and the squared error saved."""
    member = np.eye(groups.max() + 1)[groups]
    slope = member.T @ posterior.slope
    stiffness = member.T @ posterior.stiffness @ member
    scales = np.linalg.lstsq(stiffness, slope, rcond=1e-10)[0]
    gap = scales - 1.0
    # The quadratic of the scales has its minimum there.
    return np.abs(scales)[groups], float(gap @ stiffness @ gap)
