"""Errors on held-out rows by task, and the verdict on them."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from ..parameters import former_name
from ..saving.registry import saved

SIGNIFICANCE = 0.05
"""Two-sided level of every test."""


@dataclass(frozen=True)
class Verdict:
    """Whether a model predicts held-out rows better than every reference model.

    Parameters
    ----------
    kind : {"helps", "unclear", "harms"}
        Significantly better than every reference model, neither, or significantly worse than one.
    reference : str
        The reference model concerned, "pooled", "separate" or "mean": the best one where the model
        helps, the best of those that are significantly better where it harms, and else the best of
        those that are not significantly different.

    Examples
    --------
    >>> from comtl.evaluation import Verdict
    >>> Verdict("helps", "separate").kind
    'helps'
    """

    kind: str
    reference: str


@saved
@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors on held-out rows by task.

    Where y has two dimensions, its observed entries are the rows. What has weight zero is no row,
    and all means are weighted.

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
        which means something only where they are of one unit; else look at ``errors``.
    accuracy : dict of str to float, or None
        Share of held-out rows whose class was right; None for a regressor.
    loss_reduction, loss_reduction_se : dicts of str to ndarray of shape (n_tasks,)
        How much lower the mean loss (squared error, or Brier score) of each task is than that of
        each of the reference models "pooled", "separate" and "mean", and the standard error of
        that difference (NaN below two rows).
    nominal, coverage : ndarrays of shape (n_levels,), or None
        Probabilities of the intervals, and shares of held-out targets that lie in them; None
        where the model has no intervals.
    test_weights : ndarray of shape (n_tasks,), or None
        Weight of the rows of each task that were held out; None: as many as there are.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl import HierarchicalRegressor
    >>> from comtl.evaluation import compare
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(300, 3)), np.repeat(np.arange(20), 15)
    >>> y = X[:, 0] + rng.normal(size=20)[task] + 0.5 * rng.normal(size=300)
    >>> found = compare(HierarchicalRegressor(), X, y, task)
    >>> found.verdict
    Verdict(kind='helps', reference='separate')
    >>> int((found.task_signs("pooled") > 0).sum()) > 10  # Tasks that are significantly better.
    True
    """

    tasks: np.ndarray
    train_rows: np.ndarray
    test_rows: np.ndarray
    metric: str
    errors: dict[str, np.ndarray]
    overall: dict[str, float]
    accuracy: dict[str, float] | None
    loss_reduction: dict[str, np.ndarray]
    loss_reduction_se: dict[str, np.ndarray]
    nominal: np.ndarray | None
    coverage: np.ndarray | None
    test_weights: np.ndarray | None = None

    gains = former_name("gains", "loss_reduction")
    gain_errors = former_name("gain_errors", "loss_reduction_se")
    levels = former_name("levels", "nominal")
    covered = former_name("covered", "coverage")

    @property
    def held_out(self) -> np.ndarray:
        """How much each task counts in what is said of all."""
        held = self.test_rows if self.test_weights is None else self.test_weights
        return np.asarray(held, dtype=float)

    @property
    def verdict(self) -> Verdict:
        """Whether the model helps against the reference models."""
        signs = {name: self._sign(name) for name in self.loss_reduction}
        best = min(signs, key=lambda name: (signs[name], self.overall[name]))
        return Verdict({1: "helps", 0: "unclear", -1: "harms"}[signs[best]], best)

    def task_signs(self, name: str) -> np.ndarray:
        """1 for each task that is significantly better than with a reference model, -1 worse.

        0 where the difference is not significant by a paired t-test on the held-out rows of the
        task. Of tasks without any difference 2.5 % are 1 and as many -1.

        Parameters
        ----------
        name : {"pooled", "separate", "mean"}
            Reference model.

        Returns
        -------
        ndarray of int, shape (n_tasks,)
            Signs.
        """
        gains, df = self.loss_reduction[name], np.maximum(self.test_rows - 1, 1)
        reach = self.loss_reduction_se[name] * stdtrit(df, 1.0 - 0.5 * SIGNIFICANCE)
        # What is NaN compares as false.
        return (gains > reach).astype(int) - (gains < -reach).astype(int)

    def _sign(self, name: str) -> int:
        """Sign of the gain over a reference model on all rows, 0 where it is not significant."""
        tested = (self.held_out > 0) & np.isfinite(self.loss_reduction[name])
        gains, errors, held = (
            values[tested]
            for values in (self.loss_reduction[name], self.loss_reduction_se[name], self.held_out)
        )
        if not len(gains):
            return 0
        shares = held / held.sum()
        total = float(shares @ gains)
        # One row has no standard error; its own difference is the best guess at one.
        within = shares * np.where(np.isfinite(errors), errors, np.abs(gains))
        between = shares * (gains - total) * np.sqrt(len(gains) / max(len(gains) - 1, 1))
        # Rows vary within tasks and gains vary between them.
        error = max(float(np.linalg.norm(within)), float(np.linalg.norm(between)))
        # To help, all tests must agree; to harm, one suffices, so that their number counts.
        tests = 1 if total > 0 else len(self.loss_reduction)
        reach = error * -float(ndtri(0.5 * SIGNIFICANCE / tests))
        return int(np.sign(total)) if abs(total) > reach else 0
