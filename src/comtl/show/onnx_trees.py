"""What trees add to the scores of a stack, as a part of an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..linear import LinearTasks
from ..phrases import some
from ..stacking.fitted_stack import FittedStack, targets_of
from ..stacking.trees import FittedTrees, Forest

LAST = np.array([-1], np.int64)


def tree_scores(
    apply: Callable[..., str], stack: FittedStack, linear: LinearTasks, columns: str
) -> str:
    """Scores that trees add to those of rows for ``columns`` of weights, (n, m).

    All that trees see of a task is constant: its level in the stack below.
    """
    task, label = targets_of(linear)
    base, grown = stack.below(linear), _trees(stack)

    def by_target(values: np.ndarray | float) -> str:
        """Constants of the column of each target, (n, m, d)."""
        each = np.zeros((len(task), 1)) + values
        return apply("Gather", each, columns, axis=0)

    bare = apply("Unsqueeze", "X", np.ones(1, np.int64))
    repeated = apply("Add", bare, by_target(0.0))
    total = by_target(0.0)
    for share, one in grown:
        features = one.features
        constants, levels = [], features.of_columns(base)
        if levels is not None:
            constants.append(levels)
        if features.labelled:
            constants.append(label)
        parts = [repeated, *(by_target(values[:, None]) for values in constants)]
        seen = apply("Concat", *parts, axis=2)
        width = len(features.mean) - features.n_hinges + len(constants)
        score = _with_forest(apply, one.forest, seen, width, by_target(one.forest.constant))
        total = apply("Add", total, apply("Mul", score, np.array(share)))
    units = np.append(stack.scale, stack.scale.mean())[task]
    return apply("Squeeze", apply("Mul", total, by_target(units[:, None])), LAST)


def _trees(stack: FittedStack) -> list[tuple[float, FittedTrees]]:
    """Trees and their weights; others than these and linear members are refused."""
    weights = stack.blends[-1].weights
    found: dict[str, Any] = {name: one for level in stack.members for name, one in level.items()}
    found = {name: one for name, one in found.items() if one.linear is None}
    others = [name for name, one in found.items() if not isinstance(one, FittedTrees)]
    if others:
        raise TypeError(
            f"to_onnx writes linear models and trees, but the members {some(others)} in weights_ "
            "are neither; use save() and load() instead."
        )
    return [(weights[name], one) for name, one in found.items() if name in weights]


def _with_forest(
    apply: Callable[..., str], forest: Forest, seen: str, width: int, score: str
) -> str:
    """Add the sum of trees for what they see of targets, (n, m, width), to scores (n, m, 1).

    By an operator that compares and adds in double precision, as the trees were grown: rounded to
    single precision, a row beside a threshold could go the other way.
    """
    from onnx import numpy_helper

    own = np.arange(len(forest.left))
    leaf = forest.left == own
    stumps = leaf[forest.roots]
    score = apply("Add", score, np.array(forest.value[forest.roots[stumps]].sum()))
    if stumps.all():
        return score
    inner = ~leaf
    # Nodes and leaves are numbered each by themselves.
    number = np.where(leaf, np.cumsum(leaf), np.cumsum(inner)) - 1
    left, right = forest.left[inner], forest.right[inner]
    sums = apply(
        "TreeEnsemble",
        apply("Reshape", seen, np.array([-1, width], np.int64)),
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function=1,  # the sum
        post_transform=0,
        tree_roots=number[forest.roots[~stumps]],
        nodes_featureids=forest.feature[inner],
        nodes_modes=numpy_helper.from_array(np.zeros(inner.sum(), np.uint8)),  # at most
        nodes_splits=numpy_helper.from_array(forest.threshold[inner]),
        nodes_truenodeids=number[left],
        nodes_trueleafs=leaf[left].astype(np.int64),
        nodes_falsenodeids=number[right],
        nodes_falseleafs=leaf[right].astype(np.int64),
        leaf_targetids=np.zeros(leaf.sum(), np.int64),
        leaf_weights=numpy_helper.from_array(forest.value[leaf]),
    )
    return apply("Add", score, apply("Reshape", sums, apply("Shape", score)))
