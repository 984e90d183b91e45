"""Quantiles of rows that are there as often as their weights say."""

from __future__ import annotations

import numpy as np


def quantiles(values: np.ndarray, weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Values below which shares of the rows lie, in proportion between two rows."""
    order = np.argsort(values, kind="stable")
    values, reached = values[order], np.cumsum(weights[order])
    place = shares * max(reached[-1] - 1.0, 0.0)
    low, high = (
        values[np.minimum(np.searchsorted(reached, end, side="right"), len(values) - 1)]
        for end in (np.floor(place), np.ceil(place))
    )
    return low + (place - np.floor(place)) * (high - low)
