"""Search over penalties and ranks: folds, held-out losses of many settings, the best refitted."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from itertools import product
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..engine.progress import SILENT, Checkpoint, FitProgress
from ..linear import OutputColumns
from ..parameters import Doc, Flag, require_integer, require_number
from ..rows.fit_input import FitInput
from ..rows.observations import Observations
from . import fields as of
from .factor_model import adapt
from .task_model import TaskModel

EQUAL = 1e-9
"""Part of the loss by which settings differ that come to the same."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Held-out losses (folds × settings) in squares of ``unit``, and what they were found on."""

    data: Observations
    columns: OutputColumns
    losses: np.ndarray
    weights: np.ndarray
    unit: float
    kept: Checkpoint
    penalties: np.ndarray  # of each setting

    @property
    def mean(self) -> np.ndarray:
        """Mean loss per observation of each setting."""
        return np.average(self.losses, axis=0, weights=self.weights)

    @property
    def best(self) -> int:
        """Setting with the lowest mean; of equals that of the largest penalty.

        Where the others leave no factors on the folds, they may on all rows.
        """
        least = self.mean.min()
        equal = np.flatnonzero(self.mean <= least + EQUAL * abs(least))
        return int(equal[self.penalties[equal].argmax()])


def search(
    schema: TaskModel,
    models: Sequence[TaskModel],
    rows: FitInput,
    *,
    cv: Any,
    warm: bool = True,
    n_jobs: int | None = None,
    checkpoint: str | None = None,
    watch: FitProgress = SILENT,
) -> SearchResult:
    """Held-out losses of models of one kind that differ in penalties and ranks only.

    ``schema`` learns the columns. Interrupted, only a search that is watched keeps its folds.
    """
    from .grid import Fold, Grid

    for model in models:
        model._check_parameters()
    data = rows.read(schema)
    rows, data = rows.nearby(schema, data)
    unit = 1.0 if schema._classification else schema._loss().held_out_unit(data)
    n_jobs = None if data.on_device else n_jobs  # Processes would each copy the rows.

    def folds() -> Iterator[Fold]:
        for split in rows.splits(schema, cv):
            train, test = (
                rows.take(part).read(models[0], classes=data.classes, partial=True)
                for part in split
            )
            yield Fold.of(models, train, test, unit)

    columns = OutputColumns.of(data)
    size = data.n_features, len(columns.task)
    kept = Checkpoint.of(checkpoint, schema, data)
    with rows.side_by_side(n_jobs) as jobs:
        losses, weights = Grid(models, size, folds, jobs, kept, watch).losses(warm=warm)
    penalties = np.array([model._algorithm.place()[1] for model in models])
    return SearchResult(data, columns, losses, weights, unit, kept, penalties)


ALPHAS = (1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)

Alphas = Annotated[
    Sequence[float],
    Doc(
        "Values of ``alpha_task`` to choose from.",
        "sequence of float",
        "half decades from 1e-3 to 1e3",
    ),
]
WarmPath = Annotated[
    Flag,
    Doc(
        "Whether to screen the settings first by rough fits, each starting from the one before "
        "along ``alphas``. The best of each path and the best few of all are then fitted anew, so "
        "the winner's score is that of a separate fit; the scores of the others are rough. False: "
        "all are separate fits. So they are in any case where small fits go through in batches: "
        "regression with relations on both factors, few features and tasks, or rows on a device."
    ),
]


@dataclass(eq=False, repr=False)
class CrossValidated(TaskModel):
    """Abstract search over penalties and ranks, which predicts as the best setting refitted.

    Attributes
    ----------
    best_estimator_ : estimator
        The model of the chosen setting, fitted to all rows; all else that a fitted model has is
        taken from there.
    alpha_task_ : float
        The chosen penalty.
    best_params_ : dict
        The chosen setting.
    best_score_ : float
        Its mean held-out loss per observation, negative: higher is better.
    cv_results_ : dict
        Settings under "params", their scores under "mean_test_score" and "std_test_score".
    """

    _: KW_ONLY
    alphas: Alphas = ALPHAS
    cv: of.Folds = 5
    warm_path: WarmPath = True
    n_jobs: of.Jobs = None
    alpha_feature: of.AlphaFeature = 0.1
    shared: of.Shared = False
    alpha_shared: of.AlphaShared = 1.0
    loss: of.Loss = "auto"
    fit_intercept: of.FitIntercept = True
    standardize: of.Standardize = "auto"
    init: of.Init = "svd"
    smoothing: of.Smoothing = 0.01
    max_iter: of.MaxIter = 200
    tol: of.Tol = 1e-4
    random_state: of.RandomState = None
    checkpoint: of.Checkpoint = None

    _plain_class: ClassVar[type[TaskModel]]

    def __getattr__(self, name: str) -> Any:
        if "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "best_estimator_" in vars(self)

    def _cached_clusters(self, side: str) -> np.ndarray:
        return self.best_estimator_._cached_clusters(side)

    @wraps(adapt)
    def adapt(self, *rows: Any, **options: Any) -> Self:
        check_is_fitted(self)
        model = copy.copy(self)
        model.best_estimator_ = adapt(self.best_estimator_, *rows, **options)
        return model

    def _grid(self) -> list[dict[str, Any]]:
        """All settings, in the order of ``alphas`` within each choice of ranks."""
        ranks, names = [], self._algorithm.rank_names
        for name in names:
            value = getattr(self, name)
            several = value if isinstance(value, list | tuple | np.ndarray) else [value]
            if not len(several):
                raise ValueError(f"{name} is empty; give at least one number of columns.")
            ranks.append([require_integer(name, entry) for entry in several])
        if np.ndim(self.alphas) != 1 or not len(self.alphas):
            raise ValueError("alphas must be a sequence of at least one penalty.")
        alphas = [require_number("alphas", alpha) for alpha in self.alphas]
        return [
            {**dict(zip(names, choice, strict=True)), "alpha_task": alpha}
            for choice in product(*ranks)
            for alpha in alphas
        ]

    def _fit(self, rows: FitInput, watch: FitProgress) -> None:
        """Choose the setting by cross-validation and fit it to all rows."""
        grid = self._grid()
        own, plain = self.get_params(deep=False), self._plain_class
        taken = {name: own[name] for name in plain().get_params() if name in own}
        models = [plain(**{**taken, **setting}) for setting in grid]
        options = {"cv": self.cv, "warm": self.warm_path, "n_jobs": self.n_jobs}
        found = search(self, models, rows, checkpoint=self.checkpoint, watch=watch, **options)
        best, data, columns = found.best, found.data, found.columns
        refitted = models[best]
        for name in ("n_features_in_", "feature_names_in_"):
            if name in vars(self):
                setattr(refitted, name, getattr(self, name))
        attributes = dict(vars(self))

        def described(model: TaskModel) -> dict[str, Any]:
            return {**attributes, "best_estimator_": model}

        refitted._algorithm.learn(data, columns, watch, kept=found.kept, described=described)
        self.best_estimator_ = refitted
        self.best_params_ = grid[best]
        # Settings that an interruption left out have an infinite loss.
        with np.errstate(over="ignore", invalid="ignore"):
            score = -found.mean * found.unit * found.unit
            spread = found.losses.std(axis=0) * found.unit * found.unit
        self.best_score_ = float(score[best])
        self.alpha_task_ = grid[best]["alpha_task"]
        self.cv_results_ = {"params": grid, "mean_test_score": score, "std_test_score": spread}

    def _restore(self, state: dict[str, Any]) -> None:
        if "best_estimator_" not in state:
            state = self._with_best(state)
        self._take_state(state, {"best_estimator_": self._plain_class, "best_params_": dict})

    def _with_best(self, state: dict[str, Any]) -> dict[str, Any]:
        """State of a file of an earlier version, where it held what the best model learned."""
        chosen = ("alpha_task_", "best_params_", "best_score_", "cv_results_")
        schema = ("n_features_in_", "feature_names_in_")
        own = {*self._get_param_names(), *chosen}
        mine = {name: part for name, part in state.items() if name in own or name in schema}
        names = self._plain_class().get_params()
        parts = {name: part for name, part in state.items() if name in names or name not in own}
        best: TaskModel = object.__new__(self._plain_class)
        best._restore({**parts, **state["best_params_"]})
        return {**mine, "best_estimator_": best}
