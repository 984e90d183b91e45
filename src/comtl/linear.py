"""Fitted linear models: labels and classes of tasks, their weights, and means for unseen tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .arrays import (
    Array,
    asarray_like,
    is_device_sparse,
    namespace,
    on_device,
    row_dots,
    take,
    to_numpy,
    with_ones,
)
from .arrays.blocks import Block, RowBlocks
from .factors import Factors
from .rows.design import Design
from .rows.observations import Observations
from .rows.reading import encode_tasks
from .saving.registry import saved
from .unseen_tasks import check_unseen

_BLOCK_CELLS = 2**20


@saved
@dataclass(frozen=True, eq=False)
class ColumnWeights:
    """Weights ``shared + D g_t (+ r_t)`` and an intercept for each of T columns."""

    directions: np.ndarray  # (P, K): D, what each column of the task factor stands for
    task_factor: np.ndarray  # (T, K): rows g_t
    shared: np.ndarray  # (P,): part common to all columns
    intercepts: np.ndarray  # (T,)
    residual: Any = None  # (T, P) csr_array, on a device RowSparse: what adapted tasks have beyond

    @classmethod
    def of_coef(
        cls, coef: np.ndarray, intercepts: np.ndarray, shared: np.ndarray | None = None
    ) -> ColumnWeights:
        """Separate weights (T, P) into a common part, the mean unless given, and factors."""
        xp = namespace(coef)
        shared = xp.mean(coef, axis=0) if shared is None else shared
        largest = xp.max(xp.abs(coef), axis=0)
        unit = xp.where(largest > 0.0, largest, xp.max(largest))
        # One SVD keeps the digits of all features unless their units are far apart.
        if bool(xp.min(unit) >= float(xp.finfo(unit.dtype).eps) ** 0.25 * xp.max(unit)):
            unit = xp.ones_like(unit)
        left, sizes, right = xp.linalg.svd((coef - shared) / unit, full_matrices=False)
        return cls(right.T * unit[:, None], left * sizes, shared, intercepts)

    @property
    def consistent(self) -> bool:
        """Whether the shapes of all parts fit each other."""
        size, ranks = (self.n_columns, self.shared.shape[0]), self.directions.shape[1:]
        shapes = self.directions.shape == (size[1], *ranks) and len(ranks) == 1
        shapes = shapes and self.task_factor.shape == (size[0], *ranks)
        return shapes and (self.residual is None or self.residual.shape == size)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.intercepts.shape[0]

    @property
    def coef(self) -> Array:
        """Weights of all columns, ``(T, P)``."""
        coef = self.task_factor @ self.directions.T + self.shared
        return coef if self.residual is None else coef + self.residual.toarray()

    def _beside(self, X: Any) -> list[Any]:
        """Rows, ``Q`` and ``M`` with weights ``Q m_t`` but for residuals, and intercepts."""
        xp, columns, loadings = namespace(self.shared), self.directions, self.task_factor
        if bool(xp.any(self.shared != 0.0)):
            columns = xp.concat([columns, self.shared[:, None]], axis=1)
            loadings = with_ones(loadings)
        parts = [X, columns, loadings, self.intercepts]
        return one_type(*parts) if on_device(X) else parts

    def scores(self, X: Any, codes: np.ndarray) -> Array:
        """Score of each row for its own columns: ``codes`` and result are (n,) or (n, m)."""
        X, columns, loadings, intercepts = self._beside(X)
        each, xp = codes.reshape(len(codes), -1), namespace(columns)
        scores = xp.empty(each.shape, dtype=xp.result_type(X.dtype, columns.dtype))

        # Of rows with infinite values nothing but a score that is not finite is wanted.
        @np.errstate(invalid="ignore", over="ignore")
        def keep(block: Block) -> None:
            latent = block.forward(columns)
            for place, own in enumerate(each[block.obs].T):
                score = row_dots(latent, take(loadings, own)) + take(intercepts, own)
                scores[block.obs, place] = score

        RowBlocks(X).total(keep, columns.shape[1])
        if self.residual is not None:
            beyond = self.residual.scores if on_device(X) else self._beyond
            for place, own in enumerate(each.T):
                scores[:, place] += beyond(X, own)
        return xp.reshape(scores, codes.shape)

    def table(self, X: Any) -> Array:
        """Score of each row for every column, ``(n, T)``."""
        X, columns, loadings, intercepts = self._beside(X)
        blocks = RowBlocks(X)
        with np.errstate(invalid="ignore", over="ignore"):
            scores = blocks.forward(columns) @ loadings.T
            scores += intercepts
            if self.residual is None:
                return scores
            if not on_device(X):
                return scores + (self.residual @ X.T).T
            return scores + blocks.forward(one_type(X, self.residual.toarray())[1].T)

    def _beyond(self, X: Any, codes: np.ndarray) -> np.ndarray:
        beyond = np.zeros(len(codes), dtype=self.shared.dtype)
        touched = np.flatnonzero(np.diff(self.residual.indptr)[codes])
        step = max(1, _BLOCK_CELLS // X.shape[1])
        for start in range(0, len(touched), step):
            rows = touched[start : start + step]
            weights = self.residual[codes[rows]]
            beyond[rows] = sparse.csr_array(weights.multiply(X[rows])).sum(axis=1)
        return beyond

    def with_means(self, groups: np.ndarray) -> ColumnWeights:
        """Append the mean of the columns in each of the groups, (n_groups, T); zeros for none."""
        share = groups / np.maximum(groups.sum(axis=1, keepdims=True), 1)
        factor, residual = self.task_factor, self.residual
        if residual is not None and on_device(factor):
            residual = residual.means(share)
        elif residual is not None:
            residual = sparse.csr_array(share.astype(factor.dtype)) @ residual
        share = asarray_like(share, factor, factor.dtype)
        return self.joined(share @ factor, share @ self.intercepts, residual)

    def joined(self, task_factor: Array, intercepts: Array, residual: Any) -> ColumnWeights:
        """Append columns on the same directions; ``residual`` is that of the new ones, or None."""
        xp, old = namespace(self.task_factor), self.residual
        if old is not None or residual is not None:
            old = self._no_residual(self.n_columns) if old is None else old
            new = self._no_residual(intercepts.shape[0]) if residual is None else residual
            if on_device(self.shared):
                residual = old.below(new)
            else:
                residual = sparse.csr_array(sparse.vstack([old, new]))
        return replace(
            self,
            task_factor=xp.concat([self.task_factor, task_factor], axis=0),
            intercepts=xp.concat([self.intercepts, intercepts]),
            residual=residual,
        )

    def _no_residual(self, columns: int) -> Any:
        dtype, features = self.shared.dtype, self.shared.shape[0]
        if not on_device(self.shared):
            return sparse.csr_array((columns, features), dtype=dtype)
        empty = namespace(self.shared).zeros((0, features), dtype=dtype)
        return RowSparse(np.full(columns, -1), empty)


@saved
@dataclass(frozen=True, eq=False)
class Scaling:
    """Centre and scale of features and target that the engine works in."""

    shift: np.ndarray
    inverse_scale: np.ndarray
    target_shift: float
    target_scale: float

    def design(self, X: object) -> Design:
        return Design(X, self.shift, self.inverse_scale)

    def target(self, y: Array) -> Array:
        return (y - self.target_shift) / self.target_scale

    def intercepts(self, intercepts: Array, centre_offset: Array) -> Array:
        """User's intercepts; ``centre_offset`` is each task's weights times the feature shift."""
        return self.target_scale * (intercepts - centre_offset) + self.target_shift

    def weights(self, factors: Factors) -> ColumnWeights:
        directions, shared = factors.feature_loadings, factors.shared
        centre_offset = factors.G @ (self.shift @ directions) + self.shift @ shared
        intercepts = self.intercepts(factors.intercepts, centre_offset)
        scale = self.target_scale * self.inverse_scale
        return ColumnWeights(scale[:, None] * directions, factors.G, scale * shared, intercepts)


@saved
@dataclass(frozen=True, eq=False)
class OutputColumns:
    """The columns of ``W``: tasks, or pairs of a task and a class it has seen."""

    task: np.ndarray  # task of each column
    label: np.ndarray  # class of each column; 1 throughout for two classes
    index: np.ndarray | None  # (tasks, classes): column of each pair, -1 for none; None: of tasks

    @classmethod
    def of(cls, data: Observations) -> OutputColumns:
        """Columns that the observations call for."""
        if data.classes is None or len(data.classes) == 2:
            tasks = np.arange(data.n_tasks)
            return cls(tasks, np.ones_like(tasks), None)
        return cls.seen(data.seen)

    @classmethod
    def seen(cls, seen: np.ndarray) -> OutputColumns:
        """Columns for a boolean table of tasks by classes."""
        index = np.full(seen.shape, -1)
        index[seen] = np.arange(seen.sum())
        task, label = np.nonzero(seen)
        return cls(task, label, index)

    @property
    def groups(self) -> np.ndarray:
        """Columns whose means unseen tasks get: all, or beyond two classes those of each."""
        if self.index is None:
            return np.ones((1, len(self.task)), dtype=bool)
        return np.stack([self.label == c for c in range(self.index.shape[1])])

    @property
    def places(self) -> np.ndarray:
        """Column of each task and class, last of an unseen task; -1 for a class it has not.

        An unseen task has every class of the fit: their means stand behind the columns.
        """
        if self.index is None:
            return np.arange(len(self.task) + 1)[:, None]
        means = np.arange(self.index.shape[1]) + len(self.task)
        means = np.where((self.index >= 0).any(axis=0), means, -1)
        return np.concatenate([self.index, means[None, :]])

    def by_task(self, values: Array) -> Array:
        """Values of the columns for each task, beyond two classes for each task and class."""
        index, xp = self.index, namespace(values)
        if index is None:
            return values
        blank = xp.zeros((1, *values.shape[1:]), dtype=values.dtype)
        flat = take(xp.concat([values, blank], axis=0), index.ravel() % (values.shape[0] + 1))
        return xp.reshape(flat, (*index.shape, *values.shape[1:]))

    def joined(self, new: OutputColumns, n_tasks: int) -> OutputColumns:
        """Append columns of further tasks to those of ``n_tasks``."""
        task = np.concatenate([self.task, new.task + n_tasks])
        label = np.concatenate([self.label, new.label])
        if self.index is None or new.index is None:
            return OutputColumns(task, label, None)
        shifted = np.where(new.index >= 0, new.index + len(self.task), -1)
        return OutputColumns(task, label, np.concatenate([self.index, shifted]))


@dataclass(frozen=True, eq=False)
class LinearTasks:
    """A fitted linear model: its tasks and classes, their weights, and what unseen tasks get."""

    tasks: np.ndarray  # labels
    classes: np.ndarray | None  # sorted; None for regression
    columns: OutputColumns
    weights: ColumnWeights

    @property
    def consistent(self) -> bool:
        """Whether the shapes of all parts fit each other."""
        return len(self.columns.task) == self.weights.n_columns and self.weights.consistent

    @cached_property
    def extended(self) -> ColumnWeights:
        """Weights of the columns, and behind them the means for unseen tasks."""
        return self.weights.with_means(self.columns.groups)

    @property
    def coef(self) -> Array:
        """Weights: tasks × features, or tasks × classes × features beyond two classes."""
        return self.columns.by_task(self.weights.coef)

    @property
    def intercepts(self) -> Array:
        """Intercepts: one a task, or tasks × classes beyond two classes."""
        return self.columns.by_task(self.weights.intercepts)

    def codes(
        self, labels: np.ndarray, *, unseen_task: str | None = None, remedy: str = ""
    ) -> np.ndarray:
        """Number of each label's task; -1, which has the means, where fit never saw it."""
        codes = encode_tasks(labels, self.tasks)
        if unseen_task is not None:
            check_unseen(labels, codes, unseen_task=unseen_task, remedy=remedy)
        return codes

    def scores(self, X: Any, codes: np.ndarray | None) -> Array:
        """Scores of rows for the columns that ``codes`` name, or for all of them without codes."""
        return self.weights.table(X) if codes is None else self.extended.scores(X, codes)

    def joined(
        self, tasks: np.ndarray, columns: OutputColumns, new: tuple[Array, Array, Any]
    ) -> LinearTasks:
        """Append tasks, their columns, and factor, intercepts and residual of these."""
        return replace(
            self,
            tasks=np.concatenate([self.tasks, tasks]),
            columns=self.columns.joined(columns, len(self.tasks)),
            weights=self.weights.joined(*new),
        )


def one_type(*arrays: Array) -> list[Array]:
    """Arrays of float32 and float64 on a device in the wider of their types."""
    xp = namespace(*arrays)
    wide = xp.float64 if any(a.dtype == xp.float64 for a in arrays) else xp.float32
    return [
        a if a.dtype == wide else a.astype(wide) if is_device_sparse(a) else xp.astype(a, wide)
        for a in arrays
    ]


_PAIR_CELLS = 2**24


@dataclass(frozen=True, eq=False)
class RowSparse:
    """Matrix of tasks by features, most of whose rows are zero."""

    places: np.ndarray  # (T,): number of a task's row among the rows; -1 for a task without one
    rows: Array  # (m, P): those that are not zero

    @property
    def shape(self) -> tuple[int, int]:
        """Tasks and features."""
        return len(self.places), self.rows.shape[1]

    def toarray(self) -> Array:
        """Return the dense matrix."""
        xp = namespace(self.rows)
        blank = xp.zeros((1, self.rows.shape[1]), dtype=self.rows.dtype)
        return take(xp.concat([self.rows, blank], axis=0), self.places % (self.rows.shape[0] + 1))

    def to_scipy(self) -> sparse.csr_array:
        """Return the same matrix as SciPy holds it."""
        return sparse.csr_array(to_numpy(self.toarray()))

    def below(self, other: RowSparse) -> RowSparse:
        """Further tasks below these."""
        moved = np.where(other.places >= 0, other.places + self.rows.shape[0], -1)
        rows = namespace(self.rows).concat([self.rows, other.rows], axis=0)
        return RowSparse(np.concatenate([self.places, moved]), rows)

    def means(self, share: np.ndarray) -> RowSparse:
        """Means of the tasks, with a share of each."""
        xp = namespace(self.rows)
        mine = np.flatnonzero(self.places >= 0)
        weights = np.zeros((len(share), self.rows.shape[0]))
        weights[:, self.places[mine]] = share[:, mine]
        return RowSparse(
            np.arange(len(share)), xp.asarray(weights, dtype=self.rows.dtype) @ self.rows
        )

    def scores(self, X: Array, codes: np.ndarray) -> Array:
        """Product of each row of X with that of its task."""
        xp = namespace(self.rows)
        places = self.places[codes]
        touched = np.flatnonzero(places >= 0)
        step = max(1, _PAIR_CELLS // X.shape[1])
        parts = [xp.zeros(1, dtype=self.rows.dtype)]
        for start in range(0, len(touched), step):
            some = touched[start : start + step]
            rows = take(X, some)
            rows = rows.dense(0, len(some)) if is_device_sparse(rows) else rows
            parts.append(row_dots(rows, take(self.rows, places[some])))
        back = np.zeros(len(codes), dtype=np.intp)
        back[touched] = np.arange(len(touched)) + 1
        return take(xp.concat(parts), back)
