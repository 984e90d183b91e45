"""What the pages say is run, and what they link to exists.

Python blocks of a page run in order in one namespace and an empty folder: scripts as they stand,
sessions (``>>>``) as doctests. A block whose first line begins with ``# not run`` is skipped; so
are blocks in another language.
"""

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier

import comtl

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    DOCS / "index.md",
    DOCS / "multitask.md",
    *sorted((DOCS / "start").glob("*.md")),
    *sorted((DOCS / "guide").glob("*.md")),
    *sorted((DOCS / "developer").glob("*.md")),
    *sorted((DOCS / "releases").glob("*.md")),
]
LINKED = [
    *sorted(ROOT.glob("*.md")),
    *(
        page
        for page in sorted(DOCS.rglob("*.md"))
        # Written by the build, from pages that are checked where they lie.
        if page.relative_to(DOCS).parts[0] not in ("benchmarks", "project", "auto_examples")
    ),
]
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="a source distribution has no docs/")

FENCE = re.compile(r"^```(\w+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IN_THE_README = {
    "`Multitask…()`, the default": "comtl",
    '`Multitask…(form="linear")`': "comtl linear",
    "mixed model (statsmodels)": "mixed model",
    "GPBoost": "GPBoost",
    "CatBoost, group as category": "CatBoost",
    "MERF": "MERF",
    "scikit-learn's boosting, group encoded": "encoded boosting",
    "ridge, group encoded": "encoded ridge",
    "scikit-lego, hierarchical ridge": "scikit-lego",
    "LightGBM, group as category": "LightGBM",
}
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
# Written by the gallery and by autosummary when the site is built.
BUILT = ("auto_examples/", "api/generated/")


def blocks(page):
    """Yield line number and text of the Python blocks that are to run."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        code = match[2]
        if match[1] in ("python", "pycon") and not code.startswith("# not run"):
            yield text.count("\n", 0, match.start()) + 1, code


def pupils():
    """Draw a small table like the one that the pages speak of."""
    rng = np.random.default_rng(0)
    school = np.repeat(["Ash", "Birch", "Cedar", "Elm", "Fir", "Hazel"], 12)
    code = np.repeat(np.arange(6), 12)
    table = pd.DataFrame({"school": school, "age": rng.integers(14, 17, 72)})
    table["earlier"] = rng.normal(50, 10, 72).round(1)
    slopes, levels = 0.6 + 0.2 * rng.normal(size=6), 4 * rng.normal(size=6)
    table["score"] = levels[code] + slopes[code] * table["earlier"] + rng.normal(0, 4, 72)
    return table


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page, tmp_path, monkeypatch):
    found = list(blocks(page))
    if not found:
        pytest.skip("no block to run")
    monkeypatch.chdir(tmp_path)
    table = pupils()
    table.to_csv("pupils.csv", index=False)
    table.drop(columns="score").to_csv("new.csv", index=False)
    names = {"__name__": "page"}
    if page.name == "multitask.md":  # It begins with a table at hand.
        names |= {"X": table.drop(columns="score"), "y": table["score"]}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for line, code in found:
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
            said = []
            runner.run(test, out=said.append, clear_globs=False)
            names = test.globs  # what the block defined
            assert not said, "".join(said)
        else:
            exec(compile("\n" * line + code, str(page), "exec"), names)


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_install_that_works_from_a_clone_comes_first(page):
    text = page.read_text(encoding="utf-8")
    if 'pip install "comtl' in text:
        clone = re.search(r'pip install "?\.', text)
        assert clone is not None and clone.start() < text.index('pip install "comtl')


def test_the_readme_installs_before_it_imports():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.index("pip install") < text.index("```python")


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        there = (page.parent / target).resolve()
        built = there.is_relative_to(DOCS) and str(there.relative_to(DOCS)).startswith(BUILT)
        assert built or there.exists(), f"{page.name} links to {target}"


def lines_of_tables(text):
    """Entries of the lines of tables by the first, of several the first line."""
    found = {}
    for line in text.splitlines():
        if line.startswith("|"):
            name, *entries = (entry.strip(" *") for entry in line.strip("|").split("|"))
            found.setdefault(name, entries)
    return found


def test_the_readme_has_the_figures_of_the_benchmark():
    shown = lines_of_tables((ROOT / "README.md").read_text(encoding="utf-8"))
    page = (DOCS / "benchmark.md").read_text(encoding="utf-8")
    _, values, classes, *_ = re.split("## (?:Values|Classes|Plots)\n", page)
    of_values, of_classes = lines_of_tables(values), lines_of_tables(classes)
    for name, method in IN_THE_README.items():
        _, rank, error, _, spent, _ = of_values[method]
        own = [error, rank, spent]
        if method in of_classes:
            _, rank, error, _, _, spent, _ = of_classes[method]
            own += [error, rank, spent]
        assert shown[name] == own + [""] * (6 - len(own)), name


FAMILIES = {
    "all": [comtl.MultitaskClassifier(cv=2), comtl.BiFactorClassifierCV(1, cv=2)],
    "`Multitask…`": [comtl.MultitaskClassifier(cv=2)],
    "`Hierarchical…`": [comtl.HierarchicalRegressor()],
    "`BiFactor…`, `TriFactor…`, baselines": [comtl.TriFactorRegressor(1, 1)],
    "names ending in `CV`": [comtl.BiFactorRegressorCV(1, cv=2)],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_readme_names_fitted_attributes(family):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    names = re.findall(r"`(\w+_)`", text.partition(f"\n| {family} |")[2].partition("\n")[0])
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(60, 3)), np.repeat([0, 1, 2], 20)
    y = X[:, 0] + rng.normal(size=60)
    for model in FAMILIES[family]:
        model.fit(X, y > 0 if is_classifier(model) else y, task=task)
        assert names and [name for name in names if not hasattr(model, name)] == []


def test_every_page_of_the_guide_is_listed():
    for folder in ("start", "guide", "developer", "releases"):
        listed = (DOCS / folder / "index.md").read_text(encoding="utf-8").split()
        for page in (DOCS / folder).glob("*.md"):
            assert page.stem == "index" or page.stem in listed


@pytest.mark.parametrize("name", ["", ".baselines", ".datasets", ".plot", ".tables"])
def test_every_public_name_is_in_the_reference(name):
    module = importlib.import_module(f"comtl{name}")
    listed = " ".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    for public in module.__all__:
        assert re.search(rf"\b{public}\b", listed) or public.startswith("__"), public
