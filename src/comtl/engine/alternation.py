r"""The one alternation that runs every model: block descent on the smoothed objective.

.. math:: J = \sum_i ω_i ℓ(y_i, x_i^\top (w_0 + F S g_t) + b_t) + p_F(F) + p_S(S) + p_G(G)
              + λ_0 \|w_0\|^2 + ρ \sum_t (b_t - b)^2

Each step of a sweep lowers ``J`` or leaves it, so ``J`` never rises; see docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ..arrays import namespace
from ..datafits.datafit import Datafit, LocalQuadratic, TaskQuadratic
from ..factors import Factors, State
from .acceleration import balance_step, extrapolate
from .feature_step import feature_mixing, feature_step, shared_step
from .memberships import task_moves
from .recipe import Iteration, Schedule
from .task_steps import core_step, direct_step, intercept_pooling, intercept_step, task_step


def alternate(datafit: Datafit, state: State, schedule: Schedule) -> Iterator[Iteration]:
    """Yield the fit after each sweep, until it converges or ``max_iter`` sweeps are done."""
    expansion = datafit.quadratic_at(state.factors)
    objective = expansion.value + state.regularizer
    start = Iteration(0, objective, state, {"rows": datafit.name})
    yield start
    yield from resume(datafit, start, schedule, expansion)


def resume(
    datafit: Datafit, step: Iteration, schedule: Schedule, expansion: LocalQuadratic | None = None
) -> Iterator[Iteration]:
    """Yield what comes after a sweep of :func:`alternate`, as if it had gone on."""
    while not step.converged and step.sweep < schedule.max_iter:
        state = step.state
        if schedule.extrapolate and step.last is not None and state.is_annealed:
            state, expansion, step = _extrapolated(datafit, step)
        expansion = expansion or datafit.quadratic_at(state.factors)
        at_once = _solved_at_once(datafit, state)
        state, loss, solvers = _sweep(datafit, expansion, state, schedule, at_once)
        objective = loss + state.regularizer
        # With many features the smoothing's constant would dwarf all that is left to gain.
        scale = abs(objective - state.floor)
        small = step.objective - objective <= schedule.tol * scale
        done = state.is_annealed and (small or at_once)
        last = step.state.factors if step.sweep else None
        length, expansion = step.step_length, None
        step = Iteration(step.sweep + 1, objective, state, solvers, done, length, last)
        yield step


def _extrapolated(
    datafit: Datafit, step: Iteration
) -> tuple[State, LocalQuadratic | None, Iteration]:
    """Go beyond a sweep if that lowers the objective; the length of the next try follows."""
    assert step.last is not None
    ahead = extrapolate(step.last, step.state, step.step_length.share)
    there = datafit.quadratic_at(ahead.factors)
    lower = there.value_with(feature_mixing(ahead)) + ahead.regularizer < step.objective
    step = replace(step, step_length=step.step_length.after(lower))
    return (ahead, there, step) if lower else (step.state, None, step)


def _sweep(
    datafit: Datafit, expansion: LocalQuadratic, state: State, schedule: Schedule, at_once: bool
) -> tuple[State, float, dict[str, str]]:
    """State after one sweep, its loss and solvers; ``at_once`` leaves ``G`` to the direct step."""
    inner = schedule.inner
    solvers = {"rows": datafit.name}
    if "F" not in state.fixed:
        point, solution = feature_step(datafit, expansion, state, inner)
        solvers["F"] = solution.solver
        state = line_search(datafit, state, state.at(point)).updated("F")
    if "F" in state.fixed or not state.penalties["F"].smooth:
        # Shared part and intercepts have not moved with F.
        if "F" not in state.fixed:
            expansion = datafit.quadratic_at(state.factors)
        if state.unfactored and state.shared is not None:
            point, _ = direct_step(expansion.task_quadratic(state.factors.F), state)
            state = line_search(datafit, state, state.at(point))
        elif state.shared is not None or state.intercept:
            point, _ = shared_step(datafit, expansion, state, inner)
            state = line_search(datafit, state, state.at(point))
    quadratic = _by_task(datafit, state)
    held = state.fixed | {"G"} if at_once else state.fixed
    for name, step in (("G", task_step), ("S", core_step)):
        if name in state.penalties and name not in held:
            if state.penalties[name].discrete:
                point, solution = task_moves(datafit, quadratic, state)
            else:
                point, solution = step(quadratic, state, inner)
            solvers[name] = solution.solver
            before, state = state, line_search(datafit, state, state.at(point))
            quadratic = _moved(datafit, quadratic, before, state)
            state = state.updated(name)
    if state.intercept:
        point = intercept_step(quadratic.slopes, quadratic.curvatures, state)
        before, state = state, line_search(datafit, state, state.at(point))
        quadratic = _moved(datafit, quadratic, before, state)
    # From here on the weights stay, and with them the loss.
    state = balance_step(state).annealed(schedule.shrink, schedule.smoothing)
    return update_pooling(datafit, state, quadratic), quadratic.value, solvers


def _solved_at_once(datafit: Datafit, state: State) -> bool:
    """Whether the whole step leaves nothing to do: a squared loss, and no tasks to relate."""
    if not (datafit.loss.quadratic and state.unfactored and state.shared is not None):
        return False
    penalty = state.penalties["G"]
    related = not penalty.smooth or penalty.curvature(state.factors.G)[1].shape[1] > 0
    return not related and state.factors.S is None and not state.estimates_pooling


def _by_task(datafit: Datafit, state: State) -> TaskQuadratic:
    """Loss by what a sweep may still move after ``F``: the tasks' intercepts, mostly more."""
    point = state.factors
    if _only_features(state):
        return intercept_quadratic(datafit, point)
    return datafit.quadratic_at(point).task_quadratic(point.F)


def intercept_quadratic(datafit: Datafit, point: Factors) -> TaskQuadratic:
    """Loss by the intercepts alone."""
    expansion = datafit.quadratic_at(point)
    _, slopes = expansion.gradient(point.loadings[:, :0])
    sums = expansion.curvature_sums
    return TaskQuadratic(sums[:, None, None], slopes[:, None], expansion.value)


def _only_features(state: State) -> bool:
    return state.penalties.keys() <= state.fixed | {"F"}


def _moved(datafit: Datafit, quadratic: TaskQuadratic, old: State, new: State) -> TaskQuadratic:
    """Loss by the same unknowns at a new point with the same ``F``."""
    if not datafit.loss.quadratic:
        return _by_task(datafit, new)
    before, now = old.factors, new.factors
    step = (now.intercepts - before.intercepts)[:, None]
    if not _only_features(new):
        step = namespace(step).concat([now.loadings - before.loadings, step], axis=1)
    return quadratic.translated(step)


def line_search(datafit: Datafit, old: State, new: State) -> State:
    """The new state, or a point before it on the segment where the objective is lower."""
    if datafit.loss.quadratic:
        return new
    loss = datafit.along_segment(old.factors, new.factors)

    def point(share: float) -> State:
        return old.at(old.factors.interpolate(new.factors, share)) if share else old

    return point(descent_share(lambda share: loss(share) + point(share).regularizer))


def descent_share(objective: Callable[[float], float]) -> float:
    """Largest of 1, 1/2, 1/4, ... at which the objective is not above that at 0; else 0."""
    before, share = objective(0.0), 1.0
    for _ in range(25):
        if objective(share) <= before:
            return share
        share *= 0.5
    return 0.0


def update_pooling(datafit: Datafit, state: State, quadratic: TaskQuadratic | None = None) -> State:
    """Lower the penalty of the intercepts' deviations to its present estimate, never raise it."""
    if not state.estimates_pooling:
        return state
    quadratic = quadratic or intercept_quadratic(datafit, state.factors)
    estimate = intercept_pooling(quadratic, datafit, state)
    return state.with_(intercept_penalty=min(state.intercept_penalty, estimate))
