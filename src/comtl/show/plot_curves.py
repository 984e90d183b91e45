"""Mean predictions as one column moves: partial dependence, over all tasks and of some."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..models.task_model import TaskModel
from ..rows.reading import read_rows
from .plot_axes import COLOURS, new_axes, plain, says_where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS, POINTS = 1000, 20
"""Rows, spread evenly, that a curve is a mean over, and quantiles that its column takes."""
ENDS = 0.02, 0.98
"""Quantiles between which a column moves."""


@dataclass(frozen=True, eq=False)
class Curves:
    """Rows in numbers, their tasks, and a model that takes these."""

    model: TaskModel
    names: list[str]
    X: np.ndarray
    task: np.ndarray | None

    @classmethod
    def of(cls, model: TaskModel, X: Any, task: Any, rows: int = MOST_ROWS) -> Curves:
        """Rows as numbers without the task column, such that one column can be moved."""
        check_is_fitted(model)
        model = model.to_numpy()
        numbers, labels = read_rows(model, X, task)
        if labels is None and not model._multi_output:
            labels = np.repeat(model.tasks_[:1], numbers.shape[0])
        chosen = np.unique(np.linspace(0, numbers.shape[0] - 1, rows).round().astype(np.intp))
        numbers = numbers[chosen]
        bare, names = copy.copy(model), model._feature_names()[: numbers.shape[1]]
        bare.task_column = None
        bare.n_features_in_ = numbers.shape[1]
        if "feature_names_in_" in vars(bare):
            del bare.feature_names_in_
        dense: Any = numbers
        if sparse.issparse(numbers):
            dense = sparse.csr_array(numbers).toarray()
        return cls(bare, names, dense, None if labels is None else labels[chosen])

    def number(self, column: str | int) -> int:
        """Number of a column by its name or number."""
        if isinstance(column, str):
            if column not in self.names:
                shown = ", ".join(self.names[:20])
                raise ValueError(f"column={column!r} is none of the columns of X: {shown}.")
            return self.names.index(column)
        if not 0 <= column < len(self.names):
            raise ValueError(f"column={column} is no number of the {len(self.names)} columns of X.")
        return int(column)

    def grid(self, column: int, points: int = POINTS) -> np.ndarray:
        """Values that a column takes, at most so many."""
        values = np.unique(self.X[:, column])
        if len(values) > points:
            shares = np.linspace(*ENDS, points)
            values = np.unique(np.quantile(self.X[:, column], shares))
        return values

    def means(self, column: int, grid: np.ndarray, tasks: Sequence[Any] = ()) -> np.ndarray:
        """Mean prediction by value of the column, of all rows and of those of some tasks."""
        found = np.empty((1 + len(tasks), len(grid)))
        rows = self.X.copy()
        for place, value in enumerate(grid.tolist()):
            rows[:, column] = value
            guess = self._predicted(rows)
            found[0, place] = guess.mean()
            for number, label in enumerate(tasks):
                found[1 + number, place] = self._of_task(guess, label).mean()
        return found

    def _predicted(self, X: np.ndarray) -> np.ndarray:
        """Values, or probabilities of the last class."""
        model: Any = self.model
        if not model._classification:
            return np.asarray(model.predict(X, task=self.task))
        chance = np.asarray(model.predict_proba(X, task=self.task))
        return chance if model._multi_output else chance[:, -1]

    def _of_task(self, guess: np.ndarray, label: Any) -> np.ndarray:
        known = self.model.tasks_ == label if self.task is None else self.task == label
        if not known.any():
            raise ValueError(f"tasks holds {label!r}, of which X has no rows.")
        return guess[:, known] if self.task is None else guess[known]


@says_where
def partial_dependence(
    model: TaskModel,
    X: Any,
    column: str | int,
    task: Any = None,
    *,
    tasks: Sequence[Any] = (),
    ax: Axes | None = None,
) -> Axes:
    """Mean prediction over rows as one column moves over its quantiles.

    Other columns stay as they are in the rows, so that a curve is misleading where columns depend
    on each other. Of at most 1,000 rows, evenly spread; of a classifier the mean probability of the
    last class. The function of the same name in scikit-learn passes no tasks to ``predict``.

    Parameters
    ----------
    model : estimator
        A fitted model.
    X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        Rows, as in predict.
    column : str or int
        Name or number of the column that moves, the task column not counted.
    task : array-like of shape (n_samples,), optional
        Task of each row, where it is no column of X.
    tasks : sequence of labels, default=()
        Tasks with a line each as well, over the rows of the task.
    AXES

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import MultitaskRegressor, plot
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(300, 2)), np.repeat(["a", "b", "c"], 100)
    >>> model = MultitaskRegressor(cv=2).fit(X, np.sin(3.0 * X[:, 0]), task=task)
    >>> ax = plot.partial_dependence(model, X, 0, task, tasks=["a"])
    >>> [line.get_label() for line in ax.lines]
    ['all tasks', 'a']
    """
    curves = Curves.of(model, X, task)
    number = curves.number(column)
    grid = curves.grid(number)
    lines = curves.means(number, grid, tasks)
    ax = new_axes(ax)
    ax.plot(grid, lines[0], color=COLOURS[0], linewidth=2.4, label="all tasks", zorder=3)
    for place, values in enumerate(lines[1:]):
        colour = COLOURS[1 + place % (len(COLOURS) - 1)]
        ax.plot(grid, values, color=colour, linewidth=1.3, label=str(tasks[place]))
    if len(tasks):
        ax.legend(frameon=False)
    ax.set_xlabel(curves.names[number], parse_math=False)
    ax.set_ylabel(what_is_predicted(model), parse_math=False)
    ax.set_title("Partial dependence")
    plain(ax)
    return ax


def what_is_predicted(model: TaskModel) -> str:
    """What the curves are means of."""
    if model._linear.classes is None:
        return "mean prediction"
    return f"mean probability of {model._linear.classes[-1]}"
