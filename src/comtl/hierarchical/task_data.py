r"""Rows of all tasks, as second moments or as they are, and the posterior from either.

.. math:: y_t = \tilde X_t (β + u_t) + e_t, \quad u_t \sim N(0, B), \quad e_t \sim N(0, σ_t^2 I),
    \quad β \sim N(0, v I) \text{ or fixed}

with the intercept as the last column of ``X̃``. ``β`` is integrated out too, so that its uncertainty
counts (restricted likelihood). All tasks are worked on in one batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import padded_index
from ..datafits.gram_datafit import GramDatafit
from .posterior import CommonEffects, Posterior, Prior, restricted_likelihood

MAX_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class TaskGrams:
    """Second moments of each task: ``q³`` operations a task."""

    sums: GramDatafit

    @cached_property
    def gram(self) -> np.ndarray:
        """Second moments of the rows of each task, ``(T, q, q)``."""
        tasks, size = self.sums.moment.shape
        return np.broadcast_to(self.sums.gram, (tasks, size, size))

    @property
    def counts(self) -> np.ndarray:
        """Weight of each task's rows."""
        return self.gram[:, -1, -1]

    @property
    def energy(self) -> float:
        """Weighted sum of squared targets."""
        return self.sums.total_energy

    @property
    def pooled_gram(self) -> np.ndarray:
        """Second moments of the rows of all tasks."""
        return np.asarray(self.sums.gram.sum(axis=0))

    def covariances(self, prior: Prior, posterior: Posterior) -> np.ndarray:
        """Covariances of the weights of every task, ``(T, q, q)``."""
        assert posterior.covariances is not None
        return posterior.covariances

    def infer(self, prior: Prior, directions: np.ndarray) -> Posterior:
        """Posterior of all effects, the fixed ones in their estimable directions."""
        tasks, size = self.sums.moment.shape
        root = prior.covariance.root
        width = root.shape[1]
        precision = 1.0 / prior.noise
        scaled = precision[:, None, None] * self.gram
        flat = scaled.reshape(tasks * size, size)
        inner = np.eye(width) + root.T @ (flat @ root).reshape(tasks, size, width)
        inverse = np.linalg.inv(inner)
        within = root @ inverse @ root.T
        shrink = within @ scaled  # V A / σ²
        moment = precision[:, None] * self.sums.moment
        known = (within @ moment[:, :, None])[:, :, 0]
        # Fixed effects: from what the random ones leave of the rows of each task.
        stiff = scaled.sum(axis=0) - flat.T @ shrink.reshape(tasks * size, size)
        right = moment.sum(axis=0) - flat.T @ known.ravel()
        common = CommonEffects.solve(stiff, right, prior, directions)
        mean, covariance = common.mean, common.covariance
        gap = moment - (scaled @ mean[:, None])[:, :, 0]
        latent = (inverse @ (gap @ root)[:, :, None])[:, :, 0]
        effects = latent @ root.T
        spread = shrink @ covariance  # minus the covariance of u_t and β
        around = within + spread @ np.swapaxes(shrink, 1, 2)
        total = around + covariance - spread - np.swapaxes(spread, 1, 2)
        weights = mean + effects
        image = (self.gram @ weights[:, :, None])[:, :, 0]
        errors = self.sums.energy + np.einsum("tq,tq->t", weights, image - 2.0 * self.sums.moment)
        # As sums of squares: a difference of large numbers would lose it where the noise is small.
        quadratic = float(precision @ errors) + float(np.vdot(latent, latent))
        outer = effects[:, :, None] * effects[:, None, :] + around
        return Posterior(
            restricted_likelihood(prior, self.counts, inner, common, quadratic),
            mean,
            covariance,
            effects,
            total,
            moments=outer.sum(axis=0),
            squares=errors + np.einsum("tqr,tqr->t", self.gram, total),
            # E[u (c - A β)] and E[A ∘ u uᵀ].
            slope=np.einsum("tq,tq->q", effects, gap) + np.einsum("tqr,tqr->q", scaled, spread),
            stiffness=np.einsum("tqr,tqr->qr", scaled, outer),
        )


@dataclass(frozen=True, eq=False)
class TaskRows:
    """Rows and targets of every task, times the roots of their weights, padded with zeros."""

    rows: np.ndarray  # (T, m, q), the intercept's ones last
    targets: np.ndarray

    @classmethod
    def of(
        cls, rows: np.ndarray, target: np.ndarray, weights: np.ndarray, offsets: np.ndarray
    ) -> TaskRows:
        """Pad rows that come task by task."""
        root = np.sqrt(weights)
        return cls(padded(root[:, None] * rows, offsets), padded(root * target, offsets))

    @property
    def counts(self) -> np.ndarray:
        return np.einsum("tm,tm->t", self.rows[:, :, -1], self.rows[:, :, -1])

    @property
    def energy(self) -> float:
        return float(np.vdot(self.targets, self.targets))

    @property
    def pooled_gram(self) -> np.ndarray:
        flat = self.rows.reshape(-1, self.rows.shape[2])
        return flat.T @ flat

    def infer(self, prior: Prior, directions: np.ndarray) -> Posterior:
        root, (S, G, inner) = prior.covariance.root, self._scaled(prior)
        tasks, _, size = S.shape
        y = self.targets / np.sqrt(prior.noise)[:, None]
        inverse = np.linalg.inv(inner)
        flat, weighted = S.reshape(-1, size), (inverse @ S).reshape(-1, size)
        common = CommonEffects.solve(flat.T @ weighted, weighted.T @ y.ravel(), prior, directions)
        mean, covariance = common.mean, common.covariance
        gap = y - S @ mean
        left = (inverse @ gap[:, :, None])[:, :, 0]
        latent = (left[:, None, :] @ G)[:, 0, :]
        effects = latent @ root.T
        U = _times(G, root.T)
        twice = _times(S, covariance) @ np.swapaxes(S, 1, 2) @ inverse
        outside = inverse - inverse @ twice
        # Of the random effects I - M⁻¹ is left in the scores, of the fixed ones M⁻¹ S C Sᵀ M⁻¹.
        spreads = 1.0 - np.diagonal(outside, axis1=1, axis2=2)
        share = self.rows[:, :, -1] ** 2 / prior.noise[:, None]
        quadratic = float(np.vdot(left, left)) + float(np.vdot(latent, latent))
        slope = np.einsum("tq,tmq,tm->q", effects, S, gap, optimize=True)
        moments, stiffness = np.zeros((2, size, size))
        step = max(1, MAX_CELLS // size**2)
        for first in range(0, tasks, step):
            part = slice(first, first + step)
            within = root @ root.T - np.swapaxes(U[part], 1, 2) @ (outside[part] @ U[part])
            within += effects[part, :, None] * effects[part, None, :]
            moments += within.sum(axis=0)
            stiffness += np.einsum("tqr,tqr->qr", np.swapaxes(S[part], 1, 2) @ S[part], within)
        return Posterior(
            restricted_likelihood(prior, self.counts, inner, common, quadratic),
            mean,
            covariance,
            effects,
            None,
            moments=moments,
            squares=prior.noise * (np.einsum("tm,tm->t", left, left) + spreads.sum(axis=1)),
            slope=slope + np.einsum("tmq,tmq->q", S, twice @ U),
            stiffness=stiffness,
            score_variances=np.maximum(spreads, 0.0) / np.where(share > 0.0, share, 1.0),
        )

    def covariances(self, prior: Prior, posterior: Posterior) -> np.ndarray:
        root, (S, G, inner) = prior.covariance.root, self._scaled(prior)
        U = _times(G, root.T)
        gain = np.swapaxes(np.linalg.solve(inner, U), 1, 2)
        left = np.eye(S.shape[2]) - gain @ S
        # Of the random effects given the fixed ones, and by way of these.
        within = root @ root.T - gain @ U
        return within + left @ posterior.mean_covariance @ np.swapaxes(left, 1, 2)

    def _scaled(self, prior: Prior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows ``S`` over the noise, these by the root of ``B``, and ``I + S B Sᵀ`` (Woodbury)."""
        S = np.sqrt(1.0 / prior.noise)[:, None, None] * self.rows
        G = _times(S, prior.covariance.root)
        return S, G, np.eye(S.shape[1]) + G @ np.swapaxes(G, 1, 2)


TaskData = TaskGrams | TaskRows
"""Rows and targets of all tasks, for normal residuals."""


def padded(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Values that come task by task, with an axis for the tasks, padded with zeros."""
    index, inside = padded_index(offsets, np.arange(len(offsets) - 1))
    table = values[index]
    table[~inside] = 0.0
    return table


def _times(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Product of the rows of all tasks with one matrix."""
    product = rows.reshape(-1, rows.shape[2]) @ matrix
    return product.reshape(*rows.shape[:2], matrix.shape[1])
