"""Wide data: ridge with a covariance between tasks, learned from moments."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar

from ..arrays import DENSE_BYTES, DENSE_SIDE, segment_sum
from ..datafits.block_diagonal import TaskBlocks
from ..engine.progress import SILENT, FitProgress
from ..linear import ColumnWeights, OutputColumns, Scaling
from ..losses import Loss, Squared
from ..models import fields as of
from ..models.outputs import ClassifierOutputs, RegressorOutputs
from ..models.task_model import TaskModel
from ..parameters import NonNegative, at_least
from ..rows.design import Design
from ..rows.observations import Observations
from ..solvers.conjugate_gradient import conjugate_gradient
from .population import Population


@dataclass(eq=False, repr=False)
class CoregionalisedRidge(TaskModel):
    """Abstract model whose tasks' weights have one covariance between tasks in every feature."""

    n_components: Annotated[int, at_least(0)] = 2  # directions of the covariance between tasks
    _: KW_ONLY
    rest: NonNegative = 0.5  # variance of random effects, over the variance of separate weights
    noise: NonNegative = 3.0
    """Noise over its estimate from separate tasks, which is low where features of more weight are
    also the more frequent ones."""
    standardize: of.Standardize = False

    _on_devices = False

    def _loss(self) -> Loss:
        return Squared()

    def _learn(
        self, data: Observations, columns: OutputColumns, watch: FitProgress = SILENT
    ) -> None:
        obs, classes = self._binary(data, columns), self._classification
        population = Population.of(obs, standardize=self.standardize, classification=classes)
        self._solve(CentredProblem.of(population), data, columns)

    def _solve(self, problem: CentredProblem, data: Observations, columns: OutputColumns) -> None:
        """Solve for the weights, and keep them in the user's units."""
        rows, size, noise = problem.rows, problem.size, problem.noise
        directions = np.zeros((len(problem.means), 0))
        if self.n_components:
            directions = leading(problem.relation, self.n_components)
        coef = solve_related(rows, problem.target, directions, self.rest * size, self.noise * noise)
        units, share = problem.units, rows.root**2 * rows.plain_scores(coef)
        means = segment_sum(share, rows.offsets) / rows.totals
        coef = coef * (units.target_scale * units.inverse_scale)
        weights = ColumnWeights.of_coef(coef, units.intercepts(problem.means, means))
        self._keep_weights(data, columns, weights, units)


def has_room(n_features: int, n_tasks: int) -> bool:
    """Whether dense weights of all tasks, and their covariance between tasks, fit in memory."""
    return n_tasks <= DENSE_SIDE and 8 * n_features * n_tasks <= DENSE_BYTES


class CoregionalisedRidgeRegressor(RegressorOutputs, CoregionalisedRidge):
    """Values of tasks that are related through all features alike."""


class CoregionalisedRidgeClassifier(ClassifierOutputs, CoregionalisedRidge):
    """Classes of tasks that are related through all features alike, by squared loss."""


class CentredRows:
    """Rows times the roots of their weights, with the mean of their task taken off: an operator."""

    def __init__(self, design: Design, weights: np.ndarray, offsets: np.ndarray) -> None:
        self.design, self.offsets = design, offsets
        self.root = np.sqrt(weights)
        self.codes = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        self.totals = segment_sum(weights, offsets)
        self.blocks = TaskBlocks(design.blocks, self.codes, len(self.totals))

    def center(self, values: np.ndarray) -> np.ndarray:
        """Take off the (weighted) mean of each task; values are times the root of the weights."""
        means = segment_sum(self.root * values, self.offsets) / self.totals
        return values - self.root * means[self.codes]

    def gather(self, values: np.ndarray) -> np.ndarray:
        """Sum of each task's centred rows times ``values``, ``(T, P)``."""
        product = self.blocks.sums(self.root * self.center(values))
        # Centred values sum to nothing, so that the shift of the columns falls out.
        return product * self.design.inverse_scale

    def plain_scores(self, weights: np.ndarray) -> np.ndarray:
        """Rows as they are given, but for scale, times the weights (T, P) of their own task."""
        return self.blocks.scores(weights * self.design.inverse_scale)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Centred rows times the weights (T, P) of their own task."""
        return self.center(self.root * self.plain_scores(weights))


@dataclass(frozen=True, eq=False)
class CentredProblem:
    """Centred rows and targets, the tasks' means, and the variances of weights and noise."""

    units: Scaling
    rows: CentredRows
    target: np.ndarray
    means: np.ndarray
    size: float
    noise: float

    @classmethod
    def of(cls, population: Population) -> CentredProblem:
        """Rows in the units of a population."""
        obs, target = population.obs, population.target
        rows = CentredRows(population.row_design, obs.weights, obs.offsets)
        centred = rows.center(rows.root * target)
        means = segment_sum(obs.weights * target, obs.offsets) / rows.totals
        return cls(population.units, rows, centred, means, *ridge_scales(rows, centred))

    @cached_property
    def relation(self) -> np.ndarray:
        """Relation between tasks."""
        return task_relation(self.rows, self.target, self.size, self.noise)


TASKS, ROWS = 64, 400
"""Tasks sampled at most, and rows of each."""
EXTREME = 1e4
"""Bounds of the noise, over the mean square of the scores, and of the inverse ratio."""


def ridge_scales(rows: CentredRows, target: np.ndarray) -> tuple[float, float]:
    """Variances of weights and noise of the highest restricted likelihood, of a centred target."""
    spectrum, power, df = _spectra(rows, target)
    level = float(spectrum.sum()) / df
    if not level > 0.0 or not power.sum() > 0.0:
        return 1e-12, 1.0

    def deviance(logarithm: float) -> float:
        ratio = level * np.exp(logarithm)
        size = np.sum(power / (spectrum + ratio)) / df
        # A row of weight two is two rows, whose difference nothing but the noise has a part in;
        # the mean of a task has taken one such direction.
        spread = np.sum(np.log(spectrum + ratio)) + (df - len(spectrum)) * np.log(ratio)
        return float(df * np.log(size) + spread)

    grid = np.linspace(-np.log(EXTREME), np.log(EXTREME), 41)
    best = int(np.argmin([deviance(point) for point in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(deviance, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    ratio = level * float(np.exp(found.x))
    size = float(np.sum(power / (spectrum + ratio))) / df
    return size, ratio * size


def _spectra(rows: CentredRows, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Spectra of some kernels, squared targets along them, and rows less one for each mean."""
    rng, count = np.random.default_rng(0), len(rows.totals)
    chosen = rng.permutation(count)[:TASKS] if count > TASKS else np.arange(count)
    values, powers, weight = [], [], 0.0
    for task in chosen.tolist():
        kept = np.arange(rows.offsets[task], rows.offsets[task + 1])
        if len(kept) > ROWS:
            kept = np.sort(rng.choice(kept, ROWS, replace=False))
        X = rows.design.X[kept] * rows.design.inverse_scale
        kernel = X @ X.T
        kernel = kernel.toarray() if sparse.issparse(kernel) else kernel
        root = rows.root[kept]
        weight += float(root @ root)
        center = np.eye(len(kept)) - np.outer(root, root) / max(float(root @ root), 1e-300)
        kernel = center @ (kernel * root[:, None] * root) @ center
        spectrum, basis = np.linalg.eigh(kernel)
        values.append(np.maximum(spectrum, 0.0))
        powers.append((basis.T @ (center @ target[kept])) ** 2)
    return np.concatenate(values), np.concatenate(powers), max(weight - len(chosen), 1.0)


SMOOTH, PROBES = 3.0, 8
"""Noise of the ridge regressions behind the covariance between tasks, over its estimate, and random
vectors that estimate traces; see benchmarks/bench_related.md."""


def task_relation(rows: CentredRows, target: np.ndarray, size: float, noise: float) -> np.ndarray:
    """Covariance between tasks by the method of moments, from one ridge regression for each task.

    ``size`` and ``noise`` are the variances of these; the former is the diagonal. With ``B_t`` the
    smoother of a task its weights are ``B_t w_t`` and noise, so that the products of the weights of
    two tasks have the mean ``Ω_st tr(B_s B_t)``.
    """
    tasks = len(rows.totals)
    none, ratio = np.zeros((tasks, 0)), SMOOTH * noise / size
    weights = solve_related(rows, target, none, 1.0, ratio)
    rng = np.random.default_rng(0)
    traces = np.zeros((tasks, tasks))
    for _ in range(PROBES):
        probe = rng.choice([-1.0, 1.0], size=rows.design.shape[1])
        seen = rows.scores(np.broadcast_to(probe, (tasks, len(probe))))
        smoothed = solve_related(rows, seen, none, 1.0, ratio, tol=1e-2)
        traces += smoothed @ smoothed.T / PROBES
    # Tasks whose rows share next to no feature do not determine their covariance.
    least = 1e-6 * float(np.diagonal(traces).max(initial=0.0)) or 1.0
    relation = np.where(traces > least, weights @ weights.T / np.maximum(traces, least), 0.0)
    np.fill_diagonal(relation, size)
    return relation


def leading(relation: np.ndarray, rank: int) -> np.ndarray:
    """Square root of the part of the largest positive eigenvalues."""
    values, basis = np.linalg.eigh(0.5 * (relation + relation.T))
    return basis[:, -rank:] * np.sqrt(np.maximum(values[-rank:], 0.0))


def solve_related(
    rows: CentredRows,
    target: np.ndarray,
    directions: np.ndarray,
    rest: float,
    noise: float,
    tol: float = 1e-4,
) -> np.ndarray:
    """Weights (T, P) of all tasks given their covariance, by conjugate gradients over the rows."""

    def weights(values: np.ndarray) -> np.ndarray:
        own = rows.gather(values)
        return directions @ (directions.T @ own) + rest * own

    def operator(values: np.ndarray) -> np.ndarray:
        return rows.scores(weights(values)) + noise * values

    return weights(conjugate_gradient(operator, target, tol=tol, max_iter=300).value)
