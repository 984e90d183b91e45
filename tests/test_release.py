"""What a release says of itself is one thing, wherever it is said."""

import importlib
import inspect
import pkgutil
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import comtl
from comtl import datasets
from comtl.parameters import FORMER_PARAMETERS, REMOVED
from comtl.tables.fitting import FORMER_MODELS

ROOT = Path(__file__).resolve().parents[1]
REPRODUCTION = ROOT / "reproduction"
pytestmark = pytest.mark.skipif(
    not REPRODUCTION.is_dir(), reason="a source distribution has no reproduction/"
)


def project(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def test_the_two_distributions_have_one_version():
    paper = project(REPRODUCTION)
    assert paper["version"] == comtl.__version__
    assert f"comtl[cli,report]=={comtl.__version__}" in paper["dependencies"]


def test_the_version_is_one_wherever_it_is_said():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == recipe()["package"]["version"] == comtl.__version__
    assert (ROOT / "docs" / "releases" / f"{comtl.__version__}.md").exists()


def test_requirements_are_names_not_addresses():
    # An index refuses others.
    ours, papers = project(ROOT), project(REPRODUCTION)
    for one in [*ours["dependencies"], *papers["dependencies"]]:
        assert "@" not in one
    for extra in ours["optional-dependencies"].values():
        assert not [one for one in extra if "@" in one]


def test_the_two_distributions_have_one_licence():
    assert project(REPRODUCTION)["license"] == project(ROOT)["license"]
    assert (REPRODUCTION / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_citation_has_what_readers_of_the_format_need():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited.keys() >= {"cff-version", "message", "title", "authors", "type", "version"}
    assert cited["license"] == project(ROOT)["license"]
    (paper,) = cited["references"]
    names = [author["family-names"] for author in paper["authors"]]
    assert (names, paper["year"]) == (["Murugesan", "Carbonell", "Yang"], 2017)


def recipe():
    """The recipe of conda, with its few variables as they are."""
    text = (ROOT / "conda" / "meta.yaml").read_text()
    values = dict(re.findall(r"{% set (\w+) = \"(.+)\" %}", text))
    text = re.sub(r"^{%.*%}$", "", text, flags=re.MULTILINE)
    return yaml.safe_load(re.sub(r"{{ (\w+) }}", lambda m: values.get(m[1], m[1]), text))


def bounds(requirements):
    """Lowest version by name, as conda names things."""
    other = {"dask": "dask-core", "matplotlib": "matplotlib-base"}
    pairs = (re.match(r"([\w-]+)(?:\[.*\])? ?>=([\d.]+)$", one).groups() for one in requirements)
    return {other.get(name, name): lowest for name, lowest in pairs}


def test_the_recipe_of_conda_has_the_same_dependencies():
    ours, conda = project(ROOT), recipe()["requirements"]
    python = "python" + ours["requires-python"]
    assert bounds(conda["run"]) == bounds([python, *ours["dependencies"]])
    extras = ours["optional-dependencies"]
    users = [one for name in ("cli", "dask", "report") for one in extras[name]]
    assert bounds(conda["run_constrained"]) == bounds(users)
    (build,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert bounds([build]).items() <= bounds([*conda["host"][::2]]).items()


def former_names():
    """Names of before and of now, as the code has them: (old, new)."""
    yield from FORMER_PARAMETERS.items()
    yield from ((old, form) for old, form in FORMER_MODELS.items() if old != form)
    for found in pkgutil.walk_packages(comtl.__path__, "comtl."):
        if found.name.endswith("__main__"):
            continue
        for _, kind in inspect.getmembers(importlib.import_module(found.name), inspect.isclass):
            for old, value in vars(kind).items():
                text = getattr(value, "__doc__", None) or ""
                if isinstance(value, property) and text.startswith("Former name of ``"):
                    yield old, text.split("``")[1]


def test_the_migration_page_has_every_former_name_and_no_other():
    text = (ROOT / "docs" / "releases" / "migration.md").read_text()
    replaced, _, rest = text.partition("\n## Moved\n")
    listed = {(old, new) for new, old in re.findall(r"`(\w+)` \(was `(\w+)`\)", replaced)}
    assert listed == set(former_names())
    forms = [name for name, form in FORMER_MODELS.items() if name == form]
    assert all(f"`--model {name}` is `--form {name}`" in replaced for name in forms)
    moved, _, rest = rest.partition("\n## Removed\n")
    assert set(re.findall(r"`(load_\w+)`", moved)) == set(datasets.MOVED)
    rows = re.findall(r"^\| (`.*?) \|", rest.partition("\n## ")[0], re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == REMOVED.keys()


def test_the_workflow_calls_targets_that_there_are():
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())
    steps = [step for job in flow["jobs"].values() for step in job["steps"]]
    called = {name for step in steps for name in re.findall(r"make (\w+)", step.get("run", ""))}
    assert called == {"dist", "docs", "lint", "matrix", "soak"}
    targets = re.findall(r"^(\w+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert called <= set(targets)
    assert all("run" in step or "uses" in step for step in steps)
    assert flow[True]["schedule"], "YAML reads the key `on` as True"


def script(name):
    """A module of .ci/."""
    sys.path.insert(0, str(ROOT / ".ci"))
    try:
        return importlib.import_module(name)
    finally:
        del sys.path[0]


def test_the_workflow_and_the_matrix_have_the_same_versions():
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())
    axes, matrix = flow["jobs"]["matrix"]["strategy"]["matrix"], script("matrix")
    assert tuple(axes["python"]) == matrix.PYTHONS
    assert set(axes["resolution"]) < matrix.RESOLUTIONS.keys()
    assert f">={matrix.PYTHONS[0]}" == project(ROOT)["requires-python"]


@pytest.mark.parametrize(
    ("end", "count"),
    [
        ("== 2 failed, 3 passed, 1 skipped in 1.52s ==", "2 failed, 3 passed, 1 skipped"),
        ("2918 passed, 4 skipped in 615.16s (0:10:15)", "2918 passed, 4 skipped"),
    ],
)
def test_the_matrix_reads_what_pytest_counts(end, count):
    assert script("matrix").COUNTS.findall(f"before\n{end}\n") == [count]


def test_sites_of_versions_lie_beside_each_other(tmp_path):
    built, site = tmp_path / "built", tmp_path / "site"
    built.mkdir()
    for version in ("0.9.0", "0.10.0", "0.11.0.dev0"):
        (built / "index.html").write_text(version)
        script("place_docs").place(built, site, version)
    assert (site / "0.9.0" / "index.html").read_text() == "0.9.0"
    assert (site / "dev" / "index.html").read_text() == "0.11.0.dev0"
    page = (site / "index.html").read_text()
    assert re.findall('href="(.*?)/', page) == ["0.10.0", "0.9.0", "dev"]
    assert "url=0.10.0/" in page
