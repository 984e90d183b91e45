r"""Weights related between tasks, for more features than tasks can tell apart (text).

.. math:: \mathrm{cov}(w_{tp}, w_{t'p}) = Ω_{tt'}, \quad Ω = C C^\top + ρ I

Every feature is one more replicate of the relation between tasks, so ``Ω`` is well determined just
where the covariance between features is not. It comes from moments: products of targets of two
tasks are, on average, ``Ω`` times the products of their rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..arrays import segment_sum
from ..design import Design
from ..solvers.conjugate_gradient import conjugate_gradient

EXACT_ROWS, PROBES = 4096, 64
"""Rows up to which the kernel is formed, and random vectors that stand in for it beyond."""


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

    def center(self, values: np.ndarray) -> np.ndarray:
        """Take off the (weighted) mean of each task; values are times the root of the weights."""
        shape = (-1, *[1] * (values.ndim - 1))
        root = self.root.reshape(shape)
        means = segment_sum(root * values, self.offsets) / self.totals.reshape(shape)
        return values - root * means[self.codes]

    def gather(self, values: np.ndarray) -> np.ndarray:
        """Sum of each task's centred rows times ``values``, ``(T, P)``."""
        share = self.root * self.center(values)
        mix = sparse.csr_array(
            (share, np.arange(len(share)), self.offsets), shape=(len(self.totals), len(share))
        )
        X = self.design.X
        product = mix @ X
        product = product.toarray() if sparse.issparse(product) else np.asarray(product)
        # Centred values sum to nothing, so that the shift of the columns falls out.
        return product * self.design.inverse_scale

    def plain_scores(self, weights: np.ndarray) -> np.ndarray:
        """Rows as they are given, but for scale, times the weights (T, P) of their own task."""
        loaded = weights * self.design.inverse_scale
        X = self.design.X
        if not sparse.issparse(X):
            scores = np.empty(len(self.codes))
            for start, stop in self.design.dense_blocks():
                part = loaded[self.codes[start:stop]]
                scores[start:stop] = np.einsum("np,np->n", X[start:stop], part)
            return scores
        each = np.repeat(self.codes, np.diff(X.indptr))
        total = np.concatenate([[0.0], np.cumsum(X.data * loaded[each, X.indices])])
        return np.diff(total[X.indptr])

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Centred rows times the weights (T, P) of their own task."""
        return self.center(self.root * self.plain_scores(weights))


def kernel_moments(rows: CentredRows, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """``‖K_st‖²`` of the blocks of the kernel between tasks (T, T), and their traces (T,).

    Exact for a few thousand rows, by random probes beyond.
    """
    count, tasks = len(rows.codes), len(rows.totals)
    if count <= EXACT_ROWS:
        X = rows.design.X * rows.design.inverse_scale
        kernel = X @ X.T
        kernel = kernel.toarray() if sparse.issparse(kernel) else kernel
        kernel = kernel * rows.root[:, None] * rows.root
        kernel = rows.center(rows.center(kernel).T)
        traces = segment_sum(np.diagonal(kernel).copy(), rows.offsets)
        sums = segment_sum(kernel**2, rows.offsets)
        return segment_sum(sums.T.copy(), rows.offsets), traces
    rng = np.random.default_rng(seed)
    products, traces = np.zeros((tasks, tasks)), np.zeros(tasks)
    for _ in range(PROBES):
        probe = rng.choice([-1.0, 1.0], size=rows.design.shape[1])
        scores = rows.scores(np.broadcast_to(probe, (tasks, len(probe))))
        image = rows.gather(scores)
        products += image @ image.T / PROBES
        traces += segment_sum(scores**2, rows.offsets) / PROBES
    return products, traces


def relation_moments(
    rows: CentredRows, target: np.ndarray, products: np.ndarray, traces: np.ndarray
) -> tuple[np.ndarray, float]:
    """Relation between tasks, as it comes, and noise.

    ``target`` is centred within tasks and times the root of the weights.
    """
    gathered = rows.gather(target)
    inner = gathered @ gathered.T
    relation = inner / np.maximum(products, 1e-300)
    # Within a task the noise has a part in the products: both are fitted together.
    counts = np.maximum(rows.totals - 1.0, 1.0)
    energy = segment_sum(target**2, rows.offsets)
    own = np.diagonal(products)
    determinant = own * counts - traces**2
    safe = np.where(determinant > 1e-9 * own * counts, determinant, np.inf)
    diagonal = (np.diagonal(inner) * counts - traces * energy) / safe
    noise = (energy - diagonal * traces) / counts
    np.fill_diagonal(relation, diagonal)
    level = float(np.average(np.maximum(noise, 0.0), weights=counts))
    return relation, max(level, 1e-6 * float(energy.sum() / counts.sum()))


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
