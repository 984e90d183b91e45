"""Columns that tell the target by themselves, as those do that were made from it or after it."""

from __future__ import annotations

from shlex import quote
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import rankdata

from .encoder import Encoder

LEAST_ROWS, MOST_FEATURES = 30, 1000
"""Rows from which a column is told from chance, and features that are looked at."""
TELLING = 0.99
"""Area under the ROC curve, or rank correlation, from which a feature tells the target."""


def notes_on_leaks(encoder: Encoder, X: Any, target: np.ndarray, name: str) -> list[str]:
    """A note on each column one of whose features orders the rows as the target does."""
    if len(target) < LEAST_ROWS:
        return []
    X = X.tocsc() if sparse.issparse(X) else np.asarray(X)
    classes = target.dtype.kind not in "fiu" or len(np.unique(target)) == 2
    parts = [target == one for one in np.unique(target)] if classes else [target]
    ranked = [rankdata(part) for part in parts]
    told: dict[str, float] = {}
    columns = [one.name for one in encoder.columns for _ in one.names][:MOST_FEATURES]
    for place, column in enumerate(columns):
        values = X[:, [place]].toarray().ravel() if sparse.issparse(X) else X[:, place]
        ranks = rankdata(values)
        if np.ptp(ranks) == 0.0:
            continue
        strength = max(_strength(ranks, part, classes) for part in ranked)
        told[column] = max(told.get(column, 0.0), strength)
    what = "area under the ROC curve" if classes else "rank correlation"
    return [
        f"Column {column!r} alone tells {name!r} ({what} {strength:.3f}): if it is known only "
        "after the target, or numbers the rows in its order, leave it out with "
        f"--drop {quote(column)}."
        for column, strength in told.items()
        if strength >= TELLING
    ]


def _strength(ranks: np.ndarray, target: np.ndarray, classes: bool) -> float:
    """Area under the curve of ranks, in the better direction, or correlation with ranks."""
    if not classes:
        return float(abs(np.corrcoef(ranks, target)[0, 1])) if np.ptp(target) else 0.0
    inside = target > target.min()
    few, rest = int(inside.sum()), int((~inside).sum())
    if min(few, rest) < LEAST_ROWS // 3:
        return 0.0
    area = (ranks[inside].sum() - few * (few + 1) / 2.0) / (few * rest)
    return float(max(area, 1.0 - area))
