"""Piecewise-linear features: a hinge at some quantiles of each continuous column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import device_name, on_device
from ..saving.registry import saved

KNOTS = (0.2, 0.4, 0.6, 0.8)
LEAST_VALUES = 10
"""Quantiles at which a column may have a hinge, and distinct values that make it continuous."""
REACHED_QUANTILE = 1.0 - 1e-9
"""Share of a quantile at which it counts as reached, since sums of weights are rounded."""


@saved
@dataclass(frozen=True, eq=False)
class Hinges:
    """Columns ``max(x - knot, 0)`` beside the columns of X that ``columns`` names."""

    columns: np.ndarray
    knots: np.ndarray

    @classmethod
    def none(cls) -> Hinges:
        """No hinges: the columns of X alone."""
        return cls(np.zeros(0, dtype=np.intp), np.zeros(0))

    @classmethod
    def of(cls, X: Any, weights: np.ndarray) -> Hinges:
        """Hinges for the continuous columns of rows with these weights, dense or sparse."""
        if on_device(X):
            raise TypeError(
                f'form="hinges" looks for hinges on the host, but X lies in {device_name(X)}; '
                'take form="linear", or pass arrays of NumPy.'
            )
        found = [_knots(*column) for column in _columns(X, np.asarray(weights, dtype=np.float64))]
        columns = np.repeat(np.arange(len(found)), [len(knots) for knots in found])
        return cls(columns, np.concatenate([np.zeros(0), *found]))

    def expanded(self, X: Any) -> Any:
        """Columns of X, then the hinges; sparse rows stay sparse."""
        if not len(self.columns):
            return X
        knots, chosen = self.knots.astype(X.dtype), X[:, self.columns]
        if not sparse.issparse(X):
            return np.concatenate([X, _beyond(chosen, knots)], axis=1)
        chosen = chosen.tocsc()
        # One dense column at a time: with a knot below zero all its rows have a value.
        bent = [
            sparse.csc_array(_beyond(chosen[:, [place]].toarray(), knot))
            for place, knot in enumerate(knots)
        ]
        return sparse.csr_array(sparse.hstack([X, *bent], format="csr"))

    def names(self, given: Sequence[str]) -> list[str]:
        """Names of the hinges, where the columns of X have these."""
        for digits in (4, 8, 17):
            hinges = zip(self.columns.tolist(), self.knots.tolist(), strict=True)
            named = [f"{given[column]} above {_shown(knot, digits)}" for column, knot in hinges]
            if len(set(named)) == len(named):
                break
        return named


def _shown(knot: float, digits: int) -> str:
    """Number as people write it: incomes have no exponents."""
    return f"{knot:.0f}" if 10.0**digits <= abs(knot) < 1e12 else f"{knot:.{digits}g}"


def _beyond(values: np.ndarray, knots: Any) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.maximum(values - knots, 0.0)


def _columns(X: Any, weights: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Values of each column with their weights; the zeros of a sparse one are a single value."""
    if not sparse.issparse(X):
        yield from ((column, weights) for column in X.T)
        return
    X = X.tocsc()
    X.sum_duplicates()
    total, known = float(weights.sum()), np.count_nonzero(weights)
    for start, stop in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
        values, own = X.data[start:stop], weights[X.indices[start:stop]]
        if np.count_nonzero(own) < known:
            values, own = np.append(values, 0.0), np.append(own, total - own.sum())
        yield values, own


def _knots(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Quantiles at which a column has its hinges; none unless it is continuous."""
    kept = np.flatnonzero(weights)
    kept = kept[np.argsort(values[kept], kind="stable")]
    values, reached = values[kept], np.cumsum(weights[kept])
    with np.errstate(over="ignore"):
        measured = np.isfinite(values[-1] - values[0])
    if not measured or np.count_nonzero(values[1:] != values[:-1]) + 1 < LEAST_VALUES:
        return np.zeros(0)
    # Values of rows, as a row of weight 2 is the row given twice.
    places = np.searchsorted(reached, REACHED_QUANTILE * reached[-1] * np.array(KNOTS))
    knots = np.unique(values[places]).astype(np.float64)
    return knots[(knots > values[0]) & (knots < values[-1])]
