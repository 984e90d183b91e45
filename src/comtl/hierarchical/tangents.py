"""Changes of a covariance within its family, and the curvature of the likelihood along them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from .covariances import MIN_VARIANCE, CovarianceFamily, EffectCovariance
from .posterior import Posterior

LOWEST = 0.1
"""What is left of a variance after one step at least."""
POWERS = 8
"""Products with the gradient from which its leading eigenvectors come, about."""
MOST_UNKNOWNS, MOMENT_CELLS = 400, 2**21
"""Entries of a change up to which their curvature is made as a matrix, and numbers of the tasks'
moments that are made at a time for it; see benchmarks/bench_hierarchical_speed.md."""


class Tangent(Protocol):
    """Changes of a covariance within its family."""

    steps: int  # of conjugate gradients that are worth their time

    def change(self, vector: np.ndarray) -> list[np.ndarray]:
        """Change of ``V`` of each block's tasks."""

    def contract(self, weights: Sequence[np.ndarray]) -> np.ndarray:
        """Derivative by each entry of the sum of the products of ``V`` with weights."""

    def prior(self, vector: np.ndarray | None = None) -> np.ndarray:
        """Twice the slope of the log prior, or its curvature times a vector."""

    def trace(self) -> tuple[np.ndarray, np.ndarray]:
        """Slope and curvature of the sum of all variances of effects."""

    def curvature(self, noise: np.ndarray, beyond: np.ndarray) -> np.ndarray | None:
        """Curvature as a matrix, that by the logarithm of a common noise last, where it is small.

        ``beyond`` are the rows of each task that its block has no part in.
        """

    def precondition(self, vector: np.ndarray) -> np.ndarray:
        """Product with about the inverse of the curvature."""

    def bounded(self, vector: np.ndarray) -> np.ndarray:
        """Which entries go below what is allowed, and could be held there."""

    def moved(self, vector: np.ndarray) -> EffectCovariance:
        """Covariance after a change."""


def tangent_of(family: CovarianceFamily, posterior: Posterior) -> Tangent:
    """Changes of the covariance behind a posterior."""
    kind = DenseTangent if family.variances == "matrix" else VarianceTangent
    return kind(family, posterior)


class VarianceTangent:
    """Changes of variances, as shares of these, and of directions."""

    def __init__(self, family: CovarianceFamily, posterior: Posterior) -> None:
        self.posterior, self.data = posterior, posterior.data
        self.covariance = posterior.prior.covariance
        self.kind, self.count = family.variances, self.covariance.directions.shape[1]
        features = self.data.size - 1
        self.slots = {"none": 0, "all": min(1, features), "each": features}[self.kind]
        self.steps = 10 + 10 * (self.kind == "each") + 5 * self.count
        self.turned = [block.times(self.covariance.directions) for block in self.data.blocks]

    def _parts(self, vector: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        slopes = self.covariance.variances[:-1] * (vector[: self.slots] if self.slots else 0.0)
        intercept = float(self.covariance.variances[-1] * vector[self.slots])
        directions = np.zeros_like(self.covariance.directions)
        directions[:-1] = vector[self.slots + 1 :].reshape(len(slopes), self.count)
        return slopes, intercept, directions

    def change(self, vector: np.ndarray) -> list[np.ndarray]:
        slopes, intercept, directions = self._parts(vector)
        found = []
        for block, turned in zip(self.data.blocks, self.turned, strict=True):
            change = block.spread(slopes, intercept)
            if self.count:
                half = turned @ np.swapaxes(block.times(directions), 1, 2)
                change = change + half + np.swapaxes(half, 1, 2)
            found.append(change)
        return found

    def contract(self, weights: Sequence[np.ndarray]) -> np.ndarray:
        own, features = self.covariance.variances, self.data.size - 1
        slopes, intercept = np.zeros(self.slots), 0.0
        directions = np.zeros((features, self.count))
        for block, turned, weight in zip(self.data.blocks, self.turned, weights, strict=True):
            intercept += float(np.sum(block.ones[:, None, :] @ weight @ block.ones[:, :, None]))
            if self.kind == "all" and features:
                slopes[0] += float(np.vdot(weight, block.kernel))
            elif self.kind == "each":
                slopes += block.effect_sums(weight)
            if self.count:
                image = (weight @ turned).reshape(-1, self.count)
                directions += 2.0 * block.flat[:, :-1].T @ image
        slopes *= own[: self.slots]
        return np.concatenate([slopes, [own[-1] * intercept], directions.ravel()])

    def prior(self, vector: np.ndarray | None = None) -> np.ndarray:
        return np.zeros(self.slots + 1 + self.count * (self.data.size - 1))

    def trace(self) -> tuple[np.ndarray, np.ndarray]:
        own, turned = self.covariance.variances, self.covariance.directions[:-1].ravel()
        slopes = own[:-1] if self.kind == "each" else own[:-1].sum(keepdims=True)[: self.slots]
        shares = np.append(slopes, own[-1])
        slope = np.concatenate([shares, 2.0 * turned])
        return slope, np.concatenate([shares, np.full_like(turned, 2.0)])

    def curvature(self, noise: np.ndarray, beyond: np.ndarray) -> np.ndarray | None:
        own, features, count = self.covariance.variances, self.data.size - 1, self.count
        split, turned = self.slots + 1, self.covariance.directions
        size = split + features * count
        if size > MOST_UNKNOWNS:
            return None
        shares = np.zeros((split, features + 1))  # variances by what each entry is a share of
        shares[-1, -1] = own[-1]
        if self.slots:
            shares[:-1, :-1] = np.diag(own[:-1]) if self.kind == "each" else own[:-1]
        found = np.zeros((size + 1, size + 1))
        found[-1, -1] = beyond.sum()
        for moments, spread, squares in self._moments(noise):
            found[:split, :split] += shares @ np.sum(moments**2, axis=0) @ shares.T
            found[-1, :split] += shares @ spread.diagonal()
            found[-1, -1] += squares
            if not count:
                continue
            images = moments @ turned
            inner, outer = turned.T @ images, images[:, :-1].reshape(len(images), -1)
            for row, share in zip(found[split:-1, :split].T, shares, strict=True):
                row += 2.0 * np.tensordot(moments * share, images, ([0, 2], [0, 1]))[:-1].ravel()
            found[-1, split:-1] += 2.0 * (spread @ turned)[:-1].ravel()
            # Of columns i, j and directions a, b.
            sides = (features, count, features, count)
            mixed = (outer.T @ outer).reshape(sides).transpose(0, 3, 2, 1)
            slopes = np.ascontiguousarray(moments[:, :-1, :-1]).reshape(len(moments), -1)
            kept = slopes.T @ inner.reshape(len(inner), -1)
            mixed = mixed + kept.reshape(features, features, count, count).transpose(0, 3, 1, 2)
            found[split:-1, split:-1] += 2.0 * mixed.reshape(features * count, -1)
        lower = np.tril(found)
        return lower + np.tril(lower, -1).T

    def _moments(self, noise: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
        """``Xᵀ V⁻¹ X`` of tasks, and sums of ``σ² Xᵀ V⁻² X`` and of the squares of ``σ² V⁻¹``."""
        step = max(1, MOMENT_CELLS // self.data.size**2)
        for block, part in zip(self.data.blocks, self.posterior.blocks, strict=True):
            for start in range(0, len(block.tasks), step):
                one = slice(start, start + step)
                own = noise[block.tasks[one]][:, None, None]
                scaled = part.inverse[one] @ block.rows[one]
                flat = (np.sqrt(own) * scaled).reshape(-1, self.data.size)
                squares = float(np.sum((own * part.inverse[one]) ** 2))
                yield np.swapaxes(block.rows[one], 1, 2) @ scaled, flat.T @ flat, squares

    @cached_property
    def _scale(self) -> tuple[np.ndarray, np.ndarray]:
        """Curvature by each variance, and inverse of that by the directions."""
        own, features = self.covariance.variances, self.data.size - 1
        squares, level, inner = np.zeros(self.slots + 1), 0.0, np.zeros((self.count, self.count))
        tasks = len(self.posterior.effects)
        parts = zip(self.data.blocks, self.turned, self.posterior.blocks, strict=True)
        for block, turned, part in parts:
            image = (block.ones[:, None, :] @ part.inverse)[:, 0, :]
            squares[-1] += float(np.sum(np.sum(image * block.ones, axis=1) ** 2))
            if self.kind == "all" and features:
                product = part.inverse @ block.kernel
                squares[0] += float(np.vdot(product, np.swapaxes(product, 1, 2)))
                level += float(np.trace(product, axis1=1, axis2=2).sum())
            elif self.kind == "each":
                squares[:-1] += block.effect_squares(part.inverse)
            if self.count:
                image = (part.inverse @ turned).reshape(-1, self.count)
                inner += turned.reshape(-1, self.count).T @ image
        squares *= np.append(own[: self.slots], own[-1]) ** 2
        inner = 2.0 * inner * max(level, 1e-300) / max(tasks * features, 1)
        return squares, np.linalg.pinv(inner, rcond=1e-10, hermitian=True)

    def precondition(self, vector: np.ndarray) -> np.ndarray:
        squares, inner = self._scale
        safe = np.where(squares > 0.0, squares, np.inf)
        split = self.slots + 1
        directions = vector[split:].reshape(self.data.size - 1, self.count) @ inner
        return np.concatenate([vector[:split] / safe, directions.ravel()])

    def bounded(self, vector: np.ndarray) -> np.ndarray:
        low = vector < LOWEST - 1.0
        low[self.slots + 1 :] = False
        return low

    def moved(self, vector: np.ndarray) -> EffectCovariance:
        vector = np.where(self.bounded(vector), LOWEST - 1.0, vector)
        slopes, intercept, change = self._parts(vector)
        variances = self.covariance.variances + np.append(slopes, intercept)
        variances[(variances < MIN_VARIANCE) & (self.covariance.variances > 0.0)] = MIN_VARIANCE
        directions = self.covariance.directions
        if self.count:
            # The nearest of so many directions to the sum, which has twice as many.
            basis, both = np.linalg.qr(np.hstack([directions, change]))
            one = np.eye(self.count)
            inner = both @ np.block([[one, one], [one, 0.0 * one]]) @ both.T
            values, turn = np.linalg.eigh(inner)
            least = 1e-6 * max(float(values[-1]), float(variances[:-1].mean()))
            values = np.maximum(values[-self.count :], least)
            directions = basis @ turn[:, -self.count :] * np.sqrt(values)
        return EffectCovariance(variances, directions)


class DenseTangent:
    """Changes of any entry, or of those that a family's projection leaves."""

    steps = 3

    def __init__(self, family: CovarianceFamily, posterior: Posterior) -> None:
        self.family, self.data, size = family, posterior.data, posterior.data.size
        self.matrix = posterior.prior.covariance.matrix
        stiff = posterior.common.stiffness
        if stiff is None:
            stiff = sum(
                block.flat.T @ (part.inverse @ block.rows).reshape(block.flat.shape)
                for block, part in zip(self.data.blocks, posterior.blocks, strict=True)
            )
        self.tasks = len(posterior.effects)
        told = np.asarray(stiff) / self.tasks
        told = told + 1e-8 * float(np.trace(told)) / size * np.eye(size)
        root = np.linalg.cholesky(told)
        values, turn = np.linalg.eigh(root.T @ self.matrix @ root)
        self.variances = np.maximum(values, 1e-14 * max(float(values[-1]), 1e-300))
        # B = Q diag Qᵀ, and Qᵀ W Q = I for the mean W of Xᵀ V⁻¹ X: tasks tell one of each entry.
        self.basis, self.inverse = np.linalg.solve(root.T, turn), turn.T @ root.T
        self.strength = family.weight / np.outer(self.variances, self.variances)

    def _projected(self, matrix: np.ndarray) -> np.ndarray:
        return self.family.project(matrix).ravel()

    def change(self, vector: np.ndarray) -> list[np.ndarray]:
        matrix = vector.reshape(self.matrix.shape)
        return [block.times(matrix) @ np.swapaxes(block.rows, 1, 2) for block in self.data.blocks]

    def contract(self, weights: Sequence[np.ndarray]) -> np.ndarray:
        found = sum(
            block.flat.T @ (weight @ block.rows).reshape(block.flat.shape)
            for block, weight in zip(self.data.blocks, weights, strict=True)
        )
        return self._projected(np.asarray(found))

    def prior(self, vector: np.ndarray | None = None) -> np.ndarray:
        if self.family.center is None:
            return np.zeros(self.matrix.size)
        inside = np.diag(-self.variances)
        if vector is not None:
            inside = self.inverse @ vector.reshape(self.matrix.shape) @ self.inverse.T
        else:
            inside += (self.inverse * self.family.center) @ self.inverse.T
        return self._projected(self.inverse.T @ (self.strength * inside) @ self.inverse)

    def trace(self) -> tuple[np.ndarray, np.ndarray]:
        return np.eye(len(self.matrix)).ravel(), np.zeros(self.matrix.size)

    def curvature(self, noise: np.ndarray, beyond: np.ndarray) -> np.ndarray | None:
        return None

    def precondition(self, vector: np.ndarray) -> np.ndarray:
        inside = self.basis.T @ vector.reshape(self.matrix.shape) @ self.basis
        inside /= self.tasks + self.strength
        return self._projected(self.basis @ inside @ self.basis.T)

    def bounded(self, vector: np.ndarray) -> np.ndarray:
        return np.zeros(vector.shape, dtype=bool)

    def moved(self, vector: np.ndarray) -> EffectCovariance:
        size = np.sqrt(self.variances)
        half = self.inverse / size[:, None]
        ratio = half @ vector.reshape(self.matrix.shape) @ half.T
        values, turn = np.linalg.eigh(0.5 * (ratio + ratio.T))
        directions = (self.basis * size) @ turn * np.sqrt(np.maximum(1.0 + values, LOWEST))
        found = EffectCovariance(np.zeros(len(size)), directions)
        projected = self._projected(found.matrix).reshape(self.matrix.shape)
        return found if np.allclose(projected, found.matrix) else EffectCovariance.of(projected)


def with_directions(
    covariance: EffectCovariance, posterior: Posterior, count: int
) -> EffectCovariance:
    """Return the covariance with directions added along which the likelihood rises most."""
    data, known = posterior.data, covariance.directions.shape[1]
    features, more = data.size - 1, min(count, data.size - 2) - known
    if more < 1:
        return EffectCovariance(covariance.variances, covariance.directions[:, -count:])

    def gradient(vectors: np.ndarray) -> np.ndarray:
        found = np.zeros(vectors.shape)
        for block, part in zip(data.blocks, posterior.blocks, strict=True):
            slopes = block.flat[:, :-1]
            scores = (slopes @ vectors).reshape(*block.targets.shape, -1)
            found += slopes.T @ (part.curvature @ scores).reshape(-1, scores.shape[2])
        return found

    krylov = [np.random.default_rng(0).standard_normal((features, more + 2))]
    while len(krylov) < POWERS and len(krylov) * (more + 2) < features:
        krylov.append(np.linalg.qr(gradient(krylov[-1]))[0])
    space = np.linalg.qr(np.hstack(krylov))[0]
    values, turn = np.linalg.eigh(space.T @ gradient(space))
    values, basis = values[-more:], space @ turn[:, -more:]
    curvature = np.zeros(more)
    for block, part in zip(data.blocks, posterior.blocks, strict=True):
        scores = (block.flat[:, :-1] @ basis).reshape(*block.targets.shape, more)
        curvature += (np.sum(scores * (part.inverse @ scores), axis=1) ** 2).sum(axis=0)
    least = 1e-2 * float(covariance.variances[:-1].mean())
    sizes = np.sqrt(np.maximum(values / np.maximum(curvature, 1e-300), least))
    fresh = np.vstack([basis * sizes, np.zeros(more)])
    return EffectCovariance(covariance.variances, np.hstack([fresh, covariance.directions]))
