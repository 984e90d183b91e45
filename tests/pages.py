"""A model whose page is large."""

import numpy as np
from scipy import sparse

from comtl import BiFactorRegressor
from comtl.evaluation import Comparison


def large_model():
    """Model of 1,000 tasks and 5,000 features, and errors drawn at random."""
    rng = np.random.default_rng(0)
    T, P = 1000, 5000
    X = sparse.random_array((2 * T, P), density=0.005, format="csr", rng=rng)
    task = np.repeat([f"a task with the number {i}" for i in range(T)], 2)
    model = BiFactorRegressor(3, max_iter=3, tol=1.0, random_state=0)
    model.fit(X, rng.normal(size=2 * T), task=task)
    errors = {name: rng.uniform(1, 2, T) for name in ("model", "separate", "pooled", "mean")}
    some = {name: rng.normal(size=T) for name in ("separate", "pooled")}
    spread = {name: np.full(T, 0.5) for name in some}
    overall = {name: float(values.mean()) for name, values in errors.items()}
    rows = np.full(T, 2)
    found = Comparison(
        model.tasks_, rows, rows, "RMSE", errors, overall, None, some, spread, None, None
    )
    return model, found
