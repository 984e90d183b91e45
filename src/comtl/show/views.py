"""Weights of a fitted model for figures: named, on one scale, ordered and binned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from ..hierarchical.hierarchical_estimators import HierarchicalModel
from ..linear import OutputColumns
from ..models.task_model import TaskModel


@dataclass(frozen=True, eq=False)
class ModelView:
    """Weights with names, for features in the units of the fit (``spread``)."""

    tasks: list[str]
    features: list[str]
    classes: list[str]  # none for up to two
    columns: OutputColumns
    values: np.ndarray  # (n_lines, n_features), a row for each of the columns
    spread: np.ndarray  # 1 for a model that does not scale features
    task_clusters: np.ndarray
    feature_clusters: np.ndarray

    @property
    def feature_unit(self) -> str:
        """What weights are for a change of: the unit of a feature, or that of the fit."""
        scaled = "standard deviation (half the range if it has two values)"
        return "unit" if (self.spread == 1.0).all() else scaled

    @property
    def lines(self) -> list[str]:
        """Name of each row of ``values``."""
        if not self.classes:
            return self.tasks
        pairs = zip(self.columns.task.tolist(), self.columns.label.tolist(), strict=True)
        return [f"{self.tasks[task]} · {self.classes[label]}" for task, label in pairs]

    @property
    def line_clusters(self) -> np.ndarray:
        """Cluster of each row of ``values``."""
        return self.task_clusters[self.columns.task]


def view(model: TaskModel) -> ModelView:
    """Read a fitted model."""
    if not isinstance(model, TaskModel):
        raise TypeError(
            f"model must be a fitted estimator of comtl, got {type(model).__name__}; pass what "
            "fit returned."
        )
    check_is_fitted(model)
    inverse = model._units.inverse_scale
    spread = 1.0 / np.where(inverse > 0, inverse, 1.0)
    columns, classes = model._linear.columns, model._linear.classes
    several = classes is not None and columns.index is not None
    return ModelView(
        tasks=[str(label) for label in model.tasks_.tolist()],
        features=model._feature_names(),
        classes=[str(label) for label in classes.tolist()] if several else [],  # type: ignore[union-attr]
        columns=columns,
        values=np.asarray(model._linear.weights.coef, dtype=float) * spread,
        spread=np.asarray(spread, dtype=float),
        task_clusters=model.task_clusters_,
        feature_clusters=model.feature_clusters_,
    )


@dataclass(frozen=True, eq=False)
class FitHistory:
    """Objective of a fit after each step: its name, that of a step, and how the fit ended."""

    label: str
    step: str
    values: np.ndarray
    ended: str


def choose_history(model: TaskModel) -> FitHistory | None:
    """History of a fit; None where the model kept none."""
    values = getattr(model, "objective_history_", None)
    if values is None:
        return None
    ended = "converged" if getattr(model, "converged_", False) else "stopped early"
    if isinstance(model, HierarchicalModel):
        return FitHistory("log marginal likelihood", "step", values, ended)
    return FitHistory("objective", "sweep", values, ended)


def seriation_order(values: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Rows by cluster, and within a cluster along the leading direction of the table."""
    values = values / (np.abs(values).max(initial=0.0) or 1.0)
    direction = values.T @ (values @ np.ones(values.shape[1]) + 1e-3 * np.arange(len(values)))
    for _ in range(20):
        # A few power steps suffice for an order to look at.
        size = float(np.linalg.norm(direction))
        if size == 0.0:
            return np.argsort(clusters, kind="stable")
        direction = values.T @ (values @ (direction / size))
    return np.lexsort((values @ direction, clusters))


@dataclass(frozen=True, eq=False)
class BinnedAxis:
    """Rows in an order, neighbours of one cluster binned where there are too many."""

    order: np.ndarray
    edges: np.ndarray  # bin i holds the rows order[edges[i]:edges[i + 1]]
    clusters: np.ndarray  # of each bin

    @classmethod
    def of(cls, order: np.ndarray, clusters: np.ndarray, most: int) -> BinnedAxis:
        """At most about ``most`` bins, none of them across a border between clusters."""
        ordered = clusters[order]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1, [len(order)]])
        edges = [np.zeros(1, dtype=np.intp)]
        for start, stop in pairwise(starts.tolist()):
            share = (stop - start) * min(1.0, most / len(order))
            count = max(1, int(share))
            edges.append(np.linspace(start, stop, count + 1)[1:].round().astype(np.intp))
        places = np.concatenate(edges)
        return cls(order, places, ordered[places[:-1]])

    @classmethod
    def by_cluster(cls, values: np.ndarray, clusters: np.ndarray, most: int) -> BinnedAxis:
        """Bins of the rows of ``values`` by cluster, similar rows beside each other."""
        return cls.of(seriation_order(values, clusters), clusters, most)

    @property
    def borders(self) -> np.ndarray:
        """Bins at which another cluster begins."""
        return np.flatnonzero(np.diff(self.clusters)) + 1

    @property
    def shares(self) -> sparse.csr_array:
        """Share of each row in each bin, (n_bins, n): its product with rows are means of bins."""
        sizes = np.diff(self.edges)
        shares = np.repeat(1.0 / sizes, sizes), self.order, self.edges
        return sparse.csr_array(shares, shape=(len(sizes), len(self.order)))

    def names(self, names: Sequence[str]) -> list[str]:
        """Name of each row, or of the first and last of a bin."""
        labels = []
        for start, stop in pairwise(self.edges.tolist()):
            first, last = names[self.order[start]], names[self.order[stop - 1]]
            labels.append(first if stop - start == 1 else f"{first} … {last} ({stop - start})")
        return labels


def colour_limit(values: np.ndarray) -> float:
    """Size at which colours end: a few large values must not make all others pale."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    return float(np.quantile(sizes, 0.98)) if sizes.size else 1.0


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Rows of length one; a row of zeros stays."""
    # The largest entry first, so that squares neither overflow nor vanish.
    return normalize(normalize(rows, norm="max"))
