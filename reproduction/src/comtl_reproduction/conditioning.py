"""Conjugate gradients in one step for ``F``, and the condition number of its equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from comtl.datafits.rows_datafit import RowsDatafit
from comtl.datasets import SYNTHETIC
from comtl.engine.feature_step import FeatureSystem
from comtl.engine.recipe import Recipe, Schedule
from comtl.engine.starts import start_state
from comtl.losses import Squared
from comtl.penalties.learned_relation import LearnedRelation
from comtl.rows.design import Design
from comtl.solvers.conjugate_gradient import conjugate_gradient

SCENES = ("independent, random point", "correlated, random point", "correlated, spectral start")
"""Features, and where the step is taken: factors drawn at random, or where a fit starts."""
CG_TOLERANCE = 1e-6
EXPLICIT_UNKNOWNS = 800
"""Up to here the condition number comes from the explicit matrix."""


def synthetic(name: str, seed: int, **sizes: int) -> Any:
    """Return a synthetic set."""
    return SYNTHETIC[name](random_state=seed, **sizes)


def feature_system(
    size: tuple[int, int, int], scene: str, strength: float, smoothing: float, seed: int
) -> FeatureSystem:
    """Equations of a step for ``F`` with 20 rows a task.

    Correlated features have a covariance with eigenvalues 1, 1/4, 1/9, ...; a random point has
    standard normal factors.
    """
    P, T, K = size
    rng = np.random.default_rng(seed)
    data = synthetic("syn3", seed, n_features=P, n_tasks=T, n_train=20, n_test=1)
    X = data.X
    if scene.startswith("correlated"):
        turn, _ = np.linalg.qr(rng.standard_normal((P, P)))
        X = X @ (turn / np.arange(1, P + 1)) @ turn.T
    weights = np.ones(len(X))
    # The noise stays as it was, whatever became of the features.
    y = data.y + np.einsum("ij,ij->i", X - data.X, data.coef[data.task])
    design = Design.standardized(X, weights)
    datafit = RowsDatafit(design, y / y.std(), weights, np.arange(0, len(X) + 1, 20), Squared())
    recipe = Recipe({"F": strength, "G": 1.0}, (K, K))
    schedule = Schedule(start_smoothing=smoothing)
    state = start_state(datafit, recipe, schedule, like=np.zeros(1))
    if scene.endswith("random point"):
        F, G = rng.standard_normal((P, K)), rng.standard_normal((T, K))
        penalty = LearnedRelation(strength).initialised(F, smoothing)
        state = state.at(state.factors.with_(F=F, G=G)).penalized(F=penalty)
    return FeatureSystem(datafit, datafit.quadratic_at(state.factors), state)


def condition_number(system: FeatureSystem, explicit: int = EXPLICIT_UNKNOWNS) -> float:
    """Largest over smallest eigenvalue, by Lanczos where there are many unknowns."""
    size = len(system.right())
    if size <= explicit:
        values = np.linalg.eigvalsh(system.matrix())
        return float(values[-1] / values[0])
    preconditioner = system.preconditioner()

    def solve(right: np.ndarray) -> np.ndarray:
        return conjugate_gradient(
            system.operator, right, preconditioner=preconditioner, tol=1e-8
        ).value

    operator = LinearOperator((size, size), matvec=system.operator, dtype=float)
    inverse = LinearOperator((size, size), matvec=solve, dtype=float)
    # The error of an eigenvalue is the square of that tolerance; ARPACK's own start is random.
    settings = {"k": 1, "tol": 1e-2, "v0": np.ones(size), "return_eigenvectors": False}
    largest = eigsh(operator, which="LM", **settings)[0]
    smallest = 1.0 / eigsh(inverse, which="LM", **settings)[0]
    return float(largest / smallest)


def count_iterations(
    size: tuple[int, int, int], scene: str, strength: float, smoothing: float, seed: int
) -> dict[str, Any]:
    """Count iterations of one step for ``F`` to a relative residual of 1e-6."""
    system = feature_system(size, scene, strength, smoothing, seed)
    right = system.right()
    counts = {}
    for name, helper in (("plain", None), ("preconditioned", system.preconditioner())):
        solution = conjugate_gradient(
            system.operator, right, preconditioner=helper, tol=CG_TOLERANCE, max_iter=10_000
        )
        counts[name] = solution.iterations if solution.converged else math.nan
    return {"sweeps": "", **counts, "condition": condition_number(system)}
