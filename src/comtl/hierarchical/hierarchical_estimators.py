"""The hierarchical regressor and classifier: parameters, the fit, new tasks, error bars."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import zip_longest
from typing import Annotated, Any, Self

import numpy as np
from scipy import sparse
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from ..arrays import DENSE_BYTES, DENSE_SIDE, asarray_like, namespace, on_device, with_ones
from ..arrays.blocks import single_blas
from ..engine.progress import SILENT, FitProgress, logger
from ..linear import ColumnWeights, OutputColumns
from ..losses import Logistic, Loss, Squared
from ..models.factor_model import adapt
from ..models.outputs import ClassifierOutputs
from ..models.task_model import TaskModel
from ..parameters import (
    Count,
    Doc,
    Flag,
    NonNegative,
    documented,
    one_of,
    require_choice,
    require_number,
    require_scaling,
)
from ..phrases import warn_caller
from ..rows.observations import Observations
from .covariances import COVARIANCE_FAMILIES, CovarianceFamily
from .em import EMIteration, fit_em
from .intervals_mixin import IntervalMixin, predictive_variance
from .likelihoods import Gaussian, Likelihood
from .population import Population
from .posterior import Posterior, Prior

MOST_COMMON = 1000
"""Effects up to which a model keeps their covariance for new tasks."""


@dataclass(eq=False, repr=False)
class HierarchicalModel(TaskModel):
    """Abstract model of tasks as draws from one population.

    Attributes
    ----------
    log_evidence_ : float
        Logarithm of the restricted likelihood, or its bound for classes, in standardised units.
    objective_history_ : ndarray of shape (n_steps + 1,)
        Log marginal likelihood plus log priors at the start and after each step; never falls.
    n_iter_, converged_ : int, bool
        Steps done, and whether they came to an end.
    """

    structure: Annotated[
        str,
        partial(require_choice, choices=COVARIANCE_FAMILIES),
        Doc(
            "Covariance of the random effects: an intercept only; slopes of one variance; of "
            "one variance each; any covariance, with a prior about the isotropic one; or some "
            "directions in common and one variance around them."
        ),
    ] = "full"
    _: KW_ONLY
    n_components: Annotated[Count, Doc('Directions of the structure "factor".')] = 2
    prior_weight: Annotated[
        float | None,
        require_number,
        Doc("How many tasks the prior of a full covariance counts for; None: as many as features."),
    ] = None
    shrink_common: Annotated[
        Flag,
        Doc(
            "Whether the common slopes are shrunk to zero, by a variance that the marginal "
            "likelihood chooses. False leaves them free, as in a mixed model, where there are ten "
            "rows or more for each."
        ),
    ] = False
    standardize: Annotated[
        bool | str,
        require_scaling,
        Doc(
            'Whether to scale features to unit variance inside. "auto": indicators, columns of two '
            "values, share half their range as a unit. False: features keep their spread, so that "
            "wide columns may count for more. Weights are reported in the units given.",
            "bool or str",
        ),
    ] = "auto"
    max_iter: Annotated[Count, Doc("Most steps.")] = 500
    tol: Annotated[
        NonNegative,
        Doc(
            "Stop once the log marginal likelihood can rise by no more than this for each row, by "
            "how fast its gains fall."
        ),
    ] = 1e-6

    _levels_tell = True

    @abstractmethod
    def _likelihood(self, population: Population) -> Likelihood:
        """Likelihood of the rows given the effects."""

    @property
    def _covariance_family(self) -> CovarianceFamily:
        return COVARIANCE_FAMILIES[self.structure](self.n_components, self.prior_weight)

    def _population(self, data: Observations, columns: OutputColumns) -> Population:
        """Rows in the units of the fit."""
        obs: Any = self._binary(data, columns)
        if self._has_no_room(obs):
            raise ValueError(
                f"X has {obs.n_features} features and there are {obs.n_tasks} tasks, too many "
                f"for the covariances of {type(self).__name__}: leave out features or project them "
                "first (for text: TruncatedSVD), or use BiFactor models, which have no such limit."
            )
        make = obs.population if obs.partitioned else partial(Population.of, obs)
        return make(standardize=self.standardize, classification=self._classification)

    def _has_no_room(self, obs: Any) -> bool:
        features, tasks = obs.n_features, obs.n_tasks
        if not too_wide(features, tasks):
            return False
        if obs.partitioned or on_device(obs.X) or self._covariance_family.variances == "matrix":
            return True
        # The rows themselves, and products of the features or the rows, whichever are fewer.
        rows, longest = obs.offsets[-1], np.diff(obs.offsets).max(initial=1)
        given = 0 if sparse.issparse(obs.X) else obs.X.nbytes
        room = max(DENSE_BYTES, given)
        small = 8 * min(features, rows) ** 2 <= DENSE_BYTES
        return bool(longest > features + 1 or not small or 8 * rows * (features + 1) > 2 * room)

    def _learn(
        self, data: Observations, columns: OutputColumns, watch: FitProgress = SILENT
    ) -> None:
        populations = populations_of(self._population(data, columns), columns)
        stages = self._fit_em(populations, data, columns, watch=watch)
        if not self._classification:  # Intervals need a square of the features for every task.
            with single_blas():
                self._spread = predictive_variance(stages[0])

    def _fit_em(
        self,
        populations: Sequence[Population],
        data: Observations,
        columns: OutputColumns,
        starts: Sequence[Prior] = (),
        *,
        warm: Sequence[Prior] = (),
        watch: FitProgress = SILENT,
    ) -> list[EMIteration]:
        """Maximise the marginal likelihood, class by class, from starts if any; keep the model.

        ``warm``: the ``_priors`` of the same model fitted to more rows; steps start right there.
        """
        stages, history = [], []
        with single_blas():
            for population, start, known in zip_longest(populations, starts, warm):
                steps = fit_em(
                    self._likelihood(population),
                    self._covariance_family,
                    shrink_common=self.shrink_common,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    start=start,
                    warm=known,
                )
                path, stage = self._watched(steps, watch)
                stages.append(stage)
                history.append(path)
        # What the steps came to, in the user's units.
        self._priors = [stage.prior for stage in stages]
        # Of the common effects, for new tasks.
        self._common = [known_common(one.posterior) for one in stages]
        self.n_iter_ = max(stage.step for stage in stages)
        self.converged_ = all(stage.converged for stage in stages)
        self.log_evidence_ = sum(stage.posterior.log_evidence for stage in stages)
        longest = max(map(len, history))
        paths = [path + path[-1:] * (longest - len(path)) for path in history]
        self.objective_history_ = np.sum(paths, axis=0)
        units, size = populations[0].units, len(stages[0].posterior.mean)
        weights, common = np.empty((len(columns.task), size)), np.zeros(size - 1)
        for part, stage in zip(groups_of(columns), stages, strict=True):
            weights[part] = stage.posterior.weights
            common += stage.posterior.mean[:-1] * len(part) / len(weights)
        shift = units.shift
        if on_device(shift):
            weights, common = (asarray_like(part, shift, shift.dtype) for part in (weights, common))
        scale = units.target_scale * units.inverse_scale
        intercepts = units.intercepts(weights[:, -1], weights[:, :-1] @ shift)
        separated = ColumnWeights.of_coef(weights[:, :-1] * scale, intercepts, common * scale)
        self._keep_weights(data, columns, separated, units)
        return stages

    adapt = adapt
    _gathers_new_rows = True

    def _adapted(self, data: Observations, columns: OutputColumns, *, residual: bool) -> Self:
        # Here, since a model that only predicts needs none of it.
        from .new_tasks import adapted

        return adapted(self, data, columns)

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
            warn_caller(
                f"Interrupted after step {stage.step}; the model of that step is kept.",
                ConvergenceWarning,
            )
            return path, stage
        assert stage is not None
        if not stage.converged:
            warn_caller(
                f"The log marginal likelihood still rose by more than tol={self.tol:g} a row after "
                f"max_iter={self.max_iter} steps; raise max_iter or tol.",
                ConvergenceWarning,
            )
        return path, stage


def known_common(posterior: Posterior) -> tuple[np.ndarray, np.ndarray | None]:
    """Mean and covariance of the common effects; of very many not the covariance."""
    wide = len(posterior.mean) > MOST_COMMON
    return posterior.mean, None if wide else posterior.common.covariance


def too_wide(n_features: int, n_tasks: int) -> bool:
    """Whether there are more features than covariances of all tasks have room for."""
    return n_features > DENSE_SIDE or 8 * n_tasks * (n_features + 1) ** 2 > DENSE_BYTES


def groups_of(columns: OutputColumns) -> list[np.ndarray]:
    """Columns of weights that come from one population: all, or beyond two classes each class."""
    return [np.flatnonzero(group) for group in columns.groups if group.any()]


def populations_of(population: Population, columns: OutputColumns) -> list[Population]:
    """The population, or beyond two classes that of each class."""
    if columns.index is None:
        return [population]
    return [population.of_columns(part) for part in groups_of(columns)]


@documented
@dataclass(eq=False, repr=False)
class HierarchicalRegressor(IntervalMixin, HierarchicalModel):
    r"""Tasks as draws from one population that the data reveal; no penalty to choose.

    .. math:: y = x^\top (w_0 + u_t) + b + b_t + e, \quad u_t \sim N(0, B),
        \quad b_t \sim N(0, s^2), \quad e \sim N(0, σ^2)

    The covariance ``B`` of the random slopes, the variance of the random intercepts and that of the
    noise maximise the restricted likelihood (REML): a mixed model with random slopes of every
    feature. Weights are posterior means, and their covariance gives error bars.

    Attributes
    ----------
    noise_variance_ : float or ndarray of shape (n_tasks,)
        Variance of a target about its score.
    intercept_variance_ : float
        Variance of the intercepts between tasks, at the mean of the features.
    slope_covariance_ : ndarray of shape (n_features, n_features)
        Covariance of the slopes between tasks.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import HierarchicalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(300, 3)), np.repeat(np.arange(20), 15)
    >>> y = X[:, 0] + rng.normal(size=20)[task] + rng.normal(size=300)
    >>> model = HierarchicalRegressor("isotropic").fit(X, y, task=task)
    >>> bool(np.abs(model.shared_coef_ - [1.0, 0.0, 0.0]).max() < 0.2)
    True
    """

    _: KW_ONLY
    noise: Annotated[
        str,
        one_of("common", "task"),
        Doc("Whether tasks have one variance of noise, or each its own about a common level."),
    ] = "common"

    def _loss(self) -> Loss:
        return Squared()

    def _likelihood(self, population: Population) -> Likelihood:
        return Gaussian(self.noise == "task", population.task_data)

    @property
    def noise_variance_(self) -> float | np.ndarray:
        """Variance of a target about its score; with ``noise="task"`` one for each task."""
        prior, scale = self._priors[0], self._units.target_scale**2
        return scale * (prior.noise if self.noise == "task" else prior.residual_variance)

    @property
    def intercept_variance_(self) -> float:
        """Variance of the intercepts between tasks, at the mean of the features."""
        return float(self._units.target_scale**2 * self._priors[0].covariance.own[-1])

    @property
    def slope_covariance_(self) -> np.ndarray:
        """Covariance of the slopes between tasks, (n_features, n_features)."""
        scale = self._units.target_scale * self._units.inverse_scale
        covariance = self._priors[0].covariance.matrix[:-1, :-1]
        covariance = asarray_like(covariance, scale, scale.dtype if on_device(scale) else None)
        return scale[:, None] * covariance * scale

    def _deviations(self, X: Any, codes: np.ndarray | None) -> np.ndarray:
        spread = vars(self).get("_spread")
        if spread is None:
            raise ValueError(
                "A member of a stack keeps no error bars: ask the stack for them, or "
                f"fit {self!r} by itself."
            )
        xp = namespace(self._units.shift)
        spread = spread.beside(self._units.shift)
        blocks = [
            spread.variances(with_ones(rows), None if codes is None else codes[obs])
            for obs, rows in self._units.design(X).dense_blocks()
        ]
        return self._units.target_scale * xp.sqrt(xp.concat(blocks, axis=0))

    def _bounds(
        self, X: Any, codes: np.ndarray | None, level: float
    ) -> tuple[np.ndarray, np.ndarray]:
        reach = float(norm.ppf(0.5 + 0.5 * level)) * self._deviations(X, codes)
        return -reach, reach


@documented
class HierarchicalClassifier(ClassifierOutputs, HierarchicalModel):
    r"""Tasks as draws from one population, for classes; see :class:`HierarchicalRegressor`.

    The score of a row gives the log odds of its class. Weights are the most likely ones given the
    covariances, and these maximise the marginal likelihood in the approximation of Laplace. Common
    slopes that are shrunk have a prior that keeps them finite where classes can be separated.
    Beyond two classes every class is a separate population.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import HierarchicalClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(300, 3)), np.repeat(np.arange(20), 15)
    >>> y = X[:, 0] + rng.normal(size=20)[task] + rng.normal(size=300) > 0
    >>> HierarchicalClassifier("isotropic").fit(X, y, task=task).score(X, y, task=task) > 0.7
    True
    """

    def _loss(self) -> Loss:
        return Logistic()

    def _likelihood(self, population: Population) -> Likelihood:
        return population.bernoulli
