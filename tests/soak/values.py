"""Numbers of any size, type and container, against the same fit on tame numbers.

The tame fit itself is held against least squares in extended precision.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone

import comtl
from comtl import baselines

from .attack import Figures

KINDS: list[Any] = [
    comtl.BiFactorRegressor(2, random_state=0),
    comtl.BiFactorClassifier(2, random_state=0),
    comtl.TriFactorRegressor(2, 2, random_state=0),
    comtl.HierarchicalRegressor(),
    comtl.HierarchicalClassifier(),
    comtl.MultitaskRegressor(cv=2),
    baselines.PooledRegressor(),
    baselines.IndependentRegressor(),
    baselines.IndependentClassifier(),
    baselines.MeanRegularizedRegressor(),
    baselines.RandomInterceptRegressor(),
    baselines.FeatureLearningRegressor(tol=1e-8),
]
"""One of a smaller tolerance: a stop a step earlier, by rounding, moves its predictions."""
CLOSE = 1e-4
"""How far predictions may be from those of the tame fit, in standard deviations of them."""


def tame(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of five tasks with weights of their own."""
    task = np.repeat(np.arange(5), 16)
    X = rng.normal(size=(80, 3)) + rng.normal(size=3)
    coef = rng.normal(size=3) + 0.5 * rng.normal(size=(5, 3))
    return X, (X * coef[task]).sum(axis=1) + task + 0.3 * rng.normal(size=80), task


def trial(rng: np.random.Generator, folder: Path, figures: Figures) -> str:
    X, y, task = tame(rng)
    model = KINDS[rng.integers(len(KINDS))]
    classifies = "Classifier" in type(model).__name__
    target = (y > np.median(y)).astype(int) if classifies else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        if rng.random() < 0.1:
            return least_squares(X, y, task)
        if rng.random() < 0.4:
            return hostile(clone(model), X, target, task, rng)
        expected = scores(clone(model).fit(X, target, task=task), X, task)
        changed, factor, told = X.copy(), 1.0, []
        for column in range(3):
            if rng.random() < 0.4:
                told.append(f"column {column} by 1e{(power := int(rng.integers(-150, 140)))}")
                changed[:, column] *= 10.0**power
        if not classifies and rng.random() < 0.4:
            told.append(f"y by 1e{(power := int(rng.integers(-150, 140)))}")
            factor = 10.0**power
        order = rng.permutation(80) if rng.random() < 0.3 else np.arange(80)
        kind = str(rng.choice(list(CONTAINERS)))
        names = TASKS[rng.integers(len(TASKS))](task)
        rows = CONTAINERS[kind](changed[order])
        told += [kind, type(names[0]).__name__, "permuted" if order[0] else "in order"]
        values = target[order] if classifies else target[order] * factor
        try:
            fit = clone(model).fit(rows, values, task=names[order])
            found = scores(fit, rows, names[order])
        except (ValueError, TypeError) as error:
            assert_said(error)
            return "refused"
    found = found / factor
    if isinstance(model, comtl.MultitaskRegressor):
        # Its folds depend on the order of rows, and some of its members on the units of columns.
        errors = [np.std(one - y[order]) for one in (found, expected[order])]
        assert errors[0] < 1.2 * errors[1], (told, errors)
        return "right"
    difference = np.max(np.abs(found - expected[order])) / np.std(expected)
    assert difference < CLOSE, (type(model).__name__, told, difference)
    return "right"


def scores(model: Any, X: Any, task: Any) -> np.ndarray:
    """Predictions, or probabilities of the second class."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X, task=task)[:, 1]
    return model.predict(X, task=task)


CONTAINERS: dict[str, Any] = {
    "array": np.asarray,
    "Fortran": np.asfortranarray,
    "reversed twice": lambda X: X[::-1].copy()[::-1],
    "list": lambda X: X.tolist(),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "frame": lambda X: pd.DataFrame(X, columns=["a", "b", "c"]),
    "big-endian": lambda X: X.astype(">f8"),
}
TASKS: list[Any] = [
    np.asarray,
    lambda task: task - 2,
    lambda task: np.array([f"task {one}" for one in task]),
    lambda task: np.array([f"task {one}" for one in task], dtype=object),
]


def assert_said(error: Exception) -> None:
    """One sentence or two that name what is wrong, not what NumPy or LAPACK says."""
    text = str(error)
    assert 10 < len(text) < 600, text
    for raw in ("Eigenvalues", "SVD", "Singular matrix", "broadcast", "leading minor"):
        assert raw not in text, text


VALUES = (
    np.nan, np.inf, -np.inf, 1e300, -1e300, 1e308, 1e200, 5e-324, 1e-308, -1.0, 0.0, 1e16, 2.0**1023
)  # fmt: skip


def hostile(model: Any, X: Any, y: Any, task: Any, rng: np.random.Generator) -> str:
    """A few values of X, y or the weights replaced: refused, or finite predictions."""
    weights: Any = np.ones(80)
    y = np.asarray(y, dtype=float)
    X = X.copy()
    value = VALUES[rng.integers(len(VALUES))]
    few = rng.integers(80, size=rng.integers(1, 4))
    place = rng.integers(7)
    if place == 0:
        X[few, rng.integers(3)] = value
    elif place == 1 and "Classifier" not in type(model).__name__:
        y[few] = value
    elif place == 2:
        weights[few] = value
    elif place == 3:
        weights[:] = abs(value)
    elif place == 4:
        X = np.ma.masked_array(X, mask=rng.random(X.shape) < 0.05)
    elif place == 5:
        X = X.astype("datetime64[s]") if rng.random() < 0.5 else (X * 1e4).astype("timedelta64[s]")
    else:
        X = sparse.csr_array(X)
        X.indices = X.indices.copy()
        X.indices[few] = rng.choice([-1, 3, 2**30])
    tested = rng.random() < 0.5 and place not in (2, 3)
    try:
        if tested and place in (0, 4, 5, 6):
            good = np.random.default_rng(0).normal(size=(80, 3))
            found = model.fit(good, y, task=task).predict(X, task=task)
        else:
            found = model.fit(X, y, task=task, sample_weight=weights).predict(X, task=task)
    except (ValueError, TypeError) as error:
        assert_said(error)
        return "refused"
    assert place not in (4, 5, 6), "masked, dated or illegal rows were taken"
    assert np.all(np.isfinite(found)), (type(model).__name__, place, value)
    return "finite"


def least_squares(X: np.ndarray, y: np.ndarray, task: np.ndarray) -> str:
    """Fits with next to no penalty, against least squares in extended precision."""
    model = baselines.IndependentRegressor(alpha=1e-9).fit(X, y, task=task)
    found = model.predict(X, task=task)
    for one in range(5):
        mine = task == one
        rows = np.column_stack([np.ones(mine.sum()), X[mine]]).astype(np.longdouble)
        projected = np.zeros(mine.sum(), dtype=np.longdouble)
        # Modified Gram-Schmidt, each column twice.
        basis: list[np.ndarray] = []
        for column in rows.T:
            left = column.copy()
            for _ in range(2):
                for direction in basis:
                    left -= direction * (direction @ left)
            basis.append(left / np.sqrt(left @ left))
            projected += basis[-1] * (basis[-1] @ y[mine].astype(np.longdouble))
        assert np.max(np.abs(found[mine] - projected)) < 1e-6 * np.std(y)
    return "right"
