"""What all factor models share in fitting: parameters, recipe, the run of the alternation."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..adapt import Adaptation, adapt_columns, within_span
from ..arrays import Array
from ..datafits.rows_datafit import RowsDatafit
from ..engine.alternation import Iteration, Recipe, Schedule, alternate, resume
from ..engine.checkpoints import Checkpoint
from ..engine.problem import OutputColumns, Problem, build_problem
from ..engine.progress import SILENT, FitProgress, logger, progress_shown
from ..engine.starts import start_state
from ..factors import Factors, State, padded
from ..losses import Loss, loss_names, loss_of
from ..parameters import require_choice, require_flag, require_integer, require_number
from ..penalties import Free
from ..penalties.relations import Relation
from ..rows.blocks import single_blas
from ..rows.observations import Observations
from .training import CellModel


class FactorModel(CellModel):
    """Abstract factor model: a recipe of loss, penalties and ranks over the one alternation."""

    # Declared for type checkers; the final classes set them in their constructors.
    loss: str
    fit_intercept: bool
    standardize: bool
    max_iter: int
    tol: float
    random_state: Any
    verbose: int

    # What a model may leave to us.
    init: str = "svd"
    smoothing: float = 0.01
    checkpoint: str | None = None

    _state: State
    _on_devices = True

    @abstractmethod
    def _ranks(self, n_features: int, n_columns: int) -> tuple[int, int]:
        """Columns of the feature and of the task factor, capped at what is attainable."""

    @abstractmethod
    def _recipe(self, n_features: int, n_columns: int) -> Recipe:
        """Return the model as the engine takes it."""

    @abstractmethod
    def _place(self) -> tuple[tuple[Any, ...], float]:
        """Path that a setting lies on in a search, and its penalty there."""

    def _check_parameters(self) -> None:
        """Refuse bad parameters before any work."""
        require_number("tol", self.tol)
        require_number("smoothing", self.smoothing, low=1e-14)
        require_integer("max_iter", self.max_iter)
        require_choice("init", self.init, ("svd", "random"))
        require_choice("unseen_task", self.unseen_task, ("mean", "raise"))
        for name in ("fit_intercept", "standardize"):
            require_flag(name, getattr(self, name))
        self._loss()

    def _loss(self) -> Loss:
        kind = {"classification": self._classification}
        require_choice("loss", self.loss, ("auto", *loss_names(**kind)))
        return loss_of(self.loss, **kind)

    def _schedule(self) -> Schedule:
        return Schedule(
            max_iter=self.max_iter,
            tol=self.tol,
            smoothing=self.smoothing,
            start_smoothing=max(1.0, self.smoothing),
        )

    def _problem(self, data: Observations, columns: OutputColumns, *, fits: int = 1) -> Problem:
        """Rows made ready for so many fits."""
        cells = self._binary(data, columns)
        recipe = self._recipe(cells.n_features, cells.n_tasks)
        problem = build_problem(
            cells,
            self._loss(),
            center=self.fit_intercept,
            standardize=self.standardize,
            scale_target=not self._classification,
            width=recipe.ranks[0],
            # A core without penalty grows where rows hardly see it, and Grams lose its digits.
            grams=recipe.penalties.get("S") != Free(),
            fits=fits,
        )
        return problem if columns.index is None else replace(problem, labels=columns.label)

    def _learn(
        self, data: Observations, columns: OutputColumns, watch: FitProgress = SILENT
    ) -> None:
        kept = Checkpoint.of(self.checkpoint, self, data)
        self._run(self._problem(data, columns), data, columns, kept, watch)

    def _run(
        self,
        problem: Problem,
        data: Observations,
        columns: OutputColumns,
        kept: Checkpoint,
        watch: FitProgress,
    ) -> None:
        """Alternate to the end and keep what came of it.

        A run that was checkpointed goes on from there. Interrupted, the outermost model stays
        where it is, and its checkpoint with it.
        """
        history: list[float] = []
        step: Iteration | None = None
        if found := kept.get("run"):
            seed, history, step = found["seed"], found["history"], found["step"]
            steps = resume(problem.datafit, step, self._schedule())
        else:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            steps = self._steps(problem, self._schedule(), seed)

        def more(step: Iteration) -> bool:
            return not step.converged and step.sweep < self.max_iter

        def fitted(step: Iteration) -> dict[str, Any]:
            model = copy.copy(self)
            model._keep(step, history, problem, data, columns, seed)
            return dict(vars(model))

        try:
            with progress_shown(self.verbose), single_blas():
                for step in watch.iterate(steps, "sweep", more=more, fitted=fitted):
                    history.append(step.objective)
                    logger.info("sweep %d: objective %.10g", step.sweep, step.objective)
                    if step.sweep:
                        kept.save_later("run", {"seed": seed, "history": history, "step": step})
        except KeyboardInterrupt:
            kept.flush()
            if step is None or not watch.is_root:
                raise
            warnings.warn(
                f"Interrupted after sweep {step.sweep}; the model of that sweep is kept.",
                ConvergenceWarning,
                stacklevel=6,
            )
        else:
            kept.finish()
        assert step is not None
        self._keep(step, history, problem, data, columns, seed)
        if not step.converged and step.sweep == self.max_iter:
            warnings.warn(
                f"The objective still fell by more than tol={self.tol:g} (relative) a sweep after "
                f"max_iter={self.max_iter} sweeps; raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=6,
            )

    def _steps(
        self,
        problem: Problem,
        schedule: Schedule,
        seed: int,
        factors: Factors | None = None,
    ) -> Iterator[Iteration]:
        """Yield the fit sweep by sweep, from ``factors`` if given."""
        recipe = self._recipe(problem.datafit.n_features, problem.datafit.n_tasks)
        with single_blas():
            start = start_state(
                problem.datafit,
                recipe,
                schedule,
                like=problem.units.shift,
                init=self.init,
                seed=seed,
                factors=factors,
            )
            yield from alternate(problem.datafit, start, schedule)

    def _relations(self, state: State) -> tuple[Relation, Relation]:
        """Relations between features and between tasks."""
        F, G = state.factors.F, state.factors.G
        one, other = state.penalties["F"], state.penalties["G"]
        return one.relation_of(F, self.smoothing), other.relation_of(G, self.smoothing)

    def _keep(
        self,
        step: Iteration,
        history: list[float],
        problem: Problem,
        data: Observations,
        columns: OutputColumns,
        seed: int,
    ) -> None:
        factors, units = step.state.factors, problem.units
        self._describe(data, columns)
        self.n_iter_ = step.sweep
        self.converged_ = step.converged
        self.objective_history_ = np.array(history)
        self.solver_ = dict(step.solvers)
        self._state, self._units, self._seed = step.state, units, seed
        scale = units.target_scale * units.inverse_scale
        self._widths = self._ranks(*factors.coef_shape)
        self.feature_factor_ = padded(scale[:, None] * factors.F, self._widths[0])
        if factors.S is not None:
            self.core_ = padded(padded(factors.S, self._widths[1]).T, self._widths[0]).T
        self.feature_relation_, self.task_relation_ = self._relations(step.state)
        self._set_linear(units.linear(factors))

    def adapt(
        self,
        X: Any,
        y: Any,
        task: Any = None,
        sample_weight: Any = None,
        *,
        residual: bool = True,
    ) -> Self:
        """Return a model that knows further tasks, learned on the frozen factors.

        Parameters
        ----------
        X, y, task, sample_weight
            Rows of the new tasks, as in ``fit``.
        residual : bool, default=True
            Whether a new task may leave the span of the factors by a ridge residual. Its size is
            set by leave-one-out on the new rows, a model of those rows alone among the
            candidates. False: the paper's transfer step, weights within the span only.

        Returns
        -------
        estimator
            A copy that knows the old and the new tasks.
        """
        data, columns = self._read_new(X, y, task, sample_weight)
        cells = self._binary(data, columns)
        told = Adaptation(self._state, self._units, self._loss(), self._within)
        new = adapt_columns(cells, told, residual=residual)
        return self._joined(data, columns, new)

    def _within(
        self, fit: RowsDatafit, state: State, whitening: Array | None
    ) -> tuple[Array, Array]:
        """Task factor and intercepts of new tasks without a residual."""
        return within_span(fit, state, whitening)
