"""Imports run one way, in no circle, for a name that is used, and only what is needed."""

import ast
import importlib
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import pytest

import comtl

SOURCE = Path(comtl.__file__).parent
ORDER = tuple(
    """
    phrases parameters arrays saving rows losses penalties factors unseen_tasks linear solvers
    clusters datafits engine batches adapt models baselines model_selection hierarchical stacking
    distributed evaluation datasets show plot comtl tables cli __main__
    """.split()
)
"""Packages and modules at the top; each imports only from those before it."""
AGAINST_THE_ORDER = {
    ("models.outputs", "distributed"),
    ("models.display", "show"),
    ("models.task_model", "show"),
    ("rows.fit_input", "distributed"),
    ("rows.fit_input", "models"),
}
"""Modules that import from a package behind their own, some only in a function. No more of them."""
FOR_A_SIDE_EFFECT = set()
"""Modules with an import whose name is not used. No more of them."""
HEAVY = {"dask", "distributed", "matplotlib", "pandas", "torch"}
LATER = {"cli", "evaluation", "plot", "show", "tables"}
"""What ``import comtl`` leaves out: libraries, and packages of its own."""
MOST_MODULES = 79
"""Modules of comtl that ``import comtl`` may load. It may only fall."""
MOST_BEHIND_A_BASELINE = 41
"""Modules that the simplest model imports, with what they import, packages not counted for their
parts. It may only fall."""


@dataclass(frozen=True)
class Import:
    """One module imports another, perhaps only in a function or for a type checker."""

    importer: str
    imported: str
    lazy: bool


@cache
def modules() -> dict[str, Path]:
    """Files by the names of their modules below comtl; the package itself is ''."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def targets(node, name):
    """Modules of comtl that an import statement in module ``name`` imports."""
    if isinstance(node, ast.Import):
        absolute = [alias.name for alias in node.names]
    else:
        parts = ["comtl", *filter(None, name.split("."))]
        is_package = modules()[name].name == "__init__.py"
        base = parts[: len(parts) - node.level + is_package] if node.level else []
        base = ".".join([*base, *filter(None, [node.module])])
        absolute = [f"{base}.{alias.name}" for alias in node.names]
    for full in absolute:
        root, _, rest = full.partition(".")
        if root == "comtl":
            # What is no module is a name in one.
            yield rest if rest in modules() else rest.rpartition(".")[0]


def deferred(node):
    """Whether what is in a statement runs later, or never."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


@cache
def imports() -> tuple[Import, ...]:
    found = set()
    for name, path in modules().items():
        tree = ast.parse(path.read_text())
        inner = {id(node) for part in ast.walk(tree) if deferred(part) for node in ast.walk(part)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for target in targets(node, name):
                    found.add(Import(name, target, id(node) in inner))
    return tuple(sorted(found, key=lambda one: (one.importer, one.imported)))


def package_of(name):
    return name.partition(".")[0] or "comtl"


def against_the_order():
    places = {name: place for place, name in enumerate(ORDER)}
    return {
        (one.importer, package_of(one.imported))
        for one in imports()
        if places[package_of(one.importer)] < places[package_of(one.imported)]
    }


def test_the_order_names_every_package_of():
    assert sorted(ORDER) == sorted({package_of(name) for name in modules()})


def test_imports_run_one_way():
    assert against_the_order() - AGAINST_THE_ORDER == set()


def test_what_was_put_right_is_no_exception_any_more():
    assert AGAINST_THE_ORDER - against_the_order() == set()


def test_modules_do_not_import_in_a_circle():
    graph = {name: set() for name in modules()}
    for one in imports():
        if not one.lazy:
            graph[one.importer].add(one.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' <- '.join(error.args[1])}")


def test_nothing_is_imported_for_its_side_effect():
    unused = {
        name
        for name, path in modules().items()
        if path.name != "__init__.py" and "F401" in path.read_text()
    }
    assert unused == FOR_A_SIDE_EFFECT


def test_importing_comtl_loads_little():
    # scikit-learn loads pandas where it is installed.
    code = (
        "import sklearn.base, sys; old = {*sys.modules}; import comtl; print(*{*sys.modules} - old)"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    own = [name.removeprefix("comtl.") for name in loaded if package_of(name) == "comtl"]
    assert HEAVY.isdisjoint(loaded)
    assert LATER.isdisjoint(part for name in own for part in name.split("."))
    assert len(own) <= MOST_MODULES


def test_a_simple_model_needs_few_modules():
    reached, left = set(), ["baselines.pooled"]
    while left:
        if (name := left.pop()) not in reached:
            reached.add(name)
            left += [one.imported for one in imports() if one.importer == name and not one.lazy]
    assert len(reached) <= MOST_BEHIND_A_BASELINE, sorted(reached)


def test_what_benchmarks_and_examples_import_is_there():
    root = Path(__file__).resolve().parents[1]
    files = [*root.glob("benchmarks/**/*.py"), *root.glob("examples/*.py")]
    if not files:
        pytest.skip("a source distribution has no benchmarks")
    missing = []
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("comtl"):
                names = {alias.name for alias in node.names}
                module = importlib.import_module(node.module)
                inside = hasattr(module, "__path__")
                missing += [
                    (path.name, name)
                    for name in names
                    if not hasattr(module, name)
                    and not (inside and find_spec(f"{node.module}.{name}"))
                ]
    assert not missing
