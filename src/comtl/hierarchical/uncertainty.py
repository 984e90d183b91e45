"""Variances of new targets under the posterior."""

from __future__ import annotations

import numpy as np

from ..arrays import segment_forms
from .evidence import Stage

_CELLS = 2**22


def score_variances(rows: np.ndarray, codes: np.ndarray | None, stage: Stage) -> np.ndarray:
    """Variance of the target of each row for its task, or for every task.

    ``codes`` of -1, or beyond the tasks, stand for a task that was never seen.
    """
    prior, posterior = stage.prior, stage.posterior
    fresh = posterior.mean_covariance + prior.structure.covariance
    covariances = np.concatenate([posterior.covariances, fresh[None]])
    noise = np.append(prior.noise, prior.level)
    if codes is None:
        tasks = len(prior.noise)
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
