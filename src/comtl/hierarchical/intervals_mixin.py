"""Standard deviations and intervals of predictions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from ..arrays import Array, asarray_like, namespace, on_device, segment_forms, take
from ..models.outputs import RegressorOutputs, by_partition
from ..models.task_model import TaskModel
from ..parameters import require_level
from ..saving.registry import saved
from .em import EMIteration
from .task_data import MAX_CELLS


class IntervalMixin(RegressorMixin, TaskModel):
    """Abstract regressor that knows the spread of targets around its predictions."""

    _classification = RegressorOutputs._classification
    _link = RegressorOutputs._link
    _binary = RegressorOutputs._binary
    _held_out_loss = RegressorOutputs._held_out_loss
    score = RegressorOutputs.score

    @abstractmethod
    def _deviations(self, X: Any, codes: np.ndarray | None) -> np.ndarray:
        """Standard deviation about the score of a new target of each row, or of every task."""

    @abstractmethod
    def _bounds(
        self, X: Any, codes: np.ndarray | None, level: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Differences from the score between which a share ``level`` of targets lies."""

    @by_partition
    def predict(self, X: Any, task: Any = None, return_std: bool = False) -> Any:
        """Predict the target of each row for its task.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.
        task : array-like of shape (n_samples,), optional
            Task of each row, where it is no column of X.
        return_std : bool, default=False
            Whether to return the standard deviation of a new target as well.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_tasks), or two of them
            Predictions, and their standard deviations if asked for.
        """
        X, codes = self._read_codes(X, task)
        guess = self._link.mean(self._scores(X, codes))
        if not return_std:
            return guess
        return guess, self._link.deviation(guess, self._deviations(X, codes))

    @by_partition
    def predict_interval(
        self, X: Any, level: float = 0.9, task: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bounds between which a new target lies with probability ``level``.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.
        level : float, default=0.9
            Probability, between 0 and 1.
        task : array-like of shape (n_samples,), optional
            Task of each row, where it is no column of X.

        Returns
        -------
        lower, upper : ndarrays of shape (n_samples,) or (n_samples, n_tasks)
            The bounds.
        """
        level = require_level("level", level)
        X, codes = self._read_codes(X, task)
        guess = self._scores(X, codes)
        low, high = self._bounds(X, codes, level)
        return self._link.mean(guess + low), self._link.mean(guess + high)


@saved
@dataclass(frozen=True, eq=False)
class PredictiveVariance:
    """Covariances of weights (the intercept last) and noise of each task, and last of a new one."""

    covariances: np.ndarray
    noise: np.ndarray

    @classmethod
    def of(cls, stage: EMIteration) -> PredictiveVariance:
        """Variances at a step of the fit."""
        prior, posterior = stage.prior, stage.posterior
        fresh = posterior.mean_covariance + prior.covariance.matrix
        return cls(
            np.concatenate([stage.likelihood.data.covariances(prior, posterior), fresh[None]]),
            np.append(prior.noise, prior.noise.mean()),
        )

    def beside(self, like: Array) -> PredictiveVariance:
        """Return the same where an array lies, in its type."""
        dtype, parts = like.dtype if on_device(like) else None, (self.covariances, self.noise)
        return PredictiveVariance(*(asarray_like(part, like, dtype) for part in parts))

    def variances(self, rows: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Variance of a target of each row for its task (unseen: -1 or beyond), or for all."""
        covariances, noise = self.covariances, self.noise
        xp, tasks = namespace(rows), noise.shape[0] - 1
        if codes is None:
            step = max(1, MAX_CELLS // max(rows.shape[0] * rows.shape[1], 1))
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
        return xp.clip(take(forms, np.argsort(order)), min=0.0) + take(noise, codes)
