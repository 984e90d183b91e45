"""Variances of new targets under the posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import segment_forms
from ..saving.registry import saved
from .evidence import Stage

_CELLS = 2**22


@saved
@dataclass(frozen=True, eq=False)
class Spread:
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
    def of(cls, stage: Stage) -> Spread:
        """Spread at a stage of the fit."""
        prior, posterior = stage.prior, stage.posterior
        fresh = posterior.mean_covariance + prior.structure.covariance
        return cls(
            np.concatenate([stage.likelihood.covariances(prior, posterior), fresh[None]]),
            np.append(prior.noise, prior.level),
        )

    def variances(self, rows: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Variance of the target of each row for its task, or for every task.

        ``codes`` of -1, or beyond the tasks, stand for a task that was never seen.
        """
        covariances, noise = self.covariances, self.noise
        if codes is None:
            tasks = len(noise) - 1
            step = max(1, _CELLS // max(rows.size, 1))
            parts = [
                np.einsum("tnq,nq->nt", rows @ covariances[first : first + step], rows)
                for first in range(0, tasks, step)
            ]
            return np.concatenate(parts, axis=1)[:, :tasks] + noise[:-1]
        order = np.argsort(codes % len(noise), kind="stable")
        present, counts = np.unique(codes % len(noise), return_counts=True)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        variances = np.empty(len(codes))
        variances[order] = segment_forms(rows[order], covariances[present], offsets)
        return variances + noise[codes]
