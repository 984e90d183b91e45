"""Variances of new targets under the posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array, asarray_like, namespace, on_device, segment_forms, take
from ..saving.registry import saved
from .em import EMIteration

_CELLS = 2**22


@saved
@dataclass(frozen=True, eq=False)
class PredictiveVariance:
    """What is not known of the weights, and the noise, of every task and last of a new one.

    Parameters
    ----------
    covariances : ndarray of shape (T + 1, q, q)
        Of the weights with the intercept last.
    noise : ndarray of shape (T + 1,)
        Variances of a target about its score.
    """

    covariances: np.ndarray
    noise: np.ndarray

    @classmethod
    def of(cls, stage: EMIteration) -> PredictiveVariance:
        """Spread at a stage of the fit."""
        prior, posterior = stage.prior, stage.posterior
        fresh = posterior.mean_covariance + prior.covariance.matrix
        return cls(
            np.concatenate([stage.likelihood.covariances(prior, posterior), fresh[None]]),
            # Where tasks have noise of their own, their level is the usual one and no mean.
            np.append(prior.noise, prior.noise.mean()),
        )

    def beside(self, like: Array) -> PredictiveVariance:
        """Return the same where an array lies, in its type."""
        if not on_device(like):
            return self
        return PredictiveVariance(
            *(asarray_like(part, like, like.dtype) for part in (self.covariances, self.noise))
        )

    def variances(self, rows: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Variance of the target of each row for its task, or for every task.

        ``codes`` of -1, or beyond the tasks, stand for a task that was never seen.
        """
        covariances, noise = self.covariances, self.noise
        xp, tasks = namespace(rows), noise.shape[0] - 1
        if codes is None:
            step = max(1, _CELLS // max(rows.shape[0] * rows.shape[1], 1))
            parts = [
                xp.sum((rows @ covariances[first : min(first + step, tasks), ...]) * rows, axis=2).T
                for first in range(0, tasks, step)
            ]
            return xp.clip(xp.concat(parts, axis=1), min=0.0) + noise[:-1]
        codes = codes % (tasks + 1)
        order = np.argsort(codes, kind="stable")
        present, counts = np.unique(codes, return_counts=True)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        forms = segment_forms(take(rows, order), take(covariances, present), offsets)
        # Forms of no spread at all are zero up to rounding.
        return xp.clip(take(forms, np.argsort(order)), min=0.0) + take(noise, codes)
