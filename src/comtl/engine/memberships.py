"""Hard clusters: each row of a factor belongs to one column, and moves where the loss falls."""

import numpy as np

from ..arrays import to_numpy
from ..datafits.datafit import Datafit, LocalQuadratic, TaskQuadratic
from ..factors import Factors, State
from ..penalties.constraints import indicators, labels_of
from ..solvers import Solution

BlockStep = tuple[Factors, Solution]
"""Factors after a step of one block, and the solution that led there."""

ROUNDS = 20
"""Most rounds of moves in one step; what is left is for the next sweep."""


def feature_moves(datafit: Datafit, expansion: LocalQuadratic, state: State) -> BlockStep:
    """Move features between clusters, the moves with most gain first, as long as the loss falls."""
    loadings = state.factors.loadings
    covariance = datafit.covariance
    spread = (covariance.basis**2) @ (covariance.values - covariance.rest) + covariance.rest
    curvature = (loadings * expansion.curvature_sums[:, None]).T @ loadings
    point, rounds, moved = state.factors, 0, True
    while moved and rounds < ROUNDS:
        slope, _ = expansion.gradient(loadings)
        hessian = spread[:, None, None] * curvature[None, :, :]
        gains = _gains(to_numpy(slope), to_numpy(hessian), labels_of(point.F))
        point, expansion, moved = _taken(datafit, expansion, point, "F", gains)
        rounds += 1
    return point, Solution(point.F, "moves", not moved, rounds)


def task_moves(datafit: Datafit, quadratic: TaskQuadratic, state: State) -> BlockStep:
    """Move each task to the cluster that fits its own rows best."""
    point = state.factors
    slope, hessian = quadratic.gradient[:, :-1], quadratic.hessian[:, :-1, :-1]
    if point.S is not None:
        slope, hessian = slope @ point.S, point.S.T @ (hessian @ point.S)
    labels = labels_of(point.G)
    gains = _gains(to_numpy(slope), to_numpy(hessian), labels)
    if datafit.loss.quadratic:
        # Tasks do not meet in the loss, so that all moves hold together.
        better = np.where(gains.max(axis=1) > 0.0, gains.argmax(axis=1), labels)
        point = point.with_(G=indicators(better, point.G))
    else:
        point, _, _ = _taken(datafit, datafit.quadratic_at(point), point, "G", gains)
    return point, Solution(point.G, "moves")


def _gains(slope: np.ndarray, hessian: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Fall of the quadratic model for every row and every cluster it may move to."""
    rows = np.arange(len(labels))
    own = hessian[rows, labels, labels][:, None]
    curvature = np.diagonal(hessian, axis1=1, axis2=2) - 2.0 * hessian[rows, labels, :] + own
    gains = slope[rows, labels][:, None] - slope - 0.5 * curvature
    gains[rows, labels] = 0.0
    return gains


def _taken(
    datafit: Datafit, expansion: LocalQuadratic, point: Factors, name: str, gains: np.ndarray
) -> tuple[Factors, LocalQuadratic, bool]:
    """Take all moves that promise a gain, or the better half of them, and so on, if J falls."""
    factor = getattr(point, name)
    gain, better = gains.max(axis=1), gains.argmax(axis=1)
    order = np.argsort(-gain, kind="stable")[: np.count_nonzero(gain > 0.0)]
    # Beyond rounding, or rows could move to and fro for ever.
    least = expansion.value - 1e-10 * abs(expansion.value)
    while len(order):
        labels = labels_of(factor)
        labels[order] = better[order]
        there = point.with_(**{name: indicators(labels, factor)})
        ahead = datafit.quadratic_at(there)
        if ahead.value < least:
            return there, ahead, True
        order = order[: len(order) // 2]
    return point, expansion, False
