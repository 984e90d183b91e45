"""A stack fitted to all rows, and what members without coefficients add to its linear model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays.blocks import single_blas
from ..linear import LinearTasks
from ..saving.registry import belongs, saved
from .blending import Blend
from .members import FittedEstimator, MemberRows, Predicted
from .stack import Stack, fit_all
from .trees import FittedTrees


@saved
@dataclass(frozen=True, eq=False)
class FittedStack:
    """Members of each level, fitted to all rows, their blends, and the unit of each task's y."""

    members: tuple[dict[str, Any], ...]
    blends: tuple[Blend, ...]
    scale: np.ndarray

    @classmethod
    def of(cls, stack: Stack) -> FittedStack:
        """Keep the members that have a weight, and grow their trees on what folds held out."""
        below = stack.blends[0].weights
        members = [one for one in stack.members if one.name in below]
        more = fit_all([one for one in members if one.name not in stack.whole], stack.shared, {})
        known = stack.whole | more
        fitted: list[dict[str, Any]] = [{one.name: known[one.name] for one in members}]
        if stack.trees:
            rows, base = replace(stack, blends=stack.blends[:1]).held_out
            given, grown = (stack.loss, stack.rows.n_hinges, rows, base), stack.trees
            with single_blas():
                fitted.append({it.name: it.fit(*given) for it in grown if it.name in stack.weights})
        return cls(tuple(fitted), stack.blends, stack.rows.units.scale)

    def fits(self, linear: LinearTasks, n_hinges: int) -> bool:
        """Whether the parts, perhaps of a damaged file, belong to a model with these weights."""
        if len(self.members) != 2 or len(self.blends) != 2:
            return False
        width, scale = len(linear.weights.shared), self.scale
        below, above = self.members
        known = set(below), set(below) | set(above)
        named = all(set(one.weights) <= some for one, some in zip(self.blends, known, strict=True))
        numbers = [number for one in self.blends for number in (one.shift, *one.weights.values())]
        units = scale.dtype.kind == "f" and scale.shape == linear.tasks.shape
        if not (named and units and np.isfinite([*numbers, *scale]).all()):
            return False
        trees = all(
            belongs(one, FittedTrees) and one.fits(width, n_hinges) for one in above.values()
        )
        return trees and all(
            belongs(one, FittedEstimator) and _alike(one.model._linear, linear)
            for one in below.values()
        )

    def predicted(self, rows: MemberRows) -> dict[str, Predicted]:
        """What each member predicts, by name."""
        below, *above = self.members
        predicted = {name: one.score(rows) for name, one in below.items()}
        for trees in above:
            base = self.blends[0](predicted)
            predicted |= {name: one.score(rows, base) for name, one in trees.items()}
        return predicted

    def nonlinear_scores(
        self,
        X: Any,
        codes: np.ndarray | None,
        linear: LinearTasks,
        row: np.ndarray | None = None,
    ) -> np.ndarray:
        """What members without coefficients add to the scores of rows.

        For the columns of weights that ``codes`` name, or of every row for all tasks; ``row`` is
        the row of each code, if not the one in its place.
        """
        tasks, places = linear.tasks, linear.columns.places
        codes = np.tile(np.arange(len(tasks)), (X.shape[0], 1)) if codes is None else codes
        if codes.ndim == 2:
            row = np.repeat(np.arange(len(codes)), codes.shape[1])
        known = places >= 0
        columns = np.argwhere(known)[np.argsort(places[known])]
        task, label = columns[codes.ravel()].T
        # Last of the places is a task never seen, which has the mean unit.
        task = np.where(task < len(tasks), task, -1)
        none = np.zeros(len(task))
        predicted = self.predicted(MemberRows(X, row, task, label, tasks, none, none))
        weights = self.blends[-1].weights
        nonlinear = [name for name in weights if predicted[name].table is None]
        added = sum((weights[name] * predicted[name].score for name in nonlinear), none)
        return (np.append(self.scale, self.scale.mean())[task] * added).reshape(codes.shape)


def _alike(part: LinearTasks, whole: LinearTasks) -> bool:
    """Whether a member has weights of the same tasks and classes, for some of the columns."""
    narrow = len(part.weights.shared) <= len(whole.weights.shared)
    same = np.array_equal(part.columns.places, whole.columns.places)
    return narrow and same and np.array_equal(part.tasks, whole.tasks)
