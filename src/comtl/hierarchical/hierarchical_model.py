"""What the hierarchical estimators share: parameters, the fit, new tasks, error bars."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..arrays import asarray_like, on_device
from ..engine.problem import OutputColumns
from ..engine.progress import SILENT, FitProgress, logger, progress_shown
from ..linear import LinearTasks
from ..models.training import CellModel
from ..parameters import require_choice, require_flag, require_integer, require_number
from ..rows.blocks import single_blas
from ..rows.observations import Observations
from .covariances import COVARIANCE_FAMILIES, STRUCTURES, CovarianceFamily
from .em import EMIteration, fit_em
from .likelihoods import Likelihood
from .population import Population, check_size, population_of
from .posterior import Prior


class HierarchicalModel(CellModel):
    """Abstract model of tasks as draws from one population."""

    _priors: list[Prior]
    _on_devices = True
    _levels_tell = True

    def __init__(
        self,
        structure: str = "full",
        *,
        n_components: int = 2,
        prior_weight: float | None = None,
        shrink_common: bool = False,
        standardize: bool = True,
        task_column: str | int | None = None,
        unseen_task: str = "mean",
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.structure = structure
        self.n_components = n_components
        self.prior_weight = prior_weight
        self.shrink_common = shrink_common
        self.standardize = standardize
        self.task_column = task_column
        self.unseen_task = unseen_task
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    @abstractmethod
    def _likelihood(self, population: Population) -> Likelihood:
        """How the rows bear on the effects."""

    def _check_parameters(self) -> None:
        require_choice("structure", self.structure, STRUCTURES)
        require_integer("n_components", self.n_components)
        if self.prior_weight is not None:
            require_number("prior_weight", self.prior_weight)
        require_flag("shrink_common", self.shrink_common)
        require_flag("standardize", self.standardize)
        require_integer("max_iter", self.max_iter)
        require_number("tol", self.tol)
        require_choice("unseen_task", self.unseen_task, ("mean", "raise"))

    @property
    def _covariance_family(self) -> CovarianceFamily:
        return COVARIANCE_FAMILIES[self.structure](self.n_components, self.prior_weight)

    def _population(self, data: Observations, columns: OutputColumns) -> Population:
        """Rows in the units of the fit."""
        cells = self._binary(data, columns)
        check_size(cells.n_tasks, cells.n_features, type(self).__name__)
        return population_of(
            cells, standardize=self.standardize, classification=self._classification
        )

    def _learn(
        self, data: Observations, columns: OutputColumns, watch: FitProgress = SILENT
    ) -> None:
        populations = populations_of(self._population(data, columns), columns)
        self._fit_em(populations, data, columns, watch=watch)

    def _fit_em(
        self,
        populations: Sequence[Population],
        data: Observations,
        columns: OutputColumns,
        starts: Sequence[Prior | None] = (),
        *,
        watch: FitProgress = SILENT,
    ) -> None:
        """Raise the marginal likelihood to its top, for every class on its own.

        ``starts`` holds the outcome of simpler fits, where there are some.
        """
        stages, history = [], []
        with progress_shown(self.verbose), single_blas():
            for own, start in zip(populations, starts or [None] * len(populations), strict=True):
                steps = fit_em(
                    self._likelihood(own),
                    self._covariance_family,
                    own.size,
                    shrink_common=self.shrink_common,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    start=start,
                )
                path, stage = self._watched(steps, watch)
                stages.append(stage)
                history.append(path)
        self._keep(stages, history, populations[0], data, columns)

    def _watched(self, steps: Any, watch: FitProgress) -> tuple[list[float], EMIteration]:
        path: list[float] = []
        stage: EMIteration | None = None
        try:
            for stage in watch.iterate(steps, "step", more=lambda one: not one.converged):
                path.append(stage.objective)
                logger.info("step %d: log marginal likelihood %.10g", stage.step, stage.objective)
        except KeyboardInterrupt:
            if stage is None or not watch.is_root:
                raise
            warnings.warn(
                f"Interrupted after step {stage.step}; the model of that step is kept.",
                ConvergenceWarning,
                stacklevel=7,
            )
            return path, stage
        assert stage is not None
        if not stage.converged:
            warnings.warn(
                f"The evidence still rose by more than tol={self.tol:g} a row after "
                f"max_iter={self.max_iter} steps; raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=7,
            )
        return path, stage

    def _keep(
        self,
        stages: list[EMIteration],
        history: list[list[float]],
        population: Population,
        data: Observations,
        columns: OutputColumns,
    ) -> None:
        self._describe(data, columns)
        self._priors, self._units, self._seed = [s.prior for s in stages], population.units, 0
        self.n_iter_ = max(stage.step for stage in stages)
        self.converged_ = all(stage.converged for stage in stages)
        self.log_evidence_ = sum(stage.posterior.log_evidence for stage in stages)
        longest = max(map(len, history))
        paths = [path + path[-1:] * (longest - len(path)) for path in history]
        self.objective_history_ = np.sum(paths, axis=0)
        weights = np.empty((len(columns.task), population.size[1] + 1))
        common = np.zeros(population.size[1])
        for part, stage in zip(groups_of(columns), stages, strict=True):
            weights[part] = stage.posterior.weights
            common += stage.posterior.mean[:-1] * len(part) / len(weights)
        self._set_weights(weights, common)

    def _set_weights(self, weights: np.ndarray, common: np.ndarray) -> None:
        """Keep weights of the standardised rows, the intercept last, in the user's units."""
        units = self._units
        if on_device(units.shift):
            weights, common = (
                asarray_like(w, units.shift, units.shift.dtype) for w in (weights, common)
            )
        scale = units.target_scale * units.inverse_scale
        intercepts = units.intercepts(weights[:, -1], weights[:, :-1] @ units.shift)
        linear = LinearTasks.of_weights(weights[:, :-1] * scale, intercepts, common * scale)
        self._widths = linear.directions.shape[1], linear.directions.shape[1]
        self._set_linear(linear)

    def _clusters(self) -> tuple[int | None, int | None]:
        return None, None


def groups_of(columns: OutputColumns) -> list[np.ndarray]:
    """Columns of weights that come from one population: all, or beyond two classes each class."""
    if columns.index is None:
        return [np.arange(len(columns.task))]
    return [np.flatnonzero(columns.label == label) for label in np.unique(columns.label)]


def populations_of(population: Population, columns: OutputColumns) -> list[Population]:
    """The population, or beyond two classes that of each class."""
    if columns.index is None:
        return [population]
    return [population.of_columns(part) for part in groups_of(columns)]
