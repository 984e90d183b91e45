"""Fixtures and settings shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Derandomised, so that a failure in one run is a failure in every run.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real data sets, named by the environment variable COMTL_DATA."""
    value = os.environ.get("COMTL_DATA")
    if not value:
        pytest.skip("real data not asked for: set COMTL_DATA to the folder that holds it")
    folder = Path(value)
    if not folder.is_dir():
        pytest.skip(f"COMTL_DATA names {value!r}, which is not a folder")
    return folder
