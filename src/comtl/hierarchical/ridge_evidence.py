r"""Size of the weights and of the noise where every task has a ridge regression of its own.

.. math:: y_t \sim N(0, τ K_t + σ I)

``K_t`` is the kernel of a task's centred rows. Two numbers for all tasks need a few thousand rows.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar

from .centred_rows import CentredRows

TASKS, ROWS = 64, 400
"""Most tasks that are asked, and most rows of each."""
EXTREME = 1e4
"""Noise over the mean square of what the weights bring about: at most, and its inverse at least."""


def ridge_scales(rows: CentredRows, target: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """Variance of the weights and of the noise with the highest (restricted) likelihood.

    ``target`` is centred within tasks and times the root of the weights.
    """
    spectrum, power, count, tasks = _spectra(rows, target, np.random.default_rng(seed))
    freedom = max(count - tasks, 1.0)
    level = float(spectrum.sum()) / freedom
    if not level > 0.0 or not power.sum() > 0.0:
        return 1e-12, 1.0

    def deviance(logarithm: float) -> float:
        ratio = level * np.exp(logarithm)
        size = np.sum(power / (spectrum + ratio)) / freedom
        # A row of weight two is two rows, whose difference nothing but the noise has a part in;
        # the mean of a task has taken one such direction.
        spread = np.sum(np.log(spectrum + ratio)) + (freedom - len(spectrum)) * np.log(ratio)
        return float(freedom * np.log(size) + spread)

    grid = np.linspace(-np.log(EXTREME), np.log(EXTREME), 41)
    best = int(np.argmin([deviance(point) for point in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(deviance, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    ratio = level * float(np.exp(found.x))
    size = float(np.sum(power / (spectrum + ratio))) / freedom
    return size, ratio * size


def _spectra(
    rows: CentredRows, target: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """Eigenvalues of some tasks' kernels, squares of the targets along them, weight, tasks."""
    count = len(rows.totals)
    chosen = rng.permutation(count)[:TASKS] if count > TASKS else np.arange(count)
    values, powers, weight = [], [], 0.0
    for task in chosen.tolist():
        cells = np.arange(rows.offsets[task], rows.offsets[task + 1])
        if len(cells) > ROWS:
            cells = np.sort(rng.choice(cells, ROWS, replace=False))
        X = rows.design.X[cells] * rows.design.inverse_scale
        kernel = X @ X.T
        kernel = kernel.toarray() if sparse.issparse(kernel) else kernel
        root = rows.root[cells]
        weight += float(root @ root)
        center = np.eye(len(cells)) - np.outer(root, root) / max(float(root @ root), 1e-300)
        kernel = center @ (kernel * root[:, None] * root) @ center
        found, basis = np.linalg.eigh(kernel)
        values.append(np.maximum(found, 0.0))
        powers.append((basis.T @ (center @ target[cells])) ** 2)
    return np.concatenate(values), np.concatenate(powers), weight, len(chosen)
