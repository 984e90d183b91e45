"""Eight families of drawn problems whose truth is known: sixty groups of twelve training rows.

Noise has half the spread of the truth. A new problem is drawn for each repeat.
"""

from __future__ import annotations

import numpy as np

TASKS, ROWS, COLUMNS, SHARE, NOISE = 60, 48, 6, 0.25, 0.5


def _linear(X, task, rng):
    """Common weights, and weights and a level of each group around them."""
    weights = rng.normal(size=COLUMNS) + 0.5 * rng.normal(size=(TASKS, COLUMNS))
    return rng.normal(size=TASKS)[task] + np.sum(X * weights[task], axis=1)


def _hinge(X, task, rng):
    """A slope that begins at a point, both of the group."""
    slope, knot = 2.0 + rng.normal(size=TASKS), 0.5 * rng.normal(size=TASKS)
    return rng.normal(size=TASKS)[task] + slope[task] * np.maximum(X[:, 0] - knot[task], 0.0)


def _xor(X, task, rng):
    """An interaction of two signs, of a size of the group."""
    size, level = 1.0 + 0.5 * rng.normal(size=TASKS), 0.5 * rng.normal(size=TASKS)
    return level[task] + size[task] * np.sign(X[:, 0] * X[:, 1])


def _saturating(X, task, rng):
    """Growth towards an upper limit, with limit and rate of the group."""
    top, rate = 3.0 + rng.normal(size=TASKS), np.exp(0.5 * rng.normal(size=TASKS))
    return top[task] * -np.expm1(-rate[task] * (X[:, 0] - X[:, 0].min()))


def _step(X, task, rng):
    """A step at a point that all groups share, of a height of the group."""
    height, level = 1.5 + rng.normal(size=TASKS), 0.5 * rng.normal(size=TASKS)
    return level[task] + height[task] * (X[:, 0] > 0.3)


def _clusters(X, task, rng):
    """Four kinds of groups; those of a kind have the same weights."""
    return np.sum(X * rng.normal(size=(4, COLUMNS))[rng.integers(4, size=TASKS)][task], axis=1)


def _low_rank(X, task, rng):
    """Weights of groups are sums of two directions."""
    weights = rng.normal(size=(TASKS, 2)) @ rng.normal(size=(2, COLUMNS))
    return np.sum(X * weights[task], axis=1)


def _noise(X, task, rng):
    """Nothing to find."""
    return np.zeros(len(X))


FAMILIES = {
    "linear": _linear,
    "hinge": _hinge,
    "xor": _xor,
    "saturating": _saturating,
    "step": _step,
    "clusters": _clusters,
    "low-rank": _low_rank,
    "noise": _noise,
}


def draw(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, targets and groups of one problem."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(name)])
    task = np.repeat(np.arange(TASKS), ROWS)
    X = rng.normal(size=(len(task), COLUMNS))
    truth = FAMILIES[name](X, task, rng)
    truth = truth / (truth.std() or 1.0)
    return X, truth + NOISE * rng.normal(size=len(task)), task


def least(name: str) -> float:
    """Error of the truth itself, over the spread of the targets."""
    return 1.0 if name == "noise" else NOISE / float(np.hypot(1.0, NOISE))
