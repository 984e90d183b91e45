"""Predictions with what they may be off by."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from ..models.outputs import RegressorOutputs, by_partition
from ..models.task_model import TaskModel
from ..parameters import require_level


class IntervalMixin(RegressorMixin, TaskModel):
    """Abstract regressor that knows the spread of targets around its predictions."""

    _classification = RegressorOutputs._classification
    _binary = RegressorOutputs._binary
    _held_out_loss = RegressorOutputs._held_out_loss
    score = RegressorOutputs.score

    @abstractmethod
    def _deviations(self, X: Any, codes: np.ndarray | None) -> np.ndarray:
        """Standard deviation of a new target of each row for its task, or for every task."""

    @abstractmethod
    def _bounds(
        self, X: Any, codes: np.ndarray | None, level: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Differences from the prediction between which a share ``level`` of targets lies."""

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
        guess = self._scores(X, codes)
        return (guess, self._deviations(X, codes)) if return_std else guess

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
        return guess + low, guess + high
