"""What was measured on held-out rows, task by task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .saving.registry import saved


@saved
@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors on held-out rows by task.

    Where y has two dimensions, its observed cells are the rows. What has weight zero is no row, and
    all means are weighted.

    Parameters
    ----------
    tasks : ndarray of shape (n_tasks,)
        Labels.
    train_rows, test_rows : ndarrays of shape (n_tasks,)
        Rows of each task in all, and rows that were held out.
    metric : str
        "RMSE" of a regressor, "Brier score" of a classifier (half the squared distance between
        probabilities and truth, summed over classes); lower is better.
    errors : dict of str to ndarray of shape (n_tasks,)
        Metric of each task by the names "model", "pooled", "separate" and "mean" (one constant for
        all tasks, or for each column of y); NaN where no row was held out.
    overall : dict of str to float
        Metric of all held-out rows. Columns of a two-dimensional y are taken together as they are,
        which tells something only where they are of one unit; else look at ``errors``.
    accuracy : dict of str to float, or None
        Share of held-out rows whose class was right; None for a regressor.
    gains, gain_errors : dicts of str to ndarray of shape (n_tasks,)
        How much lower the mean loss (squared error, or Brier score) of each task is than that of
        "pooled" and "separate", and the standard error of that difference (NaN below two rows).
    levels, covered : ndarrays of shape (n_levels,), or None
        Probabilities asked of the intervals, and shares of held-out targets found in them; None
        where the model has no intervals.
    test_weights : ndarray of shape (n_tasks,), or None
        Weight of the rows of each task that were held out; None: as many as there are.
    """

    tasks: np.ndarray
    train_rows: np.ndarray
    test_rows: np.ndarray
    metric: str
    errors: dict[str, np.ndarray]
    overall: dict[str, float]
    accuracy: dict[str, float] | None
    gains: dict[str, np.ndarray]
    gain_errors: dict[str, np.ndarray]
    levels: np.ndarray | None
    covered: np.ndarray | None
    test_weights: np.ndarray | None = None

    @property
    def held_out(self) -> np.ndarray:
        """How much each task counts in what is said of all."""
        held = self.test_rows if self.test_weights is None else self.test_weights
        return np.asarray(held, dtype=float)
