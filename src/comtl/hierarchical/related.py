"""Models of tasks that are related through all features alike, for wide data."""

from __future__ import annotations

import numpy as np

from ..arrays import DENSE_BYTES, DENSE_SIDE, segment_sum
from ..losses import Loss, Squared
from ..outputs import ClassifierOutputs, RegressorOutputs
from ..parameters import require_flag, require_integer, require_number
from ..predictor import LinearTasks
from ..problem import Columns
from ..progress import UNWATCHED, Watch
from ..task_data import TaskData
from ..training import CellModel
from .centred_rows import CentredRows
from .population import Population
from .ridge_evidence import ridge_scales
from .task_covariance import leading, solve_related, task_relation


class RelatedTasks(CellModel):
    """Abstract model whose tasks' weights have one covariance between tasks in every feature."""

    def __init__(
        self,
        n_components: int = 2,
        *,
        rest: float = 0.5,
        noise: float = 3.0,
        standardize: bool = False,
        task_column: str | int | None = None,
        unseen_task: str = "mean",
    ) -> None:
        self.n_components = n_components
        self.rest = rest
        self.noise = noise
        self.standardize = standardize
        self.task_column = task_column
        self.unseen_task = unseen_task

    def _check_parameters(self) -> None:
        require_integer("n_components", self.n_components, low=0)
        require_number("rest", self.rest)
        require_number("noise", self.noise)
        require_flag("standardize", self.standardize)

    def _loss(self) -> Loss:
        return Squared()

    def _learn(self, data: TaskData, columns: Columns, watch: Watch = UNWATCHED) -> None:
        learn_related([self], data, columns)

    def _keep(
        self, population: Population, rows: CentredRows, coef: np.ndarray, means: np.ndarray
    ) -> None:
        units = population.units
        self._units, self._seed = units, 0
        scale = units.target_scale * units.inverse_scale
        scores = rows.plain_scores(coef)
        share = rows.root**2
        intercepts = means - segment_sum(share * scores, rows.offsets) / rows.totals
        intercepts = units.target_shift + units.target_scale * intercepts
        linear = LinearTasks.of_weights(coef * scale, intercepts)
        self._widths = linear.directions.shape[1], linear.directions.shape[1]
        self._set_linear(linear)

    def _clusters(self) -> tuple[int | None, int | None]:
        return None, None


def learn_related(models: list[RelatedTasks], data: TaskData, columns: Columns) -> None:
    """Fit several models to the same cells; rows and moments are shared."""
    if not models:
        return
    first = models[0]
    population = Population.of(
        first._binary(data, columns),
        standardize=first.standardize,
        classification=first._classification,
    )
    cells = population.cells
    rows = CentredRows(population.row_design, cells.weights, cells.offsets)
    target = rows.center(rows.root * population.target)
    means = segment_sum(cells.weights * population.target, cells.offsets) / rows.totals
    size, noise = ridge_scales(rows, target)
    relation = np.zeros((len(means), len(means)))
    if any(model.n_components for model in models):
        relation = task_relation(rows, target, size, noise)
    for model in models:
        directions = leading(relation, model.n_components)
        coef = solve_related(rows, target, directions, model.rest * size, model.noise * noise)
        model._describe(data, columns)
        model._keep(population, rows, coef, means)


def has_room(n_features: int, n_tasks: int) -> bool:
    """Whether weights of all tasks, and a relation of all to all, may be held as tables."""
    return n_tasks <= DENSE_SIDE and 8 * n_features * n_tasks <= DENSE_BYTES


class RelatedRegressor(RegressorOutputs, RelatedTasks):
    """Values of tasks that are related through all features alike.

    Parameters
    ----------
    n_components : int, default=2
        Directions of the covariance between tasks; 0 for tasks on their own.
    rest : float, default=0.5
        What tasks have of their own, over the variance of weights of tasks on their own.
    noise : float, default=3.0
        Noise over its estimate from tasks on their own, which is low where features of more
        weight are also the more frequent ones.
    standardize : bool, default=False
        Whether to scale features to unit variance inside.
    task_column, unseen_task
        As in the other estimators.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.hierarchical.related import RelatedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(120, 200)), np.repeat(np.arange(4), 30)
    >>> y = X[:, :3].sum(axis=1) * np.array([1.0, -1.0, 1.0, -1.0])[task]
    >>> coef = RelatedRegressor(1).fit(X, y, task=task).coef_[:, 0]
    >>> np.sign(coef)
    array([ 1., -1.,  1., -1.])
    """


class RelatedClassifier(ClassifierOutputs, RelatedTasks):
    """Classes of tasks that are related through all features alike, by squared loss.

    Parameters
    ----------
    n_components, rest, noise, standardize, task_column, unseen_task
        As in :class:`RelatedRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.hierarchical.related import RelatedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(120, 200)), np.repeat(np.arange(4), 30)
    >>> y = X[:, :3].sum(axis=1) * np.array([1.0, -1.0, 1.0, -1.0])[task] > 0
    >>> RelatedClassifier(1).fit(X, y, task=task).score(X, y, task=task) > 0.8
    True
    """
