"""How factor models are fitted: a recipe over the one alternation, and new tasks on its factors."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array
from ..arrays.blocks import single_blas
from ..engine.progress import SILENT, Checkpoint, FitProgress, logger
from ..engine.recipe import Iteration, Recipe, Schedule
from ..factors import Factors, State, padded
from ..linear import OutputColumns
from ..losses import Loss, loss_of
from ..penalties import Free, Penalty
from ..penalties.relations import Relation
from ..phrases import some, warn_caller
from ..rows.fit_input import rows_of
from ..rows.frames import is_frame
from ..rows.observations import Observations
from .task_model import TaskModel, missing_values_explained

if TYPE_CHECKING:
    from ..datafits.rows_datafit import RowsDatafit
    from ..engine.problem import Problem


class FactorFit(ABC):
    """How a factor model is fitted: loss, penalties and ranks over the one alternation.

    Attributes
    ----------
    feature_factor_ : ndarray of shape (n_features, K1)
        Feature factor, in the units of the data.
    task_factor_ : ndarray of shape (n_tasks, K2)
        Task factor.
    feature_relation_, task_relation_ : Relation
        Relations of the standardised features and of the tasks, learned or those that the weights
        imply: low-rank objects with ``@`` and ``toarray()``.
    solver_ : dict
        Where the rows lived and which solver ran for each factor.
    objective_history_ : ndarray of shape (n_sweeps + 1,)
        Objective at the start and after each sweep; never rises.
    n_iter_ : int
        Sweeps done.
    converged_ : bool
        Whether the decrease fell below ``tol``.
    """

    # What a model may leave to us.
    init: str = "svd"
    smoothing: float = 0.01
    checkpoint: str | None = None
    rank_names: ClassVar[tuple[str, ...]] = ()
    path_names: ClassVar[tuple[str, ...]] = ()
    alpha_name: ClassVar[str] = "alpha"
    """Parameters that say how many columns the factors have; in a search, penalties that one path
    of fits has in common, and the one that rises along it."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def ranks(self, n_features: int, n_columns: int) -> tuple[int, int]:
        """Columns of the feature and of the task factor, capped at what is attainable."""
        rank = min(self.clusters()[0], n_features, n_columns)
        return rank, rank

    @abstractmethod
    def penalties(self) -> dict[str, Penalty]:
        """Penalty of each factor that is learned."""

    def recipe(self, n_features: int, n_columns: int) -> Recipe:
        """Return the model as the engine takes it."""
        ranks = self.ranks(n_features, n_columns)
        return Recipe(self.penalties(), ranks, intercept=self.model.fit_intercept)

    def place(self) -> tuple[tuple[float, ...], float]:
        """Path that a setting lies on in a search, and its penalty there."""
        held = (getattr(self.model, name) for name in self.path_names)
        path = tuple(-1.0 if alpha is None else float(alpha) for alpha in held)
        return path, float(getattr(self.model, self.alpha_name))

    def clusters(self) -> tuple[int, int]:
        """How many feature and task clusters to report."""
        counts = [int(getattr(self.model, name)) for name in self.rank_names] or [5]
        return counts[0], counts[-1]

    def loss(self) -> Loss:
        """Loss of an observation."""
        return loss_of(self.model.loss, classification=self.model._classification)

    def schedule(self) -> Schedule:
        """When to stop, and how close to solve."""
        return Schedule(
            max_iter=self.model.max_iter,
            tol=self.model.tol,
            smoothing=self.smoothing,
            start_smoothing=max(1.0, self.smoothing),
        )

    def problem(self, data: Observations, columns: OutputColumns, *, fits: int = 1) -> Problem:
        """Rows made ready for so many fits."""
        # Here, since a model that only predicts needs no solvers.
        from ..engine.problem import build_problem

        binary = self.model._binary(data, columns)
        recipe = self.recipe(binary.n_features, binary.n_tasks)
        problem = build_problem(
            binary,
            self.model._loss(),
            center=self.model.fit_intercept,
            standardize=self.model.standardize,
            scale_target=not self.model._classification,
            width=recipe.ranks[0],
            # A core without penalty grows where rows hardly see it, and Grams lose its digits.
            grams=recipe.penalties.get("S") != Free(),
            fits=fits,
        )
        return problem if columns.index is None else replace(problem, labels=columns.label)

    def learn(
        self,
        data: Observations,
        columns: OutputColumns,
        watch: FitProgress = SILENT,
        *,
        problem: Problem | None = None,
        kept: Checkpoint | None = None,
        described: Callable[[Any], dict[str, Any]] = lambda model: dict(vars(model)),
    ) -> None:
        """Fit the columns of weights to the observations, and keep what came of it.

        Interrupted, the outermost model stays where it is, and its checkpoint with it; what it
        would be there ``described`` tells callbacks.
        """
        kept = kept or Checkpoint.of(self.checkpoint, self.model, data)
        problem = problem or self.problem(data, columns)
        model = self.model
        history: list[float] = []
        step: Iteration | None = None
        if found := kept.get("run"):
            seed, history, step = found["seed"], found["history"], found["step"]
            steps = problem.resumed(step, self.schedule())
        else:
            seed = int(check_random_state(model.random_state).randint(2**31 - 1))
            steps = self.steps(problem, self.schedule(), seed)

        def more(step: Iteration) -> bool:
            return not step.converged and step.sweep < model.max_iter

        def fitted(step: Iteration) -> dict[str, Any]:
            copied = copy.copy(model)
            type(self)(copied).keep(step, history, problem, data, columns, seed)
            return described(copied)

        try:
            with single_blas():
                for step in watch.iterate(steps, "sweep", more=more, fitted=fitted):
                    history.append(step.objective)
                    logger.info("sweep %d: objective %.10g", step.sweep, step.objective)
                    if step.sweep:
                        kept.save_later("run", {"seed": seed, "history": history, "step": step})
        except KeyboardInterrupt:
            kept.flush()
            if step is None or not watch.is_root:
                raise
            warn_caller(
                f"Interrupted after sweep {step.sweep}; the model of that sweep is kept.",
                ConvergenceWarning,
            )
        else:
            kept.finish()
        assert step is not None
        self.keep(step, history, problem, data, columns, seed)
        if not step.converged and step.sweep == model.max_iter:
            warn_caller(
                f"The objective still fell by more than tol={model.tol:g} (relative) a sweep after "
                f"max_iter={model.max_iter} sweeps; raise max_iter or tol.",
                ConvergenceWarning,
            )

    def steps(
        self, problem: Problem, schedule: Schedule, seed: int, factors: Factors | None = None
    ) -> Iterator[Iteration]:
        """Yield the fit sweep by sweep, from ``factors`` if given."""
        recipe = self.recipe(problem.datafit.n_features, problem.datafit.n_tasks)
        return problem.sweeps(recipe, schedule, init=self.init, seed=seed, factors=factors)

    def relations(self, state: State) -> tuple[Relation, Relation]:
        """Relations between features and between tasks."""
        F, G = state.factors.F, state.factors.G
        one, other = state.penalties["F"], state.penalties["G"]
        return one.relation_of(F, self.smoothing), other.relation_of(G, self.smoothing)

    def keep(
        self,
        step: Iteration,
        history: list[float],
        problem: Problem,
        data: Observations,
        columns: OutputColumns,
        seed: int,
    ) -> None:
        """Let the model keep what a step came to."""
        model, factors, units = self.model, step.state.factors, problem.units
        model.n_iter_ = step.sweep
        model.converged_ = step.converged
        model.objective_history_ = np.array(history)
        model.solver_ = dict(step.solvers)
        model._state = step.state
        scale = units.target_scale * units.inverse_scale
        widths = self.ranks(factors.F.shape[0], factors.G.shape[0])
        model.feature_factor_ = padded(scale[:, None] * factors.F, widths[0])
        if factors.S is not None:
            model.core_ = padded(padded(factors.S, widths[1]).T, widths[0]).T
        model.feature_relation_, model.task_relation_ = self.relations(step.state)
        model._keep_weights(data, columns, units.weights(factors), units, widths, seed)

    def within(
        self, fit: RowsDatafit, state: State, whitening: Array | None
    ) -> tuple[Array, Array]:
        """Task factor and intercepts of new tasks without a residual."""
        from ..adapt import within_span

        return within_span(fit, state, whitening)

    def adapted(self, data: Observations, columns: OutputColumns, *, residual: bool) -> Any:
        """Copy of the model with the columns of further tasks."""
        from ..adapt import Adaptation, adapt_columns

        old = self.model
        adaptation = Adaptation(old._state, old._units, self.model._loss(), self.within)
        new = adapt_columns(old._binary(data, columns), adaptation, residual=residual)
        model = copy.copy(old)
        model._set_linear(old._linear.joined(data.tasks, columns, new))
        return model


Adapted = TypeVar("Adapted", bound=TaskModel)


def adapt(
    self: Adapted,
    X: Any,
    y: Any,
    task: Any = None,
    sample_weight: Any = None,
    *,
    residual: bool = True,
) -> Adapted:
    """Return a model that knows further tasks, with all that tasks have in common held.

    Factors are frozen; of a hierarchical model each new task is one posterior under the population
    of the fit; in a stack such members adapt, others give the new task what they give one that
    they never saw, and trees above them see its weights.

    Parameters
    ----------
    X, y, task, sample_weight
        Rows of the new tasks, as in ``fit``.
    residual : bool, default=True
        Whether a new task may leave the span of the factors by a ridge residual. Its size is
        set by leave-one-out on the new rows, a model of those rows alone among the
        candidates. False: the paper's transfer step, weights within the span only. Hierarchical
        models have no such span.

    Returns
    -------
    estimator
        A copy that knows the old and the new tasks.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import HierarchicalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(200, 2)), np.repeat(np.arange(10), 20)
    >>> y = X @ np.ones(2) + rng.normal(size=10)[task] + 0.1 * rng.normal(size=200)
    >>> old = task < 9
    >>> model = HierarchicalRegressor().fit(X[old], y[old], task=task[old])
    >>> few = np.flatnonzero(~old)[:3]
    >>> model.adapt(X[few], y[few], task=task[few]).score(X[~old], y[~old], task=task[~old]) > 0.9
    True
    """
    check_is_fitted(self)
    self._check_device(X)
    with missing_values_explained():
        rows = rows_of(self, X, y, task, sample_weight)
        rows = rows.here(self) if self._gathers_new_rows else rows
        data = rows.read_more(self, copy.copy(self))
    if self._multi_output and not is_frame(y) and self.tasks_.dtype.kind == "i":
        # The columns of an array have no names: they go on counting.
        data = replace(data, tasks=data.tasks + self.tasks_.max() + 1)
    refuse_known(self, data)
    columns = OutputColumns.of(data)
    return self._adapted(data, columns, residual=residual)


def refuse_known(model: TaskModel, data: Observations) -> None:
    """Refuse what cannot be joined to the tasks at hand."""
    if data.multi_output != model._multi_output:
        raise ValueError(
            "adapt takes y in the form that fit had: "
            + ("two-dimensional." if model._multi_output else "one-dimensional, with tasks.")
        )
    known = model._linear.codes(data.tasks) >= 0
    if known.any():
        names = some(data.tasks[known].tolist())
        raise ValueError(
            f"task holds tasks that the model knows already: {names}. Pass rows of new tasks only, "
            "under new labels; to learn from more rows of these, fit again with the rows of all."
        )
    if (data.tasks.dtype.kind == "U") != (model.tasks_.dtype.kind == "U"):
        raise ValueError("task must have labels of the same type as in fit, text or numbers.")
