"""A stack in the making: observations on some features, members, what they say of observations not
seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..hierarchical.population import Population
from ..linear import OutputColumns
from ..models.task_model import TaskModel
from ..rows.fit_input import Split
from ..rows.observations import Observations
from .hinges import Hinges
from .target_scaling import TargetScaling


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """What members say of observations that they did not see: ``scores`` is (n, m).

    Scores and targets of a regression are in the units of :class:`TargetScaling`.
    """

    scores: np.ndarray
    target: np.ndarray
    weights: np.ndarray
    task: np.ndarray


@dataclass(frozen=True, eq=False)
class Candidate:
    """All observations on some features, with targets in the units of their columns."""

    hinges: Hinges
    units: TargetScaling
    data: Observations
    columns: OutputColumns
    population: Population


@dataclass(frozen=True, eq=False)
class Stack:
    """Members on some features, their weights, and their losses on observations not seen.

    ``complete`` tells whether all folds were held out, rather than cut short by the user.
    """

    table: Candidate
    library: dict[str, TaskModel]
    held: HeldOutScores
    weights: dict[str, float]
    shift: float
    scores: np.ndarray
    losses: np.ndarray
    complete: bool


def parts_of_all(split: Split, rows: np.ndarray) -> bool:
    """Whether each of the rows, whose numbers rise, is in exactly one part of a split."""
    return np.array_equal(np.sort(np.concatenate(split)), rows)
