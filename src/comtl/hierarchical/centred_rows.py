"""Rows of tasks with the mean of their task taken off, for weights of each task's own."""

from __future__ import annotations

import numpy as np

from ..arrays import segment_sum
from ..datafits.own_columns import OwnBlocks
from ..design import Design


class CentredRows:
    """Rows of all tasks with the mean of their task taken off, as an operator.

    Parameters
    ----------
    design : Design
        Rows, those of a task next to each other.
    weights : ndarray of shape (n,)
        Weights of the rows; a row counts with the root of its weight on either side.
    offsets : ndarray of shape (T + 1,)
        Where tasks begin and end.
    """

    def __init__(self, design: Design, weights: np.ndarray, offsets: np.ndarray) -> None:
        self.design, self.offsets = design, offsets
        self.root = np.sqrt(weights)
        self.codes = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        self.totals = segment_sum(weights, offsets)
        self.own = OwnBlocks(design.blocks, self.codes, len(self.totals))

    def center(self, values: np.ndarray) -> np.ndarray:
        """Take off the (weighted) mean of each task; values are times the root of the weights."""
        shape = (-1, *[1] * (values.ndim - 1))
        root = self.root.reshape(shape)
        means = segment_sum(root * values, self.offsets) / self.totals.reshape(shape)
        return values - root * means[self.codes]

    def gather(self, values: np.ndarray) -> np.ndarray:
        """Sum of each task's centred rows times ``values``, ``(T, P)``."""
        product = self.own.sums(self.root * self.center(values))
        # Centred values sum to nothing, so that the shift of the columns falls out.
        return product * self.design.inverse_scale

    def plain_scores(self, weights: np.ndarray) -> np.ndarray:
        """Rows as they are given, but for scale, times the weights (T, P) of their own task."""
        return self.own.scores(weights * self.design.inverse_scale)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Centred rows times the weights (T, P) of their own task."""
        return self.center(self.root * self.plain_scores(weights))
