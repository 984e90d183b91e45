"""What the estimators with cross-validation share: the settings, the folds, the choice."""

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
from .folds import TaskStratifiedKFold
from .frames import read_classes
from .grid import Fold, grid_losses
from .parameters import require_flag, require_integer, require_number
from .problem import Columns


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
