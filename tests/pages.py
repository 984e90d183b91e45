"""Comparisons with chosen errors, rows of tasks that differ in level, a model with a large page."""

import numpy as np
from scipy import sparse

from comtl import BiFactorRegressor
from comtl.evaluation import Comparison


def levels(seed=0, T=6, n=20):
    """Rows of tasks with one slope and levels of their own."""
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(T * n, 3)), np.repeat([f"t{i}" for i in range(T)], n)
    level = np.repeat(rng.normal(size=T), n)
    return X, X[:, 0] + level + 0.5 * rng.normal(size=T * n), task


def comparison_of(errors, gains, gain_errors, rows=10, **changes):
    """Comparison with these errors of tasks, and gains over reference models."""
    T = len(errors["model"])
    fields = {
        "tasks": np.array([f"t{i}" for i in range(T)]),
        "train_rows": np.full(T, rows),
        "test_rows": np.full(T, rows),
        "metric": "RMSE",
        "errors": errors,
        "overall": {name: float(values.mean()) for name, values in errors.items()},
        "accuracy": None,
        "loss_reduction": gains,
        "loss_reduction_se": gain_errors,
        "nominal": None,
        "coverage": None,
    }
    return Comparison(**(fields | changes))


def large_model():
    """Model of 1,000 tasks and 5,000 features, and errors drawn at random."""
    rng = np.random.default_rng(0)
    T, P = 1000, 5000
    X = sparse.random_array((2 * T, P), density=0.005, format="csr", rng=rng)
    task = np.repeat([f"a task with the number {i}" for i in range(T)], 2)
    model = BiFactorRegressor(3, max_iter=3, tol=1.0, random_state=0)
    model.fit(X, rng.normal(size=2 * T), task=task)
    errors = {name: rng.uniform(1, 2, T) for name in ("model", "separate", "pooled", "mean")}
    gains = {name: rng.normal(size=T) for name in ("separate", "pooled")}
    spread = dict.fromkeys(gains, np.full(T, 0.5))
    return model, comparison_of(errors, gains, spread, rows=2, tasks=model.tasks_)
