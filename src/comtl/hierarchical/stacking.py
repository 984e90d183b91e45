"""Members combined by what they say of rows that they did not see."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize, nnls

from ..losses import Logistic


def stack_values(guesses: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights, none negative, of the members whose sum comes closest to the target.

    ``guesses`` (n, m) and ``target`` (n,) are differences from the same mean.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.hierarchical.stacking import stack_values
    >>> stack_values(np.eye(2), np.array([0.5, -1.0]), np.ones(2))
    array([0.5, 0. ])
    """
    share = np.sqrt(weights)
    return nnls(guesses * share[:, None], target * share)[0]


def stack_odds(
    scores: np.ndarray, signs: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, float]:
    """Weights, none negative, and a shift that make the classes -1 and +1 most likely.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.hierarchical.stacking import stack_odds
    >>> signs = np.array([1.0, 1.0, -1.0, -1.0])
    >>> scores = np.array([[2.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-2.0, 0.0]])
    >>> stack_odds(scores, signs, np.ones(4))[0].round(1)
    array([0.4, 0.5])
    """
    loss, members = Logistic(), scores.shape[1]
    columns = np.concatenate([scores, np.ones((len(scores), 1))], axis=1)

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        total = columns @ point
        value = float(weights @ loss.value(signs, total))
        return value, columns.T @ (weights * loss.derivative(signs, total))

    start = np.append(np.full(members, 1.0 / members), 0.0)
    bounds = [(0.0, None)] * members + [(None, None)]
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return found.x[:-1], float(found.x[-1])
