"""The feature step of many fits: ``F``, the shared part and the intercepts together."""

from __future__ import annotations

from collections.abc import Callable

from ..arrays import Array, namespace, with_ones
from ..arrays.algebra import block_matrix
from ..engine.recipe import InnerTolerance
from ..rows.design import Covariance
from ..solvers.conjugate_gradient import conjugate_gradient
from ..solvers.small_blocks import paired
from ..solvers.sylvester import TwoTermSylvester
from .batch_penalties import QuadraticModel
from .batch_state import BatchGrams, Fits, Plan
from .pytrees import along, tree_concat, tree_slice


class FeatureSystems:
    """``FeatureSystem`` of many fits; deviations of fits without are zero throughout."""

    def __init__(
        self, grams: BatchGrams, slope: Array, fits: Fits, model: QuadraticModel, width: int
    ) -> None:
        self.xp = namespace(slope)
        self.grams, self.slope, self.fits, self.model = grams, slope, fits, model
        self.width, self.low_rank = width, model.low_rank[..., :width]
        loadings = fits.factors.loadings[..., :width]
        self.loadings = loadings if fits.shared is None else with_ones(loadings)
        self.member, self.double = fits.member[:, None], fits.double[:, None]
        self.count, self.tasks, self.columns = self.loadings.shape
        self.rows = slope.shape[-1] - 1
        self.sums = grams.sums

    def _pack(self, matrix: Array, intercepts: Array) -> Array:
        flat = self.xp.reshape(matrix, (self.count, -1))
        if not self.fits.intercept:
            return flat
        total = self.xp.sum(intercepts, axis=1, keepdims=True)
        return self.xp.concat([flat, self.member * intercepts, total], axis=1)

    def _unpack(self, flat: Array) -> tuple[Array, Array, Array]:
        size = self.rows * self.columns
        matrix = self.xp.reshape(flat[:, :size], (self.count, self.rows, self.columns))
        if not self.fits.intercept:
            none = self.xp.zeros_like(self.sums)
            return matrix, none, none[:, :1]
        return matrix, flat[:, size:-1], flat[:, -1:]

    def right(self) -> Array:
        point, shared = self.fits.factors, self.fits.shared
        slopes = self.model.slope[..., : self.width]
        if shared is not None:
            common = 2.0 * shared[:, None, None] * point.shared[..., None]
            slopes = self.xp.concat([slopes, common], axis=-1)
        matrix = self.slope[..., :-1].mT @ self.loadings + slopes
        return -self._pool(self._pack(matrix, self.slope[..., -1]), point.random_intercepts)

    def _pool(self, flat: Array, deviations: Array) -> Array:
        if self.fits.intercept:
            size = self.rows * self.columns
            flat[:, size:-1] += self.double * deviations
        return flat

    def operator(self, flat: Array) -> Array:
        xp = self.xp
        matrix, deviations, offset = self._unpack(flat)
        intercepts = (deviations + offset)[..., None]
        weights = xp.concat([self.loadings @ matrix.mT, intercepts], axis=-1)
        image_by_task = 2.0 * self.grams.product(weights)
        factor = matrix[..., : self.width]
        slopes = along(self.model.alpha, 3) * factor - self.low_rank @ (self.low_rank.mT @ factor)
        if self.fits.shared is not None:
            common = 2.0 * along(self.fits.shared, 3) * matrix[..., self.width :]
            slopes = xp.concat([slopes, common], axis=-1)
        image = image_by_task[..., :-1].mT @ self.loadings + slopes
        return self._pool(self._pack(image, image_by_task[..., -1]), deviations)

    def preconditioner(self) -> Callable[[Array], Array]:
        """Approximate inverse: Sylvester for ``F``, ridge for ``w0``, diagonal for the rest."""
        xp, shared, sums = self.xp, self.fits.shared, self.sums
        covariance = Covariance(self.grams.basis, self.grams.spread, 0.0)
        loadings = self.loadings[..., : self.width]
        small = loadings.mT @ (sums[..., None] * loadings)
        factor = TwoTermSylvester(covariance, small, along(self.model.alpha, 3), self.low_rank)
        total = xp.sum(sums, axis=1, keepdims=True)
        if shared is not None:
            double = 2.0 * along(shared, 3)
            common = TwoTermSylvester(covariance, total[..., None], double, self.low_rank[..., :0])

        def apply(flat: Array) -> Array:
            matrix, deviations, offset = self._unpack(flat)
            solved = factor(matrix[..., : self.width])
            if shared is not None:
                solved = xp.concat([solved, common(matrix[..., self.width :])], axis=-1)
            solved = xp.reshape(solved, (self.count, -1))
            if not self.fits.intercept:
                return solved
            own = deviations / (sums + self.double)
            return xp.concat([solved, own, offset / total], axis=1)

        return apply

    def matrix(self) -> Array:
        xp, P, k = self.xp, self.rows, self.columns
        hessian = 2.0 * self.grams.gram
        eye, own = xp.eye(P, dtype=hessian.dtype), xp.eye(k, dtype=hessian.dtype)
        shape = (self.count, self.tasks, -1)
        pairs = xp.reshape(self.loadings[..., :, None] * self.loadings[..., None, :], shape)
        sums = xp.reshape(hessian[..., :P, :P], shape).mT @ pairs
        penalty = along(self.model.alpha, 3) * eye - self.low_rank @ self.low_rank.mT
        inside = xp.astype(xp.arange(k) < self.width, own.dtype)
        sums = sums + _outer(penalty, inside * own)
        if self.fits.shared is not None:
            sums = sums + _outer(2.0 * along(self.fits.shared, 3) * eye, (1.0 - inside) * own)
        slopes = paired(sums, P, k)
        if not self.fits.intercept:
            return slopes
        # Each task's intercept as a sum of its deviation and the offset.
        each = self.member[..., None] * xp.eye(self.tasks, dtype=own.dtype)
        spread = xp.concat([each, xp.ones_like(each[:, :1, :])], axis=1)
        cross = hessian[..., :P, P][..., :, None] * self.loadings[..., None, :]
        cross = spread @ xp.reshape(cross, shape)
        alone = self.member * self.double + (1.0 - self.member) + xp.zeros_like(self.sums)
        alone = xp.concat([alone, xp.zeros_like(self.double)], axis=1)
        corner = (spread * self.sums[:, None, :]) @ spread.mT
        corner = corner + alone[..., None] * xp.eye(self.tasks + 1, dtype=own.dtype)
        return block_matrix([[slopes, cross.mT], [cross, corner]])

    def steps(self, flat: Array, columns: int) -> dict[str, Array]:
        """Changes of the unknowns, ``F`` padded to so many columns."""
        matrix, deviations, offset = self._unpack(flat)
        changes = {"F": widened(matrix[..., : self.width], columns)}
        if self.fits.shared is not None:
            changes["shared"] = matrix[..., -1]
        if self.fits.intercept:
            changes.update(random_intercepts=deviations, offset=offset)
        return changes


def _outer(left: Array, right: Array) -> Array:
    """Products of all entries of each left matrix (B, m, m) with those of one right (k, k)."""
    xp = namespace(left)
    return xp.reshape(left, (left.shape[0], -1, 1)) * xp.reshape(right, (1, 1, -1))


def widened(values: Array, columns: int) -> Array:
    """Matrices with columns of zeros appended, up to so many."""
    missing = columns - values.shape[-1]
    if not missing:
        return values
    xp = namespace(values)
    blank = xp.zeros((*values.shape[:-1], missing), dtype=values.dtype)
    return xp.concat([values, blank], axis=-1)


def feature_step(
    grams: BatchGrams, slope: Array, fits: Fits, plan: Plan, inner: InnerTolerance
) -> Fits:
    """Minimise over ``F``, the shared part and the intercepts together."""
    point = fits.factors
    model = fits.penalties["F"].model(point.F)
    parts = []
    for part, width, direct in plan.feature_parts:
        here = FeatureSystems(
            tree_slice(grams, part),
            slope[part, ...],
            tree_slice(fits, part),
            tree_slice(model, part),
            width,
        )
        if direct:
            right = here.right()[..., None]
            flat = here.xp.linalg.solve(here.matrix(), right)[..., 0]
        else:
            flat = conjugate_gradient(
                here.operator,
                here.right(),
                preconditioner=here.preconditioner(),
                tol=inner.tol,
                max_iter=inner.max_iter,
                many=True,
            ).value
        parts.append(here.steps(flat, point.F.shape[-1]))
    steps = tree_concat(parts)
    steps["F"] = steps["F"] * fits.inside[:, None, :]
    changes = {name: getattr(point, name) + step for name, step in steps.items()}
    return fits.at(**changes)
