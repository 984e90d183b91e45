r"""New tasks on frozen factors.

Without a residual this is the paper's transfer step: the task step of the fit for the new rows
alone. A row ``g`` added to ``G`` raises the smoothed penalty :math:`λ_2 φ(G)^2` by
:math:`λ_2 φ\, g (G^\top G + εI)^{-1/2} g^\top` to first order, so in the coordinates ``h`` with
``g = L h`` that whiten this form the penalty is plain ridge.

With a residual, :math:`w_t = w_0 + F S g_t + r_t`. For given sizes of the three parts (factors,
residual, intercept) this is ridge regression with one kernel for each task, whose leave-one-out
scores have a closed form. The sizes with the lowest leave-one-out loss over all new rows win;
without factors and shared part they are models of the new rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from .adapt_residual import Sizes, Within, beyond_span, candidates, selection_losses
from .arrays import Array, namespace, on_device
from .datafits.rows_datafit import RowsDatafit
from .engine.alternation import line_search
from .engine.block_steps import InnerTolerance, deviation_step, task_step
from .engine.memberships import task_moves
from .engine.problem import Scaling
from .factors import Factors, State
from .linear import RowSparse
from .losses import Loss
from .penalties import Ridge
from .rows.observations import Observations

New = tuple[Array, Array, sparse.csr_array | RowSparse | None]
"""Task factor, intercepts and residual of new columns, in the user's units."""


@dataclass(frozen=True, eq=False)
class Adaptation:
    """A fitted model as new tasks build on it; ``within`` fits them without a residual."""

    state: State
    units: Scaling
    loss: Loss
    within: Within

    @property
    def whitening(self) -> Array | None:
        """Coordinates in which the penalty of a new row of ``G`` is plain ridge."""
        return self.state.penalties["G"].whitening(self.state.factors.G)

    def rows(self, cells: Observations) -> RowsDatafit:
        y = namespace(cells.weights).astype(self.units.target(cells.y), cells.dtype)
        design = self.units.design(cells.X)
        return RowsDatafit(design, y, cells.weights, cells.offsets, self.loss, cells.rows)

    def losses(self, cells: Observations) -> np.ndarray:
        """Leave-one-out loss of the observations for each of the sizes to choose from."""
        return selection_losses(self.rows(cells), self.state, self.whitening, self.within)

    def best(self, losses: np.ndarray) -> Sizes:
        return candidates(self.state, self.whitening is not None)[int(losses.argmin())]

    def columns(self, cells: Observations, sizes: Sizes | None) -> New:
        return _columns(self, self.rows(cells), sizes)


def adapt_columns(cells: Any, adaptation: Adaptation, *, residual: bool) -> New:
    """Columns of weights of new tasks."""
    if cells.partitioned:
        return cells.adapt_columns(adaptation, residual=residual)
    sizes = adaptation.best(adaptation.losses(cells)) if residual else None
    return adaptation.columns(cells, sizes)


def _columns(adaptation: Adaptation, fit: RowsDatafit, sizes: Sizes | None) -> New:
    state, units, within = adaptation.state, adaptation.units, adaptation.within
    point, whitening = state.factors, adaptation.whitening
    centre_offset = units.shift @ point.shared
    beyond: sparse.csr_array | RowSparse | None = None
    if sizes is not None:
        G, intercepts, own = beyond_span(fit, state, whitening, within, sizes)
        centre_offset = centre_offset + own @ units.shift
        own = own * (units.target_scale * units.inverse_scale)
        beyond = (
            RowSparse(np.arange(own.shape[0]), own) if on_device(own) else sparse.csr_array(own)
        )
        if not isinstance(beyond, RowSparse):
            beyond.eliminate_zeros()
    else:
        G, intercepts = within(fit, state, whitening)
    centre_offset = centre_offset + G @ (units.shift @ point.feature_loadings)
    return G, units.intercepts(intercepts, centre_offset), beyond


def within_span(fit: RowsDatafit, state: State, whitening: Array | None) -> tuple[Array, Array]:
    """Task step on frozen directions, repeated where the loss is not quadratic."""
    point = state.factors
    if whitening is None:
        directions, back, penalty = point.feature_loadings, None, state.penalties["G"]
    else:
        directions, back, penalty = point.feature_loadings @ whitening, whitening, Ridge(1.0)
    xp = namespace(directions)
    G = xp.zeros((fit.n_tasks, directions.shape[1]), dtype=directions.dtype)
    G = penalty.prox(G, 1e-12)
    none = xp.zeros(fit.n_tasks, dtype=G.dtype)
    start = Factors(directions, None, G, point.shared, point.offset, none)
    frozen = replace(state, factors=start, penalties={"G": penalty}, fixed=frozenset())
    before = np.inf
    for _ in range(100):
        expansion = fit.quadratic_at(frozen.factors)
        value = expansion.value + frozen.regularizer
        if before - value <= 1e-10 * abs(value):
            break
        before = value
        quadratic = expansion.task_quadratic(directions)
        if penalty.discrete:
            moved, _ = task_moves(fit, quadratic, frozen)
        else:
            moved, _ = task_step(quadratic, frozen, InnerTolerance(1e-8, 1000))
        frozen = line_search(fit, frozen, frozen.at(moved))
        if not penalty.smooth:  # Else the task step moved the intercepts too.
            at = fit.quadratic_at(frozen.factors)
            own = deviation_step(at.gradient(G[:, :0])[1], at.curvature_sums, frozen)
            frozen = line_search(fit, frozen, frozen.at(own))
    G = frozen.factors.G if back is None else frozen.factors.G @ back.T
    return G, frozen.factors.intercepts
