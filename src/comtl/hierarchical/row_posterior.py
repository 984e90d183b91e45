"""The posterior from the rows themselves, where tasks have fewer of them than features.

A task's rows ``S_t`` (over the standard deviation of its noise) enter through the small matrices
``M_t = I + S_t B S_tᵀ``; the same posterior as :func:`comtl.hierarchical.posterior.infer` comes of
it (Woodbury), at ``n_t q²`` rather than ``q³`` operations a task.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import padded_index
from .posterior import (
    Posterior,
    Prior,
    common_covariance,
    estimable_directions,
    log_determinants,
    restricted_evidence,
)

_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class TaskRows:
    """Rows and targets of every task, times the roots of their weights, filled up with zeros.

    Parameters
    ----------
    rows : ndarray of shape (T, m, q)
        Rows with the intercept's ones last.
    targets : ndarray of shape (T, m)
        Targets.
    """

    rows: np.ndarray
    targets: np.ndarray

    @classmethod
    def of(
        cls, rows: np.ndarray, target: np.ndarray, weights: np.ndarray, offsets: np.ndarray
    ) -> TaskRows:
        """Lay out rows that come task by task."""
        root = np.sqrt(weights)
        return cls(laid_out(root[:, None] * rows, offsets), laid_out(root * target, offsets))

    @property
    def counts(self) -> np.ndarray:
        """Weight of each task's rows."""
        return np.einsum("tm,tm->t", self.rows[:, :, -1], self.rows[:, :, -1])

    @property
    def energy(self) -> float:
        """Weighted sum of squared targets."""
        return float(np.vdot(self.targets, self.targets))

    @cached_property
    def directions(self) -> np.ndarray:
        """Directions of common weights that the rows tell of."""
        flat = self.rows.reshape(-1, self.rows.shape[2])
        return estimable_directions(flat.T @ flat)


def laid_out(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Values that come task by task, with an axis for the tasks, filled up with zeros."""
    index, inside = padded_index(offsets, np.arange(len(offsets) - 1))
    table = values[index]
    table[~inside] = 0.0
    return table


def infer_rows(data: TaskRows, prior: Prior, directions: np.ndarray) -> Posterior:
    """Posterior of all effects under a prior; the covariances of single tasks are left out.

    ``feature_loadings`` as :func:`comtl.hierarchical.posterior.estimable_directions` has them.
    """
    tasks, _, size = data.rows.shape
    root, pulled = prior.covariance.root, prior.mean_precision
    S, y, G, inner = _scaled(data, prior)
    inverse = np.linalg.inv(inner)
    flat, weighted = S.reshape(-1, size), (inverse @ S).reshape(-1, size)
    covariance, log_determinant = common_covariance(flat.T @ weighted, prior, directions)
    mean = covariance @ (weighted.T @ y.ravel())
    gap = y - S @ mean
    left = (inverse @ gap[:, :, None])[:, :, 0]
    latent = (left[:, None, :] @ G)[:, 0, :]
    effects = latent @ root.T
    U, _, twice = _sides(S, G, root, inverse, covariance)
    outside = inverse - inverse @ twice
    around = tasks * (root @ root.T) - U.reshape(-1, size).T @ (outside @ U).reshape(-1, size)
    moments = effects.T @ effects + around
    # Of the effects I - M⁻¹ is left in the scores, of the common part M⁻¹ S C Sᵀ M⁻¹.
    spreads = 1.0 - np.diagonal(outside, axis1=1, axis2=2)
    squares = prior.noise * (np.einsum("tm,tm->t", left, left) + spreads.sum(axis=1))
    quadratic = float(np.vdot(left, left)) + float(np.vdot(latent, latent))
    log_evidence = restricted_evidence(
        prior,
        data.counts,
        log_determinants(inner) + log_determinant,
        quadratic + float(pulled @ mean**2),
        directions,
    )
    pull = np.einsum("tq,tmq,tm->q", effects, S, gap, optimize=True)
    pull = pull + np.einsum("tmq,tmq->q", S, twice @ U)
    stiffness = np.zeros((size, size))
    step = max(1, _CELLS // size**2)
    for first in range(0, tasks, step):
        part = slice(first, first + step)
        own = root @ root.T - np.swapaxes(U[part], 1, 2) @ (outside[part] @ U[part])
        own += effects[part, :, None] * effects[part, None, :]
        stiffness += np.einsum("tqr,tqr->qr", np.swapaxes(S[part], 1, 2) @ S[part], own)
    return Posterior(
        log_evidence, mean, covariance, effects, None, moments, squares, pull, stiffness, spreads
    )


def row_covariances(data: TaskRows, prior: Prior, posterior: Posterior) -> np.ndarray:
    """Covariances of the weights of every task, ``(T, q, q)``."""
    root = prior.covariance.root
    S, _, G, inner = _scaled(data, prior)
    inverse = np.linalg.inv(inner)
    U, common, twice = _sides(S, G, root, inverse, posterior.mean_covariance)
    flipped = np.swapaxes(U, 1, 2)
    spread = flipped @ (inverse @ common)
    around = root @ root.T - flipped @ ((inverse - inverse @ twice) @ U)
    return around + posterior.mean_covariance - spread - np.swapaxes(spread, 1, 2)


def _scaled(data: TaskRows, prior: Prior) -> tuple[np.ndarray, ...]:
    """Rows and targets over the noise, rows times the root of ``B``, and ``M``."""
    tasks, longest, size = data.rows.shape
    precision = np.sqrt(1.0 / prior.noise)
    S, y = precision[:, None, None] * data.rows, precision[:, None] * data.targets
    root = prior.covariance.root
    G = (S.reshape(-1, size) @ root).reshape(tasks, longest, root.shape[1])
    return S, y, G, np.eye(longest) + G @ np.swapaxes(G, 1, 2)


def _sides(
    S: np.ndarray, G: np.ndarray, root: np.ndarray, inverse: np.ndarray, covariance: np.ndarray
) -> tuple[np.ndarray, ...]:
    """``S B``, ``S C`` and ``S C Sᵀ M⁻¹``."""
    shape = S.shape
    U = (G.reshape(-1, G.shape[2]) @ root.T).reshape(shape)
    common = (S.reshape(-1, shape[2]) @ covariance).reshape(shape)
    return U, common, common @ np.swapaxes(S, 1, 2) @ inverse
