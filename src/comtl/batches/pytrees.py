"""Objects made of arrays with one leading axis: parts of them, and choices between two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar

from ..arrays import Array, namespace
from ..arrays.algebra import along

Tree = TypeVar("Tree")


def tree_map(change: Callable[..., Array], first: Any, *others: Any) -> Any:
    """Apply a function to the arrays of objects of one form; numbers and names stay."""
    if hasattr(first, "shape"):
        return change(first, *others)
    if isinstance(first, dict):
        return {k: tree_map(change, v, *(o[k] for o in others)) for k, v in first.items()}
    if is_dataclass(first):
        kind: Any = type(first)
        columns = ([getattr(tree, name) for tree in (first, *others)] for name in _names(kind))
        return kind(*(tree_map(change, *column) for column in columns))
    return first


@lru_cache
def _names(kind: Any) -> list[str]:
    return [entry.name for entry in fields(kind)]


def tree_take_pairs(which: Array, new: Tree, old: Tree) -> Tree:
    """Return the new object where ``which`` (B,) holds, the old one elsewhere."""
    xp = namespace(which)

    def choose(one: Array, other: Array) -> Array:
        return one if one is other else xp.where(along(which, one.ndim), one, other)

    return tree_map(choose, new, old)


def tree_take(tree: Tree, places: Array) -> Tree:
    """Return the entries at some places of the leading axis."""
    xp = namespace(places)
    return tree_map(lambda values: xp.take(values, places, axis=0), tree)


def tree_slice(tree: Tree, part: slice) -> Tree:
    """Return a slice of the leading axis."""
    return tree_map(lambda values: values[part, ...], tree)


def tree_concat(trees: list[Tree]) -> Tree:
    """Return objects of one form one after the other."""
    if len(trees) == 1:
        return trees[0]
    return tree_map(lambda *parts: namespace(parts[0]).concat(list(parts), axis=0), *trees)
