"""Models without factors: one side of ``W = F Gᵀ`` is held at the identity, the other is ``W``."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from ..arrays import DENSE_BYTES, namespace
from ..engine.recipe import InnerTolerance, Iteration, Recipe, Schedule
from ..factors import State, thin_svd
from ..models import fields as of
from ..models.factor_model import FactorFit, adapt
from ..models.task_model import TaskModel
from ..parameters import Doc, NonNegative
from ..penalties import Free, Penalty, Ridge
from ..penalties.learned_relation import AcrossColumns, LearnedRelation
from ..penalties.relations import Relation

Alpha = Annotated[NonNegative, Doc("Penalty of the weights.")]


def exact(tol: float) -> InnerTolerance:
    """Inner solves of models whose every step is the whole fit."""
    return InnerTolerance(1e-4 * tol, 2000)


def close(tol: float) -> InnerTolerance:
    """Inner solves of models with proximal steps: after loose ones the sweeps creep."""
    return InnerTolerance(min(100.0 * tol, 0.1), 500)


def direct_recipe(size: tuple[int, int], penalty: Penalty, **parts: Any) -> Recipe:
    """Recipe of weights without factors; ``size`` counts features and columns."""
    features, columns = size
    small = 8 * columns * (features + 1) ** 2 <= DENSE_BYTES
    # A relation is learned on the shorter side, see benchmarks/bench_trace_norm.md.
    if isinstance(penalty, LearnedRelation):
        penalty, small = AcrossColumns.of(penalty), False
    if features <= columns or small:
        held, width, penalties = "F", features, {"F": Free(), "G": penalty}
    else:
        held, width, penalties = "G", columns, {"F": penalty, "G": Free()}
    return Recipe(penalties, (width, width), fixed={held: np.eye(width)}, **parts)


def in_factors(state: State, smoothing: float) -> State:
    """Return the state with the weights as ``U (Vσ)ᵀ``, on whose span new tasks can build."""
    point = state.factors
    learned = sorted(state.penalties.keys() - state.fixed)
    if not learned:
        return state
    U, sigma, V = thin_svd(point.F, point.G)
    G = V * sigma[None, :]
    priced = state.penalties[learned[0]].initialised(G, smoothing)
    separated = state.at(point.with_(F=U, G=G)).penalized(F=Free(), G=priced)
    return separated.with_(fixed=frozenset({"F"}))


class DirectFit(FactorFit):
    """Weights learned as such, and separated into factors at the end."""

    exact: bool = True  # whether one sweep solves a squared loss, if its steps are exact

    def penalties(self) -> dict[str, Penalty]:
        """Penalty of the weights."""
        return {"W": Ridge.of_strength(self.model.alpha)}

    def recipe(self, n_features: int, n_columns: int) -> Recipe:
        penalty, size = self.penalties()["W"], (n_features, n_columns)
        return direct_recipe(size, penalty, intercept=self.model.fit_intercept)

    def schedule(self) -> Schedule:
        schedule = super().schedule()
        return replace(schedule, inner=exact(self.model.tol)) if self.exact else schedule

    def ranks(self, n_features: int, n_columns: int) -> tuple[int, int]:
        rank = min(n_features, n_columns)
        return rank, rank

    def keep(self, step: Iteration, *rest: Any) -> None:
        super().keep(replace(step, state=in_factors(step.state, self.smoothing)), *rest)

    def relations(self, state: State) -> tuple[Relation, Relation]:
        """Relations that the weights imply."""
        F, G = state.factors.F, state.factors.G
        features = F * namespace(G).linalg.vector_norm(G, axis=0)
        return Free().relation_of(features, self.smoothing), Free().relation_of(G, self.smoothing)


@dataclass(eq=False, repr=False)
class DirectModel(TaskModel):
    """Abstract model whose weights are learned as such."""

    alpha: Alpha = 1.0
    _: KW_ONLY
    loss: of.Loss = "auto"
    fit_intercept: of.PlainIntercept = True
    standardize: of.Standardize = "auto"
    max_iter: of.MaxIter = 200
    tol: of.Tol = 1e-6
    random_state: of.RandomState = None

    _algorithm_class: ClassVar[type[FactorFit]]

    adapt = adapt
