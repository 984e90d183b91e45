"""No package grows: lines of Python by package, against a budget that may only fall."""

from collections import Counter
from pathlib import Path

import pytest

import comtl

SOURCE = Path(comtl.__file__).parent
BUDGET = {
    "top": 1597,
    "arrays": 943,
    "baselines": 993,
    "batches": 756,
    "cli": 990,
    "datafits": 1075,
    "datasets": 294,
    "distributed": 1485,
    "engine": 1638,
    "evaluation": 453,
    "hierarchical": 2715,
    "losses": 529,
    "models": 2176,
    "penalties": 732,
    "rows": 1828,
    "saving": 691,
    "show": 1758,
    "solvers": 397,
    "stacking": 2700,
    "tables": 2205,
}
"""Lines of each package; "top" are the modules beside the packages."""
SLACK = 40, 0.03
"""Lines, or the share of a budget if that is more, by which a package may stay below it."""


def sizes():
    lines = Counter()
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).parts
        lines[parts[0] if len(parts) > 1 else "top"] += len(path.read_text().splitlines())
    return lines


def test_the_budget_names_every_package():
    assert set(BUDGET) == set(sizes())


@pytest.mark.parametrize("package", BUDGET)
def test_packages_keep_to_their_budget(package):
    size, budget = sizes()[package], BUDGET[package]
    assert size <= budget, f"{package} has {size} lines, {size - budget} more than its budget"
    slack = max(SLACK[0], int(SLACK[1] * budget))
    assert size >= budget - slack, f"well done: lower the budget of {package} to {size}"
