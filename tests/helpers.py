"""Random multitask problems, and derivatives by differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from comtl import baselines
from comtl.arrays import namespace
from comtl.datafits.datafit import Datafit
from comtl.datafits.gram_datafit import GramDatafit
from comtl.datafits.rows_datafit import RowsDatafit
from comtl.engine.alternation import alternate
from comtl.engine.recipe import Iteration, Recipe, Schedule
from comtl.engine.starts import start_state
from comtl.factors import Factors
from comtl.losses import Loss, Squared
from comtl.penalties import NonNegative, Penalty, Simplex
from comtl.rows.design import Covariance, Design


@dataclass(frozen=True)
class Problem:
    """Rows sorted by task, one cell a row."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def design(self) -> Design:
        return Design.standardized(self.X, self.weights)

    def rows(self, loss: Loss | None = None, *, packed: bool = False) -> RowsDatafit:
        """Matrix-free fit of the standardised rows, dense or (``packed``) sparse."""
        X = sparse.csr_array(self.X) if packed else self.X
        design = Design.standardized(X, self.weights)
        return RowsDatafit(design, self.y, self.weights, self.offsets, loss or Squared())

    def gram(self) -> GramDatafit:
        return GramDatafit.of_rows(self.design, self.y, self.weights, self.offsets)


def problem(
    seed: int,
    P: int = 6,
    T: int = 5,
    n: int = 8,
    *,
    rank: int = 2,
    noise: float = 0.5,
    labels: bool = False,
    even: bool = False,
) -> Problem:
    """Low-rank weights, ``n`` rows a task (1 to 2n unless ``even``), a third of X zero."""
    rng = np.random.default_rng(seed)
    sizes = np.full(T, n) if even else rng.integers(1, 2 * n + 1, T)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    codes = np.repeat(np.arange(T), sizes)
    X = rng.standard_normal((len(codes), P)) * (rng.random((len(codes), P)) < 0.67) + 0.3
    W = rng.standard_normal((P, rank)) @ rng.standard_normal((rank, T)) / rank**0.5
    score = (X * W.T[codes]).sum(1) + rng.standard_normal(T)[codes]
    y = score + noise * rng.standard_normal(len(codes))
    if labels:
        y = np.where(y > np.median(y), 1.0, -1.0)
    weights = np.ones(len(codes)) if even else rng.uniform(0.2, 2.0, len(codes))
    return Problem(X, y, weights, offsets)


def run(fit: Datafit, recipe: Recipe, schedule: Schedule, **start: Any) -> list[Iteration]:
    """All iterations of the alternation on rows of NumPy."""
    state = start_state(fit, recipe, schedule, like=np.ones(1), **start)
    return list(alternate(fit, state, schedule))


def random_factors(
    seed: int, P: int, T: int, K1: int, K2: int | None = None, *, core: bool = False
) -> Factors:
    """Random values for everything a model learns."""
    rng = np.random.default_rng(seed)
    K2 = K1 if K2 is None else K2
    S = rng.standard_normal((K1, K2)) if core else None
    F, G = rng.standard_normal((P, K1)), rng.standard_normal((T, K2))
    return Factors(F, S, G, rng.standard_normal(P), 0.7, rng.standard_normal(T))


def draw_tasks(
    seed: int = 0, tasks: int = 8, rows: int = 20, features: int = 3
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and task of linear models with weights around one and levels of their own."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), rows)
    X = rng.standard_normal((len(task), features))
    W = 1.0 + 0.5 * rng.standard_normal((tasks, features))
    y = np.einsum("np,np->n", X, W[task]) + rng.standard_normal(tasks)[task]
    return X, y + rng.standard_normal(len(task)), task


def task_rmse(truth: np.ndarray, guess: np.ndarray, task: np.ndarray) -> float:
    """Root mean squared error of each task, averaged over tasks."""
    _, codes = np.unique(task, return_inverse=True)
    squares = np.bincount(codes, (truth - guess) ** 2) / np.bincount(codes)
    return float(np.sqrt(squares).mean())


def numeric_gradient(function: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """Gradient by central differences."""
    result = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[index] = 1e-5 * max(1.0, abs(at[index]))
        result[index] = (function(at + step) - function(at - step)) / (2.0 * step[index])
    return result


RANKS = {"Factored": "n_components", "GroupOverlap": "n_components"}
RANKS |= {"Clustered": "n_clusters", "SharedPool": "n_clusters"}


def make_baseline(name: str, rank: int = 2, **params: Any) -> Any:
    """Estimator of ``comtl.baselines`` by its name, with a seed, and few columns if it has any."""
    kind = name.removesuffix("Regressor").removesuffix("Classifier")
    ranks = {RANKS[kind]: rank} if kind in RANKS else {}
    return getattr(baselines, name)(**{**ranks, "random_state": 0, **params})


def assert_weights(model: Any, coef: np.ndarray, intercept: np.ndarray, **near: float) -> None:
    """Compare the coefficients and intercepts of a fitted model."""
    np.testing.assert_allclose(model.coef_, coef, **near)
    np.testing.assert_allclose(model.intercept_, intercept, **near)


def random_orthogonal(rng: np.random.Generator, size: int) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


def random_definite(rng: np.random.Generator, size: int, low: float = 0.1) -> np.ndarray:
    """Symmetric positive definite matrix with eigenvalues between ``low_rank`` and 3."""
    turn = random_orthogonal(rng, size)
    return (turn * rng.uniform(low, 3.0, size)) @ turn.T


def feasible(penalty: Penalty, factor: np.ndarray) -> bool:
    """Whether the factor meets the constraint of its penalty, if it has one."""
    if isinstance(penalty, Simplex | NonNegative) and np.any(factor < 0):
        return False
    return not isinstance(penalty, Simplex) or np.allclose(factor.sum(1), 1.0, atol=1e-9)


def wide(features, seed=0, packed=True, loss=None, picked=False):
    """Rows of four tasks, with more features than rows if need be."""
    rng = np.random.default_rng(seed)
    offsets = np.array([0, 4, 11, 12, 17])
    n = offsets[-1]
    X = rng.standard_normal((n, features)) * (rng.random((n, features)) < 0.6)
    weights = rng.choice([0.0, 1.0, 2.0], n, p=[0.1, 0.6, 0.3])
    design = Design.standardized(sparse.csr_array(X) if packed else X, np.ones(n))
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    rows = rng.permutation(n) if picked else None
    return RowsDatafit(design, y, weights, offsets, loss or Squared(), rows)


def plain_design(X: Any) -> Design:
    """Rows as they are."""
    xp = namespace(X)
    zeros = xp.zeros(X.shape[1], dtype=X.dtype)
    return Design(X, zeros, zeros + 1.0)


def covariance_matrix(covariance: Covariance) -> Any:
    """The matrix that a covariance of the features stands for."""
    basis, rest = covariance.basis, covariance.rest
    eye = namespace(basis).eye(basis.shape[0], dtype=basis.dtype)
    return rest * eye + (basis * (covariance.values - rest)[None, :]) @ basis.T


def likelihood_of(model, X, y, task):
    """Mean log of the probability of the class that came."""
    chance = model.predict_proba(X, task=task)
    return np.log(chance[np.arange(len(y)), np.searchsorted(model.classes_, y)]).mean()
