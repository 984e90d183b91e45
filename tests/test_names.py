"""A name means one thing: no module and no class is there twice."""

import ast
from collections import Counter
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import comtl
from comtl import baselines

SOURCE = Path(comtl.__file__).parent
MODULES_TWICE = set()
CLASSES_TWICE = set()
MOST_BASES = 4
"""Classes of comtl that an estimator may be made of, itself counted."""
ESTIMATORS = [
    value
    for home in (comtl, baselines)
    for name in home.__all__
    if issubclass(type(value := getattr(home, name)), type) and issubclass(value, BaseEstimator)
]


def twice(names):
    return {name for name, count in Counter(names).items() if count > 1}


def test_no_module_is_there_twice():
    names = [path.stem for path in SOURCE.rglob("*.py")]
    # The lists hold what is left of old doubles: a name that is no longer double leaves its list.
    assert twice(names) - {"__init__", "__main__"} == MODULES_TWICE


def test_no_class_is_there_twice():
    trees = [ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")]
    nodes = (node for tree in trees for node in ast.walk(tree))
    names = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    assert twice(names) == CLASSES_TWICE


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_estimators_are_made_of_few_classes(kind):
    own = [base.__name__ for base in kind.__mro__ if base.__module__.startswith("comtl")]
    assert len(own) <= MOST_BASES, own
