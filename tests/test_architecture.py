"""What docs/architecture.md says of the code is as the code is."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
MOST = {"BiFactorRegressor": (13, 5), "MultitaskRegressor": (15, 8)}
"""Modules on the walk through a fit, and returns to one that was left. They may only fall."""


@pytest.fixture(scope="module")
def architecture():
    if not DOCS.is_dir():
        pytest.skip("a source distribution has no docs/")
    spec = importlib.util.spec_from_file_location("architecture", DOCS / "architecture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_shows_the_packages_of_now(architecture):
    drawn = (DOCS / "images" / "packages.svg").read_text(encoding="utf-8")
    assert drawn == architecture.picture(), "run python docs/architecture.py"


def test_the_page_describes_the_code_of_now(architecture):
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    assert text == architecture.page(text), "run python docs/architecture.py"


@pytest.mark.parametrize("name", MOST)
def test_fits_are_short_walks(architecture, name):
    visited, back = architecture.figures(architecture.walk(architecture.fits()[name]))
    assert visited <= MOST[name][0] and back <= MOST[name][1]
