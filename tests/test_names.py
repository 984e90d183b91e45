"""A name means one thing: no module and no class is there twice."""

import ast
from collections import Counter
from pathlib import Path

import comtl

SOURCE = Path(comtl.__file__).parent
MODULES_TWICE = set()
CLASSES_TWICE = set()


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
