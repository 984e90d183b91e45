"""A model as the alternation takes it, how the alternation runs, and what a sweep comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..arrays import Array
from ..factors import Factors, State
from ..penalties import Penalty
from ..saving.registry import saved


@dataclass(frozen=True)
class InnerTolerance:
    """Tolerance and most iterations of the iterative solvers within a step."""

    tol: float = 0.3
    max_iter: int = 100


@dataclass(frozen=True)
class Schedule:
    """How the alternation runs: measured choices, see ``benchmarks/bench_engine.md``."""

    max_iter: int = 100
    tol: float = 1e-4  # relative decrease of the objective at which to stop
    smoothing: float = 1e-2  # floor of ε, relative to the largest squared singular value
    start_smoothing: float = 1.0
    shrink: float = 0.3  # of ε, each sweep
    inner: InnerTolerance = field(default_factory=InnerTolerance)
    extrapolate: bool = True


@saved
@dataclass(frozen=True)
class StepLength:
    """How far to go beyond a sweep, as a share of its step."""

    share: float = 0.5
    longer: float = 1.3
    shorter: float = 0.5
    most: float = 8.0

    def after(self, success: bool) -> StepLength:
        factor = self.longer if success else self.shorter
        return replace(self, share=min(factor * self.share, self.most))


@saved
@dataclass(frozen=True)
class Iteration:
    """State after a sweep; the next one extrapolates from ``last`` by ``step_length``."""

    sweep: int
    objective: float
    state: State
    solvers: dict[str, str]
    converged: bool = False
    step_length: StepLength = field(default_factory=StepLength)
    last: Factors | None = None


@dataclass(frozen=True)
class Recipe:
    """A model: penalties by factor, ranks, what is held, shared part and intercepts.

    A held square ``F`` is the identity: ``G`` then holds the weights themselves.
    """

    penalties: Mapping[str, Penalty | float]  # a number is the strength of a learned relation
    ranks: tuple[int, int]  # columns of F and of G
    fixed: dict[str, Array] | None = None  # factors that are given and not learned
    shared: float | None = None  # ridge penalty of the common part
    intercept: bool = True
    intercept_penalty: float | None = None
    """Penalty of the tasks' deviations from the common intercept: infinite for one intercept in
    common, next to zero for one of each task's own, None for an estimate from the data."""
