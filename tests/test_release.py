"""What a release says of itself is one thing, wherever it is said."""

import tomllib
from pathlib import Path

import pytest

import comtl

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
