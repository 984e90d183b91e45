"""Objects made of arrays with one leading axis: parts of them, and choices between two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar

from ..arrays import Array, namespace

Tree = TypeVar("Tree")


def tree_map(change: Callable[..., Array], first: Tree, *others: Tree) -> Tree:
    """Apply a function to the arrays of objects of one form; numbers and names stay.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.batches.pytrees import tree_map
    >>> tree_map(lambda a, b: a + b, {"x": np.ones(2), "n": 3}, {"x": np.ones(2), "n": 3})
    {'x': array([2., 2.]), 'n': 3}
    """
    return _tree_map(change, first, *others)


def _tree_map(change: Callable[..., Array], first: Any, *others: Any) -> Any:
    if hasattr(first, "shape"):
        return change(first, *others)
    if isinstance(first, dict):
        return {k: _tree_map(change, v, *(o[k] for o in others)) for k, v in first.items()}
    if is_dataclass(first):
        kind: Any = type(first)
        return kind(
            *(
                _tree_map(change, getattr(first, name), *(getattr(o, name) for o in others))
                for name in _names(kind)
            )
        )
    return first


@lru_cache
def _names(kind: Any) -> list[str]:
    return [entry.name for entry in fields(kind)]


def tree_take_pairs(which: Array, new: Tree, old: Tree) -> Tree:
    """Return the new object where ``which`` (B,) holds, the old one elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.batches.pytrees import tree_take_pairs
    >>> tree_take_pairs(np.array([True, False]), np.ones((2, 1)), np.zeros((2, 1)))
    array([[1.],
           [0.]])
    """
    xp = namespace(which)

    def choose(one: Array, other: Array) -> Array:
        return one if one is other else xp.where(along(which, one.ndim), one, other)

    return tree_map(choose, new, old)


def tree_take(tree: Tree, places: Array) -> Tree:
    """Return the entries at some places of the leading axis.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.batches.pytrees import tree_take
    >>> tree_take(np.array([5.0, 6.0, 7.0]), np.array([2, 0]))
    array([7., 5.])
    """
    xp = namespace(places)
    return tree_map(lambda values: xp.take(values, places, axis=0), tree)


def tree_slice(tree: Tree, part: slice) -> Tree:
    """Return a slice of the leading axis.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.batches.pytrees import tree_slice
    >>> tree_slice(np.array([5.0, 6.0, 7.0]), slice(1, 3))
    array([6., 7.])
    """
    return tree_map(lambda values: values[part, ...], tree)


def tree_concat(trees: list[Tree]) -> Tree:
    """Return objects of one form one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.batches.pytrees import tree_concat
    >>> tree_concat([np.zeros(1), np.ones(2)])
    array([0., 1., 1.])
    """
    if len(trees) == 1:
        return trees[0]
    return tree_map(lambda *parts: namespace(parts[0]).concat(list(parts), axis=0), *trees)


def along(values: Array, ndim: int) -> Array:
    """One number a fit, (B,), with axes of length one up to ``ndim``.

    Examples
    --------
    >>> import numpy as np
    >>> from comtl.batches.pytrees import along
    >>> along(np.ones(4), 3).shape
    (4, 1, 1)
    """
    return values[(slice(None), *[None] * (ndim - 1))]
