"""Boosted trees above linear members, grown by scikit-learn and kept as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..losses import Loss
from ..saving.registry import saved
from .members import MemberRows, Predicted

MAX_ROUNDS, PATIENCE = 400, 15
"""Most trees of a member, and rounds without a gain on held-out rows after which it ends."""
FIRST_CHUNK = 8
"""Trees that share a quadratic model of a loss that has none; twice as many in each next one."""
MIN_CURVATURE = 1e-2
"""Least curvature of a row in that model: smaller ones would ask for the largest steps."""
MAX_BINS = 64
"""Values of a column that trees tell apart."""
MAX_DEPTH = 64
"""Steps to a leaf, which trees of a few leaves stay far below."""
CELLS = 2**15
SETTINGS: dict[str, Any] = {"learning_rate": 0.1, "l2_regularization": 5.0, "random_state": 0}


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of columns; scikit-learn's own cost more than the trees where rows have weights."""

    ends: list[np.ndarray]  # upper ends of the bins of each column but the last

    @classmethod
    def of(cls, table: np.ndarray) -> Bins:
        """Bins of as many rows each, or of one value."""
        return cls([_bin_ends(column) for column in table.T])

    def __call__(self, table: np.ndarray) -> np.ndarray:
        """Number of the bin of each value."""
        parts = zip(self.ends, table.T, strict=True)
        return np.stack([np.searchsorted(*one) for one in parts], axis=1).astype(np.float64)

    def end(self, column: np.ndarray, number: np.ndarray) -> np.ndarray:
        """Upper ends of bins."""
        starts = np.cumsum([0, *map(len, self.ends)])[:-1]
        return np.concatenate(self.ends)[starts[column] + np.floor(number).astype(np.intp)]


def _bin_ends(values: np.ndarray) -> np.ndarray:
    values = np.sort(values)
    known = values[np.append(True, values[1:] > values[:-1])]
    if len(known) > MAX_BINS:
        known = np.unique(np.quantile(values, np.linspace(0.0, 1.0, MAX_BINS), method="nearest"))
    return 0.5 * (known[1:] + known[:-1])


@saved
@dataclass(frozen=True, eq=False)
class Forest:
    """Trees as arrays: a node sends a row left where its feature is at most the threshold.

    Leaves point at themselves.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    roots: np.ndarray  # first node of each tree
    constant: float

    @classmethod
    def of(cls, grown: Sequence[Any], bins: Bins, constant: float) -> Forest:
        """Trees of models that scikit-learn fitted to bins, one after the other."""
        nodes = [tree.nodes for one in grown for (tree,) in one._predictors]
        sizes = np.array([len(one) for one in nodes], dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        if not nodes:
            none = np.zeros(0)
            places = none.astype(np.int64)
            return cls(places, none, places, places, none, starts, constant)
        joined = np.concatenate(nodes)
        own, first = np.arange(len(joined)), np.repeat(starts, sizes)
        leaf = joined["is_leaf"].astype(bool)
        left, right = (np.where(leaf, own, joined[side] + first) for side in ("left", "right"))
        value = np.where(leaf, joined["value"], 0.0)
        feature = np.where(leaf, 0, joined["feature_idx"]).astype(np.int64)
        # Between two numbers of bins, of which the lower one says where it ends.
        threshold = np.full(len(joined), np.inf)
        threshold[~leaf] = bins.end(feature[~leaf], joined["num_threshold"][~leaf])
        return cls(feature, threshold, left, right, value, starts, constant)

    @cached_property
    def depth(self) -> int:
        """Steps from the roots to the deepest leaf, but no more than a file may ask for."""
        reached, depth = np.unique(self.roots), 0
        while len(reached := reached[self.left[reached] != reached]) and depth <= MAX_DEPTH:
            reached = np.unique(np.r_[self.left[reached], self.right[reached]])
            depth += 1
        return depth

    def fits(self, width: int) -> bool:
        """Whether the arrays, perhaps of a damaged file, are trees of so many features."""
        count = len(self.feature)
        places = {"feature": width, "left": count, "right": count, "roots": count}
        lengths = {"threshold": count, "value": count, **dict.fromkeys(places, count)}
        lengths["roots"] = len(self.roots)
        for name, length in lengths.items():
            part = getattr(self, name)
            if part.shape != (length,) or part.dtype.kind != ("i" if name in places else "f"):
                return False
            if name in places and ((part < 0) | (part >= places[name])).any():
                return False
        leaf = self.left == np.arange(count)
        numbers = np.concatenate([self.value, self.threshold[~leaf], [self.constant]])
        leaves = np.array_equal(leaf, self.right == np.arange(count))
        return leaves and bool(np.isfinite(numbers).all()) and self.depth <= MAX_DEPTH

    def predict(self, table: np.ndarray) -> np.ndarray:
        """Sum of the trees for rows of features, and the constant."""
        total, width = np.full(len(table), self.constant), table.shape[1]
        step = max(1, CELLS // max(len(self.roots), 1))
        feature, roots = self.feature.astype(np.int32), self.roots.astype(np.int32)
        children = np.stack([self.right, self.left], axis=1).astype(np.int32).ravel()
        for start in range(0, len(table), step):
            block = np.ascontiguousarray(table[start : start + step])
            row = np.arange(0, block.size, width, dtype=np.int32)[:, None]
            node = np.broadcast_to(roots, (len(block), len(roots)))
            for _ in range(self.depth):
                goes = block.take(feature.take(node) + row) <= self.threshold.take(node)
                node = children.take(2 * node + goes)
            total[start : start + step] += self.value.take(node).sum(axis=1)
        return total


@saved
@dataclass(frozen=True, eq=False)
class TreeFeatures:
    """What trees see: the columns of X, and the level of the task at the mean row.

    The score below and the slopes of the task made trees worse (benchmarks/bench_stack_choices.md).
    """

    n_hinges: int  # columns behind those of X that trees have no use for
    mean: np.ndarray  # of all columns
    levelled: bool  # whether the stack below has coefficients
    labelled: bool  # whether they see of which class a target is

    @classmethod
    def of(cls, n_hinges: int, rows: MemberRows, base: Predicted) -> TreeFeatures:
        """Features by the rows of a fit."""
        size = rows.X.shape[0]
        count = rows.weights if rows.row is None else np.bincount(rows.row, rows.weights, size)
        mean = np.average(rows.X.astype(np.float64), axis=0, weights=count)
        return cls(n_hinges, mean, base.table is not None, bool(rows.label.any()))

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.mean) - self.n_hinges + self.levelled + self.labelled

    def fits(self, width: int, n_hinges: int) -> bool:
        """Whether the parts, perhaps of a damaged file, belong to rows of so many columns."""
        numbers = self.mean.dtype.kind == "f" and bool(np.isfinite(self.mean).all())
        return numbers and self.mean.shape == (width,) and self.n_hinges == n_hinges

    def of_columns(self, base: Predicted) -> np.ndarray | None:
        """What trees see of each column of weights of the stack below, if it has any."""
        if not self.levelled or base.table is None:
            return None
        return base.table() @ np.append(self.mean, 1.0)

    def __call__(self, rows: MemberRows, base: Predicted) -> np.ndarray:
        """Features of targets."""
        X = rows.X.toarray() if sparse.issparse(rows.X) else rows.X
        X = X if rows.row is None else X[rows.row]
        parts, levels = [X[:, : X.shape[1] - self.n_hinges]], self.of_columns(base)
        if levels is not None:
            parts.append(levels[base.column])
        if self.labelled:
            parts.append(rows.label)
        return np.column_stack(parts).astype(np.float64, copy=False)


@dataclass(frozen=True)
class TreeMember:
    """Trees on what the stack below leaves, or on the targets themselves."""

    name: str
    above_score: bool = True
    leaves: int = 8
    rounds: int = MAX_ROUNDS

    def offset(self, base: Predicted) -> Any:
        """Score that the trees add to."""
        return base.score if self.above_score else 0.0

    def stages(
        self,
        loss: Loss,
        n_hinges: int,
        rows: MemberRows,
        base: Predicted,
        held: MemberRows,
        held_base: Predicted,
    ) -> np.ndarray:
        """Scores of rows held out after each round, until these gain no more, ``(n, rounds)``."""
        features = TreeFeatures.of(n_hinges, rows, base)
        offset, start = self.offset(base), self.offset(held_base)
        scores = np.zeros(len(held.y)) + start
        found = [scores]
        table = features(rows, base)
        bins = Bins.of(table)
        shown = bins(features(held, held_base))
        best, last = float("inf"), 0
        for _, more in self._grow(loss, bins(table), rows, offset, (shown, held, start)):
            found += [scores + one for one in more]
            scores = found[-1]
            values = [float(held.weights @ loss.value(held.y, one)) for one in found[last:]]
            if min(values) >= best:
                break
            best, last = min(values), len(found)
        return np.stack(found, axis=1)

    def _grow(
        self,
        loss: Loss,
        table: np.ndarray,
        rows: MemberRows,
        offset: Any,
        held: tuple[np.ndarray, MemberRows, Any] | None = None,
    ) -> Iterator[tuple[Any, Any]]:
        """Models of trees, one for each quadratic model of the loss; stages of held-out rows."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        scores = np.zeros(len(rows.y)) + offset
        held_scores: Any = None if held is None else np.zeros(len(held[1].y)) + held[2]
        left, chunk = self.rounds, self.rounds if loss.quadratic else FIRST_CHUNK
        unit = unit_of(loss, rows, offset)
        while left > 0:
            chunk = min(chunk, left)
            response, weight = working(loss, rows, scores)
            model = HistGradientBoostingRegressor(
                max_iter=chunk,
                max_leaf_nodes=self.leaves,
                min_samples_leaf=int(np.clip(len(scores) // 40, 3, 20)),
                early_stopping=held is not None,
                n_iter_no_change=PATIENCE,
                tol=0.0,
                **SETTINGS,
            )
            if held is None:
                model.fit(table, response / unit, weight)
                more = None
            else:
                shown, rest, _ = held
                goal, share = working(loss, rest, held_scores)
                test = {"X_val": shown, "y_val": goal / unit, "sample_weight_val": share}
                model.fit(table, response / unit, weight, **test)
                more = [unit * one for one in model.staged_predict(shown)]
                held_scores = held_scores + more[-1]
            yield model, more
            left, chunk = left - chunk, 2 * chunk
            if left > 0:
                scores = scores + unit * model.predict(table)

    def fit(self, loss: Loss, n_hinges: int, rows: MemberRows, base: Predicted) -> FittedTrees:
        """Fit to all targets."""
        features = TreeFeatures.of(n_hinges, rows, base)
        table = features(rows, base)
        bins = Bins.of(table)
        codes, offset = bins(table), self.offset(base)
        grown = [one for one, _ in self._grow(loss, codes, rows, offset)]
        bare = Forest.of(grown, bins, 0.0)
        constant = sum(float(one.predict(codes[:1])[0]) for one in grown)
        constant -= float(bare.predict(table[:1])[0])
        unit = unit_of(loss, rows, offset)
        forest = replace(bare, value=unit * bare.value, constant=unit * constant)
        return FittedTrees(features, forest)


def unit_of(loss: Loss, rows: MemberRows, offset: Any) -> float:
    """Unit of targets, since trees sum in single precision: a power of two keeps all digits."""
    most = float(np.abs(rows.y - offset).max()) if loss.quadratic else 1.0
    return 2.0 ** np.floor(np.log2(most or 1.0))


def working(loss: Loss, rows: MemberRows, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Steps that the quadratic model of the loss asks for, and their weights."""
    curvature = np.maximum(loss.curvature(rows.y, scores), MIN_CURVATURE)
    return -loss.derivative(rows.y, scores) / curvature, rows.weights * curvature


@saved
@dataclass(frozen=True, eq=False)
class FittedTrees:
    """Trees of a member, and what they see of rows."""

    features: TreeFeatures
    forest: Forest

    linear = None

    def fits(self, width: int, n_hinges: int) -> bool:
        """Whether the parts, perhaps of a damaged file, belong to rows of so many columns."""
        return self.features.fits(width, n_hinges) and self.forest.fits(self.features.width)

    def score(self, rows: MemberRows, base: Predicted | None) -> Predicted:
        """What the trees add to what the stack below predicts of targets."""
        assert base is not None
        return Predicted(self.forest.predict(self.features(rows, base)))
