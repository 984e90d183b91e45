"""Prior and posterior of the random effects, by the covariances of the rows of each task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.linalg import eigh, lapack, solve_triangular

from ..saving.registry import saved
from .covariances import EffectCovariance
from .task_data import RowBlock, TaskRows


@saved
@dataclass(frozen=True, eq=False)
class Prior:
    """Covariance of the random effects, and variances of residuals and of the common slopes."""

    covariance: EffectCovariance
    noise: np.ndarray  # residual variance of each task
    residual_variance: float  # in common
    mean_variance: float  # infinite where the common slopes are fixed effects
    center: np.ndarray | None = None  # of the family's prior on the covariance

    @cached_property
    def mean_precision(self) -> np.ndarray:
        """Prior precision of the common slopes, and of the common intercept, which is free."""
        precision = np.full(len(self.covariance.variances), 1.0 / self.mean_variance)
        precision[-1] = 0.0
        return precision


@dataclass(frozen=True, eq=False)
class BlockPosterior:
    """What the rows of a block say: targets ``y`` have the covariance ``V`` given fixed effects."""

    inverse: np.ndarray  # V⁻¹, (T, m, m)
    around: np.ndarray  # V⁻¹ less what the fixed effects take: the block of P, (T, m, m)
    left: np.ndarray  # V⁻¹ (y - X β) = P y, (T, m)
    # Where ``y`` and the noise follow the scores: P by the change of the log determinant, (T, m).
    drift: np.ndarray | None = None

    @cached_property
    def curvature(self) -> np.ndarray:
        """``P y yᵀ P - P``: products with the derivatives of ``V`` are twice the gradient."""
        found = self.left[:, :, None] * self.left[:, None, :] - self.around
        if self.drift is not None:
            moved = self.left[:, :, None] * self.drift[:, None, :]
            found += moved + np.swapaxes(moved, 1, 2)
        return found


@dataclass(frozen=True, eq=False)
class Posterior:
    """Fixed effects ``β`` and random effects ``u_t`` given the rows."""

    data: TaskRows
    prior: Prior
    log_evidence: float  # logarithm of the restricted likelihood
    mean: np.ndarray
    effects: np.ndarray  # means of u_t, (T, q)
    blocks: Sequence[BlockPosterior]
    common: CommonEffects

    @property
    def weights(self) -> np.ndarray:
        """Weights of each task, the intercept last, ``(T, q)``."""
        return self.mean + self.effects

    @cached_property
    def covariances(self) -> np.ndarray:
        """Covariances of the weights of every task, ``(T, q, q)``."""
        matrix, common = self.prior.covariance.matrix, self.common.covariance
        size = len(matrix)
        found = np.empty((len(self.effects), size, size))
        for block, part in zip(self.data.blocks, self.blocks, strict=True):
            spread = block.times(matrix)
            gain = np.swapaxes(part.inverse @ spread, 1, 2)
            left = np.eye(size) - gain @ block.rows
            # Of the random effects given the fixed ones, and by way of these.
            own = matrix - gain @ spread
            through = left @ common
            found[block.tasks] = own + through @ np.swapaxes(left, 1, 2)
        return found

    def projected(self, targets: Sequence[np.ndarray]) -> list[np.ndarray]:
        """``P`` times targets of the rows of each block."""
        parts = list(zip(self.data.blocks, self.blocks, strict=True))
        each = zip(parts, targets, strict=True)
        first = [(part.inverse @ target[:, :, None])[:, :, 0] for (_, part), target in each]
        moments = sum(
            block.flat.T @ own.ravel() for (block, _), own in zip(parts, first, strict=True)
        )
        mean = self.common.times(np.asarray(moments))
        return [
            own - (part.inverse @ block.times(mean)[:, :, None])[:, :, 0]
            for (block, part), own in zip(parts, first, strict=True)
        ]

    @property
    def score_variances(self) -> np.ndarray:
        """Variances of the scores of the rows, in their order."""
        parts = []
        for block, part in zip(self.data.blocks, self.blocks, strict=True):
            noise, share = self.prior.noise[block.tasks][:, None], block.ones**2
            spread = noise - noise**2 * np.diagonal(part.around, axis1=1, axis2=2)
            parts.append(np.maximum(spread, 0.0) / np.where(share > 0.0, share, 1.0))
        return self.data.in_order(parts)


@dataclass(frozen=True, eq=False)
class CommonEffects:
    """Fixed effects, the random ones integrated out."""

    mean: np.ndarray
    stiffness: np.ndarray | None  # precision less that of the prior; None: the rows are fewer
    make_forms: Callable[[], Forms]
    log_determinant: float  # of the precision, less that of the prior's
    n_directions: int  # that have no prior
    determined: tuple[float, float]  # trace and squares of 1 - C / v, of the slopes

    @classmethod
    def solve(
        cls, stiff: np.ndarray, right: np.ndarray, prior: Prior, directions: np.ndarray | None
    ) -> tuple[CommonEffects, np.ndarray]:
        """Solve the normal equations of the rows; return the covariance too.

        Without one, effects have the estimable directions only, which do not depend on the prior: a
        direction that came and went would make the restricted likelihood jump.
        """
        precision, stiff = prior.mean_precision, 0.5 * (stiff + stiff.T)
        inner = stiff + np.diag(precision)
        if directions is not None:
            inner = directions.T @ inner @ directions
        covariance, log_determinant = _inverted(inner)
        if directions is not None:
            covariance = directions @ covariance @ directions.T
        count = 1 if directions is None else directions.shape[1]
        given = float(np.log(precision[precision > 0.0]).sum())
        used = np.eye(len(precision) - 1) - precision[:-1, None] * covariance[:-1, :-1]
        determined = float(np.trace(used)), float(np.vdot(used, used))
        mean = covariance @ right
        made = partial(_dense_forms, covariance)
        found = cls(mean, stiff, made, log_determinant - given, count, determined)
        return found, covariance

    @cached_property
    def forms(self) -> Forms:
        """Their covariance, by what it is made of."""
        return self.make_forms()

    def times(self, vector: np.ndarray) -> np.ndarray:
        """Covariance of the fixed effects times a vector."""
        level, more, less = self.forms
        found = more.T @ (more @ vector) - less.T @ (less @ vector)
        found[:-1] += level * vector[:-1]
        return np.asarray(found)

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance of the fixed effects."""
        level, more, less = self.forms
        found = more.T @ more - less.T @ less
        found[:-1, :-1] += level * np.eye(len(found) - 1)
        return np.asarray(found)


Forms = tuple[float, np.ndarray, np.ndarray]
"""A covariance by a variance of all slopes, and rows whose products are added and taken off."""


def _dense_forms(covariance: np.ndarray) -> Forms:
    # NumPy's divide and conquer did not converge on well-conditioned covariances of 28 effects.
    values, basis = eigh(covariance)
    root = (basis * np.sqrt(np.maximum(values, 0.0))).T
    return 0.0, root, np.zeros((0, len(values)))


def _kernel_forms(data: TaskRows, total: np.ndarray, variance: float) -> Forms:
    rows = np.concatenate([block.flat for block in data.blocks])
    rows = solve_triangular(np.linalg.cholesky(total), rows, lower=True)
    ones, slopes = rows[:, -1].copy(), variance * rows
    slopes[:, -1] = 0.0
    gap = -ones @ slopes
    gap[-1] = 1.0
    return variance, gap[None] / np.linalg.norm(ones), slopes


def _inverted(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """Inverse and log determinant of a positive definite matrix, raised where it is not quite."""
    root, failed = lapack.dpotrf(matrix, lower=1)
    diagonal = root.diagonal()
    if not failed and diagonal.min() > 1e-7 * diagonal.max():
        inverse = np.tril(lapack.dpotri(root, lower=1)[0])
        return inverse + np.tril(inverse, -1).T, 2.0 * float(np.log(diagonal).sum())
    values, basis = eigh(matrix)
    values = np.maximum(values, values[-1] * len(values) * np.finfo(values.dtype).eps)
    return (basis / values) @ basis.T, float(np.log(values).sum())


def infer(data: TaskRows, prior: Prior, first: TaskRows) -> Posterior:
    """Posterior of all effects, free ones in the directions that the ``first`` rows determine."""
    own = [_covariances(block, prior) for block in data.blocks]
    inverses = [np.linalg.inv(V) for V in own]
    determinant = sum(map(_log_determinant, own)) - float(
        sum(b.rows.shape[1] * np.log(prior.noise[b.tasks]).sum() for b in data.blocks)
    )
    wide = np.isfinite(prior.mean_variance) and data.n_rows < data.size - 1
    if wide:
        common, arounds, lefts = _by_kernel(data, prior, own)
        determinant -= sum(map(_log_determinant, own))
    else:
        common, arounds, lefts = _by_moments(data, prior, inverses, first)
    determinant += common.log_determinant
    effects, quadratic = (
        np.zeros((len(prior.noise), data.size)),
        float(np.sum(data.rest / prior.noise)),
    )
    blocks = []
    for block, inverse, around, left in zip(data.blocks, inverses, arounds, lefts, strict=True):
        effects[block.tasks] = (left[:, None, :] @ block.rows)[:, 0, :]
        quadratic += float(np.sum(left * (block.targets - block.times(common.mean))))
        blocks.append(BlockPosterior(inverse, around, left))
    quadratic += float(prior.mean_precision @ common.mean**2)
    noise = float(data.counts @ np.log(2.0 * np.pi * prior.noise))
    noise -= common.n_directions * np.log(2.0 * np.pi)
    value = -0.5 * (noise + determinant + quadratic)
    effects = prior.covariance.times(effects)
    return Posterior(data, prior, value, common.mean, effects, blocks, common)


def _covariances(block: RowBlock, prior: Prior) -> np.ndarray:
    """``V = X B Xᵀ + σ²`` of each task."""
    covariance, size = prior.covariance, block.rows.shape[1]
    V = np.zeros((len(block.tasks), size, size))
    if covariance.directions.shape[1]:
        turned = block.times(covariance.directions)
        V += turned @ np.swapaxes(turned, 1, 2)
    if covariance.variances.any():
        V += block.spread(covariance.variances[:-1], float(covariance.variances[-1]))
    # What is next to singular is kept from being so by rounding.
    rounding = 2.0 * size * np.finfo(float).eps * V.diagonal(axis1=1, axis2=2).max(axis=1)
    V += (prior.noise[block.tasks] + rounding)[:, None, None] * np.eye(size)
    return V


def _log_determinant(V: np.ndarray) -> float:
    return 2.0 * float(np.log(np.linalg.cholesky(V).diagonal(axis1=1, axis2=2)).sum())


def _by_moments(
    data: TaskRows, prior: Prior, inverses: list[np.ndarray], first: TaskRows
) -> tuple[CommonEffects, list[np.ndarray], list[np.ndarray]]:
    """Fixed effects by a matrix of their number."""
    stiff, right = np.zeros((data.size, data.size)), np.zeros(data.size)
    scaled = []
    for block, inverse in zip(data.blocks, inverses, strict=True):
        rows = (inverse @ block.rows).reshape(block.flat.shape)
        stiff += block.flat.T @ rows
        right += rows.T @ block.targets.ravel()
        scaled.append(rows)
    estimable = None if np.isfinite(prior.mean_variance) else first.directions
    common, covariance = CommonEffects.solve(stiff, right, prior, estimable)
    arounds, lefts = [], []
    for block, inverse, rows in zip(data.blocks, inverses, scaled, strict=True):
        gap = block.targets - block.times(common.mean)
        lefts.append((inverse @ gap[:, :, None])[:, :, 0])
        spread = (rows @ covariance).reshape(block.rows.shape)
        rows = rows.reshape(block.rows.shape)
        arounds.append(inverse - spread @ np.swapaxes(rows, 1, 2))
    return common, arounds, lefts


def _by_kernel(
    data: TaskRows, prior: Prior, own: list[np.ndarray]
) -> tuple[CommonEffects, list[np.ndarray], list[np.ndarray]]:
    """The same by a matrix of the number of rows, where there are fewer."""
    variance, places, first = prior.mean_variance, [], 0
    total = variance * data.kernel
    for block, V in zip(data.blocks, own, strict=True):
        shape = block.targets.shape
        numbers = first + np.arange(block.targets.size).reshape(shape)
        total[numbers[:, :, None], numbers[:, None, :]] += V
        places.append(numbers)
        first += block.targets.size
    ones = np.concatenate([block.ones.ravel() for block in data.blocks])
    targets = np.concatenate([block.targets.ravel() for block in data.blocks])
    forms = partial(_kernel_forms, data, total, variance)
    around, log_determinant = _inverted(total)
    image = around @ ones
    weight = float(ones @ image)
    intercept = float(image @ targets) / weight
    # The common intercept is free: what it explains is taken out.
    around -= np.outer(image, image) / weight
    left = around @ targets
    slopes = sum(
        block.flat[:, :-1].T @ left[numbers.ravel()]
        for block, numbers in zip(data.blocks, places, strict=True)
    )
    used = variance * (around @ data.kernel)
    determined = float(np.trace(used)), float(np.vdot(used, used.T))
    mean = np.append(variance * slopes, intercept)
    log_determinant += float(np.log(weight))
    common = CommonEffects(mean, None, forms, log_determinant, 1, determined)
    arounds = [around[numbers[:, :, None], numbers[:, None, :]] for numbers in places]
    return common, arounds, [left[numbers] for numbers in places]
