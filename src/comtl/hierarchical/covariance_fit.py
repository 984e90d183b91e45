"""Which covariance to fit, and the way there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .covariances import LEAST, Diagonal, EffectCovariance, Factor, Full, InterceptOnly
from .em import EMIteration, maximise
from .likelihoods import Likelihood
from .posterior import Prior

STRUCTURES = ("intercept", "isotropic", "diagonal", "full", "factor")
FLAT_SHARE = 0.1
"""Share of the number of rows up to which common slopes are free; more are shrunk to zero."""
START = 0.1
"""Variances to start from, in units of the standardised data."""
LEAST_START = 1e-3
"""Variance of slopes that factors and full covariances start from at least."""
MOST_START = 1e3
"""Variance to start from at most, over the noise: targets that are all alike have next to none."""


@dataclass(frozen=True)
class CovarianceFamily:
    """A family of covariances.

    Parameters
    ----------
    structure : str
        One of ``STRUCTURES``.
    directions : int
        Columns of the factor.
    prior_weight : float or None
        Tasks that the prior of a full covariance counts for; None: as many as features.
    shrink : bool
        Whether common slopes are shrunk however many rows there are.
    """

    structure: str
    directions: int = 0
    prior_weight: float | None = None
    shrink: bool = False

    @property
    def refines(self) -> bool:
        """Whether the fit starts from the isotropic one."""
        return self.structure in ("full", "factor")

    def fit_em(
        self,
        likelihood: Likelihood,
        size: tuple[int, int],
        *,
        max_iter: int,
        tol: float,
        start: Prior | None = None,
    ) -> Iterator[EMIteration]:
        """Yield the stages of the fit; ``size`` counts tasks and features.

        Factors and full covariances start from the isotropic fit; or from ``start``, where it or,
        for factors, a fit with fewer directions is at hand.
        """
        tasks, features = size
        noise = likelihood.start_noise
        least, spread = (min(one, MOST_START * noise) for one in (LEAST_START, START))
        if tasks == 1:
            # What a single task has of its own cannot be separated from what is common.
            alone = Prior(InterceptOnly(LEAST, features), np.full(1, noise), noise, spread)
            yield from maximise(likelihood, alone, max_iter=max_iter, tol=tol)
            return
        if not self.refines:
            free = not self.shrink and features + 1 <= FLAT_SHARE * likelihood.n_rows
            common = np.inf if free else spread
            prior = Prior(self._first(features, spread), np.full(tasks, noise), noise, common)
            yield from maximise(likelihood, prior, max_iter=max_iter, tol=tol)
            return
        if start is None:
            plain = CovarianceFamily("isotropic", shrink=self.shrink).fit_em(
                likelihood, size, max_iter=max_iter, tol=tol
            )
            *_, stage = plain
            likelihood, start = stage.likelihood, stage.prior
        prior = start.with_structure(self._second(start.structure, features, least))
        yield from maximise(likelihood, prior, max_iter=max_iter, tol=tol)

    def _first(self, features: int, spread: float) -> EffectCovariance:
        if self.structure == "intercept":
            return InterceptOnly(spread, features)
        if self.structure == "diagonal":
            return Diagonal(spread, np.full(features, spread))
        return Factor.isotropic(spread, spread, features)

    def _second(self, start: EffectCovariance, features: int, least: float) -> EffectCovariance:
        assert isinstance(start, Factor)
        # From next to nothing no step gets away, and a prior about nothing allows nothing else.
        start = replace(start, rest=max(start.rest, least))
        if self.structure == "factor":
            return start.with_directions(min(self.directions, features - 1))
        weight = float(features) if self.prior_weight is None else self.prior_weight
        return Full.about(np.diagonal(start.covariance).copy(), max(weight, 1e-6))
