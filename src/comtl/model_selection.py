"""Estimators that choose their penalty and ranks by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable

from .base import FactorModel
from .data import TaskData, read_rows, read_training
from .docstrings import documented
from .estimators import (
    BiFactor,
    BiFactorClassifier,
    BiFactorRegressor,
    TriFactor,
    TriFactorClassifier,
    TriFactorRegressor,
)
from .folds import TaskStratifiedKFold
from .frames import read_classes
from .grid import Fold, grid_losses
from .outputs import ClassifierOutputs, RegressorOutputs
from .parameters import require_flag, require_integer, require_number
from .problem import Columns

ALPHAS = (1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


class CrossValidated(FactorModel):
    """Abstract search over penalties and ranks, refitted at the best setting."""

    alphas: Sequence[float]
    cv: Any
    warm_path: bool
    n_jobs: int | None
    _plain_class: ClassVar[type[FactorModel]]
    _rank_names: ClassVar[tuple[str, ...]]

    def _grid(self) -> list[dict[str, Any]]:
        """All settings, in the order of ``alphas`` within each choice of ranks."""
        ranks = []
        for name in self._rank_names:
            value = getattr(self, name)
            several = value if isinstance(value, list | tuple | np.ndarray) else [value]
            if not len(several):
                raise ValueError(f"{name} is empty; give at least one number of columns.")
            ranks.append([require_integer(name, entry) for entry in several])
        if np.ndim(self.alphas) != 1 or not len(self.alphas):
            raise ValueError("alphas must be a sequence of at least one penalty.")
        alphas = [require_number("alphas", alpha) for alpha in self.alphas]
        return [
            {**dict(zip(self._rank_names, choice, strict=True)), "alpha_task": alpha}
            for choice in product(*ranks)
            for alpha in alphas
        ]

    def _plain(self, setting: dict[str, Any]) -> FactorModel:
        """Estimator without search at one setting."""
        own = self.get_params(deep=False)
        taken = {name: own[name] for name in self._plain_class().get_params() if name in own}
        return self._plain_class(**{**taken, **setting})

    def _splits(self, X: Any, y: Any, task: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Row numbers of the folds."""
        rows, labels = read_rows(self, X, task)
        classes = read_classes(y)[0] if self._classification else None
        if isinstance(self.cv, int | np.integer) and not isinstance(self.cv, bool):
            strata = classes if classes is not None and classes.ndim == 1 else None
            splitter = TaskStratifiedKFold(require_integer("cv", self.cv, low=2))
            return list(splitter.split(rows, strata, labels))
        with warnings.catch_warnings():
            # Tasks are offered to every splitter as groups, also to those without use for them.
            warnings.filterwarnings("ignore", "The groups parameter is ignored")
            return list(check_cv(self.cv).split(rows, y, labels))

    def fit(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> Self:
        """Choose the setting by cross-validation and fit it to all rows.

        Parameters
        ----------
        X, y, task, sample_weight
            As in the estimator without search.

        Returns
        -------
        self
            The fitted estimator.
        """
        grid = self._grid()
        require_flag("warm_path", self.warm_path)
        models = [self._plain(setting) for setting in grid]
        for model in models:
            model._check_parameters()
        data = read_training(self, X, y, task, sample_weight, classification=self._classification)
        # Losses are compared in units of the target, whose squares may be out of range.
        unit = 1.0 if self._classification else float(np.abs(data.y).max()) or 1.0

        def folds() -> Iterator[Fold]:
            for split in self._splits(X, y, task):
                train, test = (
                    self._part(part, X, y, task, sample_weight, data.classes) for part in split
                )
                yield Fold.of(models, train, test, unit)

        columns = Columns.of(data)
        size = data.n_features, len(columns.task)
        losses, weights = grid_losses(models, size, folds, warm=self.warm_path, n_jobs=self.n_jobs)
        mean = np.average(losses, axis=0, weights=weights)
        best = int(mean.argmin())
        refitted = models[best]
        refitted._run(refitted._problem(data, columns), data, columns)
        for name, value in vars(refitted).items():
            if name not in refitted.get_params():
                setattr(self, name, value)
        self.best_params_ = grid[best]
        with np.errstate(over="ignore"):
            score, spread = -mean * unit * unit, losses.std(axis=0) * unit * unit
        self.best_score_ = float(score[best])
        self.alpha_task_ = grid[best]["alpha_task"]
        self.cv_results_ = {
            "params": grid,
            "mean_test_score": score,
            "std_test_score": spread,
        }
        return self

    def _part(
        self, rows: np.ndarray, X: Any, y: Any, task: Any, weight: Any, classes: Any
    ) -> TaskData:
        """Cells of some of the rows."""

        def part(item: Any) -> Any:
            if item is None or np.isscalar(item):
                return item
            # Some sparse formats and containers have no index of their own.
            return _safe_indexing(indexable(item)[0], rows)

        return read_training(
            self._plain({}),
            part(X),
            part(y),
            part(task),
            part(weight),
            classification=self._classification,
            classes=classes,
            partial=True,
        )

    # The rest of the model is that of the chosen setting.
    def _chosen(self) -> FactorModel:
        return self._plain(self.best_params_)

    def _clusters(self) -> tuple[int, int]:
        return self._chosen()._clusters()


class BiFactorCV(CrossValidated, BiFactor):
    """Abstract two-factor model with search."""

    _rank_names: ClassVar[tuple[str, ...]] = ("n_components",)

    def __init__(
        self,
        n_components: int | Sequence[int] = 5,
        *,
        alphas: Sequence[float] = ALPHAS,
        cv: Any = 5,
        warm_path: bool = True,
        n_jobs: int | None = None,
        alpha_feature: float = 0.1,
        feature_penalty: str = "relation",
        task_penalty: str = "relation",
        shared: bool = False,
        alpha_shared: float = 1.0,
        loss: str = "auto",
        fit_intercept: bool = True,
        standardize: bool = True,
        task_column: str | int | None = None,
        unseen_task: str = "mean",
        init: str = "svd",
        smoothing: float = 0.01,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components  # type: ignore[assignment]
        self.alphas = alphas
        self.cv = cv
        self.warm_path = warm_path
        self.n_jobs = n_jobs
        self.alpha_feature = alpha_feature
        self.feature_penalty = feature_penalty
        self.task_penalty = task_penalty
        self.shared = shared
        self.alpha_shared = alpha_shared
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.task_column = task_column
        self.unseen_task = unseen_task
        self.init = init
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose


class TriFactorCV(CrossValidated, TriFactor):
    """Abstract three-factor model with search."""

    _rank_names: ClassVar[tuple[str, ...]] = ("n_feature_clusters", "n_task_clusters")

    def __init__(
        self,
        n_feature_clusters: int | Sequence[int] = 5,
        n_task_clusters: int | Sequence[int] = 5,
        *,
        alphas: Sequence[float] = ALPHAS,
        cv: Any = 5,
        warm_path: bool = True,
        n_jobs: int | None = None,
        alpha_feature: float = 0.1,
        core_penalty: str | None = "ridge",
        alpha_core: float = 1.0,
        feature_penalty: str = "relation",
        task_penalty: str = "relation",
        shared: bool = False,
        alpha_shared: float = 1.0,
        loss: str = "auto",
        fit_intercept: bool = True,
        standardize: bool = True,
        task_column: str | int | None = None,
        unseen_task: str = "mean",
        init: str = "svd",
        smoothing: float = 0.01,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_feature_clusters = n_feature_clusters  # type: ignore[assignment]
        self.n_task_clusters = n_task_clusters  # type: ignore[assignment]
        self.alphas = alphas
        self.cv = cv
        self.warm_path = warm_path
        self.n_jobs = n_jobs
        self.alpha_feature = alpha_feature
        self.feature_penalty = feature_penalty
        self.task_penalty = task_penalty
        self.shared = shared
        self.alpha_shared = alpha_shared
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.task_column = task_column
        self.unseen_task = unseen_task
        self.init = init
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.core_penalty = core_penalty
        self.alpha_core = alpha_core


@documented
class BiFactorRegressorCV(RegressorOutputs, BiFactorCV):
    r""":class:`BiFactorRegressor` with its penalty (and ranks) chosen by cross-validation.

    Parameters
    ----------
    <bi_search>
    <search>
    <common>

    Attributes
    ----------
    <search_attributes>
    <attributes>
    <bi_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import BiFactorRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(90, 4)), np.repeat([0, 1, 2], 30)
    >>> y = X @ rng.normal(size=4)
    >>> model = BiFactorRegressorCV(n_components=2, alphas=(0.01, 1.0), cv=3)
    >>> model.fit(X, y, task=task).alpha_task_ in (0.01, 1.0)
    True
    """

    _plain_class: ClassVar[type[FactorModel]] = BiFactorRegressor


@documented
class BiFactorClassifierCV(ClassifierOutputs, BiFactorCV):
    r""":class:`BiFactorClassifier` with its penalty (and ranks) chosen by cross-validation.

    Parameters
    ----------
    <bi_search>
    <search>
    <common>

    Attributes
    ----------
    <search_attributes>
    <classes>
    <attributes>
    <bi_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import BiFactorClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(90, 4)), np.repeat([0, 1, 2], 30)
    >>> y = X[:, 0] > 0
    >>> model = BiFactorClassifierCV(n_components=2, alphas=(0.01, 1.0), cv=3)
    >>> model.fit(X, y, task=task).alpha_task_ in (0.01, 1.0)
    True
    """

    _plain_class: ClassVar[type[FactorModel]] = BiFactorClassifier


@documented
class TriFactorRegressorCV(RegressorOutputs, TriFactorCV):
    r""":class:`TriFactorRegressor` with its penalty (and ranks) chosen by cross-validation.

    Parameters
    ----------
    <tri_search>
    <search>
    <core>
    <common>

    Attributes
    ----------
    <search_attributes>
    <attributes>
    <tri_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import TriFactorRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(90, 4)), np.repeat([0, 1, 2], 30)
    >>> y = X @ rng.normal(size=4)
    >>> model = TriFactorRegressorCV(
    ...     n_feature_clusters=3, n_task_clusters=2, alphas=(0.01, 1.0), cv=3
    ... )
    >>> model.fit(X, y, task=task).alpha_task_ in (0.01, 1.0)
    True
    """

    _plain_class: ClassVar[type[FactorModel]] = TriFactorRegressor


@documented
class TriFactorClassifierCV(ClassifierOutputs, TriFactorCV):
    r""":class:`TriFactorClassifier` with its penalty (and ranks) chosen by cross-validation.

    Parameters
    ----------
    <tri_search>
    <search>
    <core>
    <common>

    Attributes
    ----------
    <search_attributes>
    <classes>
    <attributes>
    <tri_attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import TriFactorClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(90, 4)), np.repeat([0, 1, 2], 30)
    >>> y = X[:, 0] > 0
    >>> model = TriFactorClassifierCV(
    ...     n_feature_clusters=3, n_task_clusters=2, alphas=(0.01, 1.0), cv=3
    ... )
    >>> model.fit(X, y, task=task).alpha_task_ in (0.01, 1.0)
    True
    """

    _plain_class: ClassVar[type[FactorModel]] = TriFactorClassifier
