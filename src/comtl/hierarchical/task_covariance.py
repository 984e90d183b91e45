r"""Weights related between tasks, for more features than tasks can tell apart (text).

.. math:: \mathrm{cov}(w_{tp}, w_{t'p}) = Ω_{tt'}, \quad Ω = C C^\top + ρ I

Every feature is one more replicate of the relation between tasks, so ``Ω`` is well determined just
where the covariance between features is not. It comes from moments: products of the weights that
two tasks have on their own are, on average, ``Ω`` times what both can tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..solvers.conjugate_gradient import conjugate_gradient
from .centred_rows import CentredRows

SMOOTH, PROBES = 3.0, 8
"""Noise of the ridge regressions that show the relation, over its estimate, and random vectors that
stand in for traces; see benchmarks/bench_related.md."""


def task_relation(
    rows: CentredRows, target: np.ndarray, size: float, noise: float, seed: int = 0
) -> np.ndarray:
    """Relation between tasks, as it comes, from ridge regressions of each task's own.

    ``size`` and ``noise`` are the variances that these go by; the former is the diagonal. With
    ``B_t`` the smoother of a task its weights are ``B_t w_t`` and noise, so that products of the
    weights of two tasks are, on average, ``Ω_st tr(B_s B_t)``.
    """
    tasks = len(rows.totals)
    none = np.zeros((tasks, 0))
    ratio = SMOOTH * noise / size
    weights = solve_related(rows, target, none, 1.0, ratio)
    rng = np.random.default_rng(seed)
    traces = np.zeros((tasks, tasks))
    for _ in range(PROBES):
        probe = rng.choice([-1.0, 1.0], size=rows.design.shape[1])
        seen = rows.scores(np.broadcast_to(probe, (tasks, len(probe))))
        smoothed = solve_related(rows, seen, none, 1.0, ratio, tol=1e-2)
        traces += smoothed @ smoothed.T / PROBES
    # Tasks whose rows have next to nothing in common tell nothing of each other.
    least = 1e-6 * float(np.diagonal(traces).max(initial=0.0)) or 1.0
    relation = np.where(traces > least, weights @ weights.T / np.maximum(traces, least), 0.0)
    np.fill_diagonal(relation, size)
    return relation


def leading(relation: np.ndarray, rank: int) -> np.ndarray:
    """Directions ``C`` of the largest positive part."""
    values, basis = np.linalg.eigh(0.5 * (relation + relation.T))
    order = np.argsort(values)[::-1][:rank]
    return basis[:, order] * np.sqrt(np.maximum(values[order], 0.0))


def solve_related(
    rows: CentredRows,
    target: np.ndarray,
    directions: np.ndarray,
    rest: float,
    noise: float,
    *,
    tol: float = 1e-4,
    max_iter: int = 300,
) -> np.ndarray:
    """Weights (T, P) of all tasks under a relation, by conjugate gradients over the rows."""

    def weights(values: np.ndarray) -> np.ndarray:
        own = rows.gather(values)
        return directions @ (directions.T @ own) + rest * own

    def operator(values: np.ndarray) -> np.ndarray:
        return rows.scores(weights(values)) + noise * values

    solution: Any = conjugate_gradient(operator, target, tol=tol, max_iter=max_iter)
    return weights(solution.value)
