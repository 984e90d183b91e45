"""Random splits that treat every task and class alike."""

from __future__ import annotations

import numpy as np


def share_of_each(groups: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Mark a random share of every group's rows, rounded, but at least one row."""
    if not 0 < share < 1:
        raise ValueError(f"train_share must lie between 0 and 1, got {share!r}.")
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.lexsort((rng.random(len(groups)), codes))
    rank = np.empty(len(groups), dtype=np.intp)
    rank[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank < np.maximum(np.round(share * sizes), 1)[codes]


def shuffled_within(strata: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Row numbers sorted by stratum and in random order inside it.

    Any slice with a step holds the strata in equal shares and is sorted like this again.
    """
    return np.lexsort((rng.random(len(strata)), strata))


def draw_evenly(
    rows: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows at equal distances from rows sorted by stratum; returns them, and the rest.

    Every stratum is drawn in its share, up to one row. Both results are in random order.
    """
    places = ((np.arange(count) + rng.random()) * len(rows) / count).astype(np.intp)
    return rng.permutation(rows[places]), rng.permutation(np.delete(rows, places))
