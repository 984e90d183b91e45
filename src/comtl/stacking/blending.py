"""Members combined by what they say of rows that they did not see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize, nnls

from ..losses import Loss
from ..saving.registry import saved
from .members import Predicted

CHANCE = 4.0
"""Of how many weights the noise may be what the best ones gain over a single member; see
benchmarks/bench_stacking.md."""

MIN_GAIN_SE = 0.5
"""Standard errors beyond which a gain counts as more than chance. With fewer, linear tables are
given hinges more often; with two, small nonlinear ones get none; see benchmarks/bench_hinges.md."""


@saved
@dataclass(frozen=True, eq=False)
class Blend:
    """Weighted sum of what members predict."""

    weights: dict[str, float]
    shift: float

    @classmethod
    def of(cls, names: Sequence[str], shares: Iterable[float], shift: float) -> Blend:
        """Blend of the members that have a weight."""
        named = zip(names, map(float, shares), strict=True)
        return cls({name: share for name, share in named if share > 0.0}, shift)

    def __call__(self, predicted: Mapping[str, Predicted]) -> Predicted:
        """Score, and coefficients of the linear members, of what members predict."""
        chosen = [(share, predicted[name]) for name, share in self.weights.items()]
        blank = next((0.0 * one.score for one in predicted.values()), np.zeros(1))
        score = sum((share * one.score for share, one in chosen), blank + self.shift)
        linear = [(share, one) for share, one in chosen if one.table is not None]
        if not linear:
            return Predicted(score)

        def table() -> np.ndarray:
            return np.sum([share * one.table() for share, one in linear if one.table], axis=0)

        return Predicted(score, linear[0][1].column, table)


def blend(
    loss: Loss, scores: np.ndarray, target: np.ndarray, weights: np.ndarray, base: int | None = None
) -> tuple[np.ndarray, float]:
    """Weights of members, none negative, and a shift, whose sum has the least loss.

    With a member as ``base`` they are drawn to it, as far as chance may have put them elsewhere:
    as James and Stein, by what one weight fitted to noise alone would gain.
    """
    weights, members = row_counts(weights), scores.shape[1]
    center = float(np.average(target, weights=weights)) if loss.quadratic else 0.0
    scores, target = scores - center, target - center
    columns = np.concatenate([scores, np.ones((len(scores), 1))], axis=1)

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        total = columns @ point
        value = float(weights @ loss.value(target, total))
        return value, columns.T @ (weights * loss.derivative(target, total))

    if loss.quadratic:
        share = np.sqrt(weights)
        best = np.append(nnls(scores * share[:, None], target * share)[0], 0.0)
        noise = objective(best)[0] / float(weights.sum())
    else:
        start = np.append(np.full(members, 1.0 / members), 0.0)
        bounds = [(0.0, None)] * members + [(None, None)]
        best = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        noise = 0.5
    if base is not None:
        alone = np.eye(members + 1)[base]
        gain = objective(alone)[0] - objective(best)[0]
        kept = max(0.0, 1.0 - CHANCE * noise / gain) if gain > 0.0 else 0.0
        best = alone + kept * (best - alone)
    return best[:-1], float(best[-1]) + center * (1.0 - float(best[:-1].sum()))


def row_counts(weights: np.ndarray) -> np.ndarray:
    """Weights as numbers of rows: what sums to less than there are rows is made of shares."""
    known = np.count_nonzero(weights)
    return weights * max(1.0, known / max(float(weights.sum()), np.finfo(float).tiny))


def mean_and_se(gains: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Mean of what targets gain, and its standard error."""
    weights = row_counts(weights)
    unit = float(np.abs(gains).max(initial=0.0)) or 1.0  # Squares of losses may overflow.
    gains = gains / unit
    mean = float(np.average(gains, weights=weights))
    spread = float(np.average((gains - mean) ** 2, weights=weights))
    return unit * mean, unit * float(np.sqrt(spread / weights.sum()))
