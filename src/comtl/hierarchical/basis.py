"""Piecewise-linear features: a bend at some quantiles of each continuous column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..saving.registry import saved

KNOTS = (0.2, 0.4, 0.6, 0.8)
LEAST_VALUES = 10
"""Quantiles at which a column may bend, and distinct values that make a column continuous."""


@saved
@dataclass(frozen=True, eq=False)
class Hinges:
    """Columns ``max(x - knot, 0)`` beside the columns of X.

    Parameters
    ----------
    columns, knots : ndarrays of shape (n_hinges,)
        Column of X and place of each bend.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.hierarchical.basis import Hinges
    >>> hinges = Hinges.of(np.arange(20.0)[:, None])
    >>> hinges.expanded(np.array([[10.0]])).round(1)
    array([[10. ,  6.2,  2.4,  0. ,  0. ]])
    """

    columns: np.ndarray
    knots: np.ndarray

    @classmethod
    def of(cls, X: Any) -> Hinges:
        """Bends for the continuous columns; none for sparse rows."""
        columns, knots = [], []
        if not sparse.issparse(X):
            for column, values in enumerate(X.T):
                # Rows of a task lie next to each other, so every so many of them are looked at.
                if len(np.unique(values[:: max(1, len(values) // 1000)])) < LEAST_VALUES:
                    continue
                places = np.unique(np.quantile(values, KNOTS))
                inside = places[(places > values.min()) & (places < values.max())]
                columns += [column] * len(inside)
                knots += inside.tolist()
        return cls(np.array(columns, dtype=np.intp), np.array(knots))

    def expanded(self, X: Any) -> Any:
        """Columns of X, then the hinges."""
        if not len(self.columns):
            return X
        with np.errstate(invalid="ignore"):
            bent = np.maximum(X[:, self.columns] - self.knots.astype(X.dtype), 0.0)
        return np.concatenate([X, bent], axis=1)
