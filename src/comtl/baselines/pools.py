"""A small pool of models: tasks hold shares of them (CMTL), or each takes the best (SHAMO)."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated

import numpy as np

from ..arrays import Array, asarray_like, namespace, take, to_numpy
from ..clusters import cluster_rows
from ..datafits.datafit import Datafit
from ..datafits.rows_datafit import RowsDatafit
from ..engine.problem import Problem
from ..engine.recipe import Iteration, Schedule
from ..factors import Factors, State
from ..models import fields as of
from ..models.factor_model import FactorFit, adapt
from ..models.outputs import ClassifierOutputs, RegressorOutputs
from ..models.task_model import TaskModel
from ..parameters import Count, Doc, NonNegative, documented
from ..penalties import Penalty, Ridge, Simplex
from ..penalties.constraints import indicators
from .direct import close, exact
from .pooled import IndependentFit


class PoolFit(FactorFit):
    """A pool of models, each task holding shares of them."""

    rank_names = ("n_clusters",)

    def ranks(self, n_features: int, n_columns: int) -> tuple[int, int]:
        count = min(self.clusters()[0], n_columns)
        return count, count

    def penalties(self) -> dict[str, Penalty]:
        return {"F": Ridge.of_strength(self.model.alpha), "G": Simplex()}

    def schedule(self) -> Schedule:
        return replace(super().schedule(), inner=close(self.model.tol))


def largest_share(model: TaskModel) -> np.ndarray:
    """Model of the pool of which each task holds the largest share."""
    linear = model._linear
    shares = to_numpy(linear.columns.by_task(linear.weights.task_factor))
    return shares.reshape(len(model.tasks_), -1).argmax(axis=1) % shares.shape[-1]


Clusters = Annotated[Count, Doc("Models in the pool; capped at the number of tasks.")]
Alpha = Annotated[NonNegative, Doc("Ridge penalty of the models.")]


@dataclass(eq=False, repr=False)
class Clustered(TaskModel):
    """Abstract model of relaxed task clusters."""

    n_clusters: Clusters = 5
    _: KW_ONLY
    alpha: Alpha = 1.0
    loss: of.Loss = "auto"
    fit_intercept: of.PlainIntercept = True
    standardize: of.Standardize = "auto"
    max_iter: of.MaxIter = 500
    tol: of.Tol = 1e-5
    random_state: of.RandomState = None

    _algorithm_class = PoolFit

    adapt = adapt

    task_clusters_ = property(largest_share)


@documented
class ClusteredRegressor(RegressorOutputs, Clustered):
    r"""Multitask learning by clustering (CMTL, Barzilai and Crammer), relaxed to shares.

    .. math:: \min \sum_i ω_i (y_i - x_i^\top F g_{t(i)} - b_{t(i)})^2 + α \|F\|_F^2,
        \quad g_t \ge 0,\ \sum_k g_{tk} = 1

    solved by projected gradients over ``G`` and conjugate gradients over ``F`` in turn.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import ClusteredRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(400, 2)), np.repeat(np.arange(10), 40)
    >>> y = np.where(task < 5, X[:, 0], -X[:, 1]) + 0.1 * rng.normal(size=400)
    >>> ClusteredRegressor(2).fit(X, y, task=task).task_factor_.round(1) + 0.0
    array([[1., 0.],
           [1., 0.],
           [1., 0.],
           [1., 0.],
           [1., 0.],
           [0., 1.],
           [0., 1.],
           [0., 1.],
           [0., 1.],
           [0., 1.]])
    """


@documented
class ClusteredClassifier(ClassifierOutputs, Clustered):
    r"""Multitask learning by clustering for classes; see :class:`ClusteredRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import ClusteredClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    >>> y = X[:, 0] > 0
    >>> ClusteredClassifier(1).fit(X, y, task=task).score(X, y, task=task) > 0.9
    True
    """


class SharedPoolFit(PoolFit):
    """A pool with one model for each task."""

    def steps(
        self, problem: Problem, schedule: Schedule, seed: int, factors: Factors | None = None
    ) -> Iterator[Iteration]:
        """Yield the best of several runs, round by round; earlier factors have no part in it."""
        rounds, rng = Rounds(problem, self), np.random.default_rng(seed)
        starts = rounds.starts(int(self.model.n_init), rng)
        runs = [list(rounds.run(labels, schedule)) for labels in starts]
        yield from min(runs, key=lambda run: run[-1].objective)

    def within(
        self, fit: RowsDatafit, state: State, whitening: Array | None
    ) -> tuple[Array, Array]:
        """Give each new task the model of the pool that fits it best, intercept and all."""
        point = state.factors
        xp = namespace(point.G)
        intercepts = xp.take(point.intercepts, xp.argmax(point.G, axis=0), axis=0)
        best = to_numpy(fit.losses(point.F.T, intercepts)).argmin(axis=1)
        return indicators(best, point.G), take(intercepts, best)


@dataclass(eq=False, repr=False)
class SharedPool(TaskModel):
    """Abstract pool with one model for each task."""

    n_clusters: Clusters = 5
    _: KW_ONLY
    alpha: Alpha = 1.0
    n_init: Annotated[Count, Doc("Starts, of which the best is kept.")] = 5
    loss: of.Loss = "auto"
    fit_intercept: of.PlainIntercept = True
    standardize: of.Standardize = "auto"
    max_iter: of.MaxIter = 100
    tol: of.Tol = 1e-8
    random_state: of.RandomState = None

    _algorithm_class = SharedPoolFit

    adapt = adapt

    task_clusters_ = property(largest_share)


@dataclass(frozen=True)
class Rounds:
    """Rounds of assigning tasks to models and fitting the models anew."""

    problem: Problem
    fit: SharedPoolFit

    @property
    def count(self) -> int:
        """Models in the pool."""
        return self.fit.ranks(self.datafit.n_features, self.datafit.n_tasks)[0]

    @property
    def datafit(self) -> Datafit:
        return self.problem.datafit

    def models(self, datafit: Datafit) -> State:
        """One ridge model for each task of a datafit."""
        model = self.fit.model
        recipe = IndependentFit(model).recipe(datafit.n_features, datafit.n_tasks)
        schedule = Schedule(max_iter=50, tol=model.tol, inner=exact(model.tol))
        *_, step = replace(self.problem, datafit=datafit).sweeps(recipe, schedule)
        return step.state

    def starts(self, number: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Yield labels to start from: clusters of the tasks' own models, then some of these."""
        own = self.models(self.datafit).factors
        weights, intercepts = own.coef.T, own.intercepts
        # Weights and losses are small: k-means and assignments are those of the host.
        yield cluster_rows(to_numpy(weights), self.count, int(rng.integers(2**31 - 1)))
        for _ in range(number - 1):
            seeds = rng.choice(weights.shape[0], self.count, replace=False)
            losses = self.datafit.losses(take(weights, seeds), take(intercepts, seeds))
            yield to_numpy(losses).argmin(axis=1)

    def run(self, labels: np.ndarray, schedule: Schedule) -> Iterator[Iteration]:
        """Yield round after round until no task moves."""
        step, losses = self._round(0, labels)
        yield step
        for sweep in range(1, schedule.max_iter + 1):
            better = losses.argmin(axis=1)
            if np.array_equal(better, labels):
                yield replace(step, sweep=sweep, converged=True)
                return
            before, labels = step.objective, self._without_gaps(better, losses)
            step, losses = self._round(sweep, labels)
            if step.objective > before:  # A model for one task alone may cost more than it gains.
                labels = better
                step, losses = self._round(sweep, labels)
            yield step

    def _round(self, sweep: int, labels: np.ndarray) -> tuple[Iteration, np.ndarray]:
        """Best models of an assignment, and the loss of each task under each of them."""
        used, own = np.unique(labels, return_inverse=True)
        alone = self.models(self.datafit.with_tasks_pooled(own, len(used)))
        pool = alone.factors
        # A model without tasks has no rows to learn from: it is zero.
        places = asarray_like(np.eye(self.count)[:, used], pool.F, pool.F.dtype)
        weights, intercepts = places @ pool.coef.T, places @ pool.intercepts
        offset = float(namespace(intercepts).mean(intercepts))
        factors = pool.with_(
            F=weights.T,
            G=indicators(labels, weights.T),
            offset=offset,
            random_intercepts=take(intercepts - offset, labels),
        )
        penalties, fixed = self.fit.penalties(), frozenset({"G"})
        state = alone.with_(factors=factors, penalties=penalties, fixed=fixed)
        value = self.datafit.quadratic_at(state.factors).value + state.regularizer
        losses = to_numpy(self.datafit.losses(weights, intercepts))
        return Iteration(sweep, value, state, {"pool": "assignment"}), losses

    def _without_gaps(self, better: np.ndarray, losses: np.ndarray) -> np.ndarray:
        """Give the models that no task wants to tasks with much loss and company."""
        filled, sizes = better.copy(), np.bincount(better, minlength=self.count)
        order = iter(np.argsort(-losses.min(axis=1), kind="stable"))
        for gap in np.flatnonzero(sizes == 0):
            for task in order:
                if sizes[filled[task]] > 1:
                    sizes[filled[task]] -= 1
                    filled[task] = gap
                    break
        return filled


@documented
class SharedPoolRegressor(RegressorOutputs, SharedPool):
    r"""A pool of models and for each task the one that fits it best (SHAMO, Crammer and Mansour).

    .. math:: \min \sum_i ω_i (y_i - x_i^\top w_{k(t)} - b_{k(t)})^2 + α \sum_k \|w_k\|^2

    over the models and the assignment ``k(t)``: models and assignment in turn, as in k-means,
    from several starts.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import SharedPoolRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 2)), np.repeat(np.arange(6), 10)
    >>> y = np.where(task < 3, X[:, 0], X[:, 1])
    >>> SharedPoolRegressor(2, random_state=0).fit(X, y, task=task).task_clusters_
    array([0, 0, 0, 1, 1, 1])
    """


@documented
class SharedPoolClassifier(ClassifierOutputs, SharedPool):
    r"""A pool of models and for each task the best of them; see :class:`SharedPoolRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.baselines import SharedPoolClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(80, 2)), np.repeat(np.arange(4), 20)
    >>> y = np.where(task < 2, X[:, 0], -X[:, 0]) > 0
    >>> SharedPoolClassifier(2, random_state=0).fit(X, y, task=task).score(X, y, task=task) > 0.9
    True
    """
