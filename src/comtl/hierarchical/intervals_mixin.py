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
from .covariances import EffectCovariance
from .em import EMIteration
from .task_data import BLOCK_CELLS


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
        fresh = posterior.common.covariance + prior.covariance.matrix
        return cls(
            np.concatenate([posterior.covariances, fresh[None]]),
            np.append(prior.noise, prior.noise.mean()),
        )

    def joined(self, covariances: np.ndarray, noise: np.ndarray) -> PredictiveVariance:
        """Append those of further tasks, before that of a new one."""
        parts = (self.covariances, covariances), (self.noise, noise)
        return PredictiveVariance(
            *(np.concatenate([known[:-1], more, known[-1:]]) for known, more in parts)
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
            step = max(1, BLOCK_CELLS // max(rows.shape[0] * rows.shape[1], 1))
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


@saved
@dataclass(frozen=True, eq=False)
class WidePredictiveVariance:
    """The same by the rows of each task, where these are fewer than the features."""

    covariance: EffectCovariance
    rows: np.ndarray  # whose products are what the tasks add to the precision
    offsets: np.ndarray
    level: float  # of the covariance of the fixed effects, see CommonEffects
    more: np.ndarray
    less: np.ndarray
    noise: np.ndarray

    @classmethod
    def of(cls, stage: EMIteration) -> WidePredictiveVariance:
        """Variances at a step of the fit."""
        prior, posterior = stage.prior, stage.posterior
        parts: list[Any] = [None] * len(prior.noise)
        for block, part in zip(posterior.data.blocks, posterior.blocks, strict=True):
            rows = np.swapaxes(np.linalg.cholesky(part.inverse), 1, 2) @ block.rows
            inside = np.any(block.rows != 0.0, axis=2)
            for place, task in enumerate(block.tasks.tolist()):
                parts[task] = rows[place, inside[place]]
        offsets, noise = (
            np.cumsum([0, *map(len, parts)]),
            np.append(prior.noise, prior.noise.mean()),
        )
        forms = posterior.common.forms
        return cls(prior.covariance, np.concatenate(parts), offsets, *forms, noise)

    def beside(self, like: Array) -> WidePredictiveVariance:
        """Return the same: rows so wide are in memory."""
        return self

    def variances(self, rows: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Variance of a target of each row for its task (unseen: -1 or beyond), or for all."""
        tasks = len(self.noise) - 1
        if codes is None:
            each = [self._of_task(rows, task) for task in range(tasks)]
            return np.stack(each, axis=1)
        found, codes = np.empty(len(rows)), codes % (tasks + 1)
        for task in np.unique(codes).tolist():
            chosen = codes == task
            found[chosen] = self._of_task(rows[chosen], task)
        return found

    def _of_task(self, rows: np.ndarray, task: int) -> np.ndarray:
        own = self.rows[self.offsets[task] : self.offsets[min(task + 1, len(self.offsets) - 1)]]
        spread = self.covariance.times(rows)
        image = spread @ own.T
        left = rows - image @ own
        found = np.sum(rows * spread, axis=1) - np.sum(image**2, axis=1)
        found += self.level * np.sum(left[:, :-1] ** 2, axis=1)
        found += np.sum((left @ self.more.T) ** 2, axis=1) - np.sum(
            (left @ self.less.T) ** 2, axis=1
        )
        return np.maximum(found, 0.0) + self.noise[task]


def predictive_variance(stage: EMIteration) -> PredictiveVariance | WidePredictiveVariance:
    """Variances at a step of the fit, in the smaller form."""
    data, tasks = stage.posterior.data, len(stage.prior.noise)
    wide = data.n_rows < tasks * data.size and tasks * data.size**2 > BLOCK_CELLS
    return (WidePredictiveVariance if wide else PredictiveVariance).of(stage)
