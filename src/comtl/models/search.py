"""What searches share: the folds, held-out losses of many settings, the choice among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from ..engine.checkpoints import Checkpoint
from ..engine.problem import OutputColumns
from ..engine.progress import SILENT, FitProgress, progress_shown
from ..parameters import require_flag, require_integer, require_number
from ..rows.fit_input import FitInput
from ..rows.observations import Observations
from .factor_model import FactorModel
from .grid import Fold, grid_losses


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Held-out losses (folds × settings) in squares of ``unit``, and what they were found on."""

    data: Observations
    columns: OutputColumns
    losses: np.ndarray
    weights: np.ndarray
    unit: float
    kept: Checkpoint

    @property
    def mean(self) -> np.ndarray:
        """Mean loss per observation of each setting."""
        return np.average(self.losses, axis=0, weights=self.weights)

    @property
    def best(self) -> int:
        """Setting with the lowest mean."""
        return int(self.mean.argmin())


def search(
    schema: FactorModel,
    models: Sequence[FactorModel],
    rows: FitInput,
    *,
    cv: Any,
    warm: bool = True,
    n_jobs: int | None = None,
    checkpoint: str | None = None,
    watch: FitProgress = SILENT,
) -> SearchResult:
    """Held-out losses of settings of one kind of model.

    ``schema`` learns the columns of the rows; ``models`` differ in penalties and ranks only.
    Interrupted by the user, only a search that is watched makes do with the folds it has.
    """
    for model in models:
        model._check_parameters()
    data = rows.read(schema)
    rows, data = rows.nearby(schema, data)
    # Losses are compared in units of the target, whose squares may be out of range.
    unit = 1.0 if schema._classification else data.max_abs or 1.0
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
        losses, weights = grid_losses(
            models, size, folds, warm=warm, n_jobs=jobs, kept=kept, watch=watch
        )
    return SearchResult(data, columns, losses, weights, unit, kept)


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

    def _fit(self, rows: FitInput, watch: FitProgress) -> None:
        """Choose the setting by cross-validation and fit it to all rows."""
        grid = self._grid()
        require_flag("warm_path", self.warm_path)
        models = [self._plain(setting) for setting in grid]
        with progress_shown(self.verbose):
            found = search(
                self,
                models,
                rows,
                cv=self.cv,
                warm=self.warm_path,
                n_jobs=self.n_jobs,
                checkpoint=self.checkpoint,
                watch=watch,
            )
        best, data, columns = found.best, found.data, found.columns
        refitted = models[best]
        problem = refitted._problem(data, columns)
        refitted._run(problem, data, columns, found.kept, watch)
        for name, value in vars(refitted).items():
            if name not in refitted.get_params():
                setattr(self, name, value)
        self.best_params_ = grid[best]
        # Settings that an interruption left out have an infinite loss.
        with np.errstate(over="ignore", invalid="ignore"):
            score = -found.mean * found.unit * found.unit
            spread = found.losses.std(axis=0) * found.unit * found.unit
        self.best_score_ = float(score[best])
        self.alpha_task_ = grid[best]["alpha_task"]
        self.cv_results_ = {
            "params": grid,
            "mean_test_score": score,
            "std_test_score": spread,
        }

    def _check_parameters(self) -> None:
        """Leave it to the models of the grid, each of which is checked."""

    # The rest of the model is that of the chosen setting.
    def _chosen(self) -> FactorModel:
        return self._plain(self.best_params_)

    def _clusters(self) -> tuple[int | None, int | None]:
        return self._chosen()._clusters()
