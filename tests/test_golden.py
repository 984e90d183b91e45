"""Fits come out as they were kept (``golden/``).

How close is said by the tolerance of a case:

- "exact": the same sums in the same order; what a move of code must keep;
- "order": the same algorithm with another order of its sums, or another BLAS;
- "optimum": another way to the same optimum, which is no worse and predicts the same.

``COMTL_GOLDEN=exact`` holds all to the first, on the machine that wrote the numbers.
"""

import os
from importlib.util import find_spec

import numpy as np
import pytest

from golden.cases import CASES
from golden.store import read_fits

SIDE_BY_SIDE = {"exact": 1e-12, "order": 1e-8}
"""NumPy 2.5 on Python 3.14 gives a classifier that differs by 1.8e-9."""
AT_THE_OPTIMUM = ("scores", "overall", "accuracy", "covered")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def golden():
    return read_fits()


def gap(found, expected, scale):
    """Largest difference in parts of ``scale``; what is not a number must be so in both."""
    assert found.shape == expected.shape
    assert (np.isnan(found) == np.isnan(expected)).all()
    return np.nanmax(np.abs(found - expected), initial=0.0) / scale


def largest(values):
    return np.nanmax(np.abs(values), initial=0.0) or 1.0


def assert_close(found, expected, tolerance):
    assert list(found) == list(expected)
    for part, values in expected.items():
        assert gap(found[part], values, largest(values)) <= tolerance, part


def assert_same_optimum(found, expected):
    """No worse, and the same said of rows."""
    for part, rising in (("objective", "log_evidence_" in expected), ("log_evidence_", True)):
        if part in expected:
            worse = (expected[part] - found[part]) * (1.0 if rising else -1.0)
            assert worse <= 1e-6 * abs(expected[part]), part
    for part in expected:
        if part.startswith(("predict", "decision")):
            assert gap(found[part], expected[part], expected.get("spread", 1.0)) <= 1e-4, part
        elif part in AT_THE_OPTIMUM:
            assert gap(found[part], expected[part], largest(expected[part])) <= 1e-4, part


@pytest.mark.parametrize("name", CASES)
def test_fits_are_as_they_were(name, golden):
    case = CASES[name]
    missing = [library for library in case.needs if find_spec(library) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    found = case.run()
    tolerance = os.environ.get("COMTL_GOLDEN", case.tolerance)
    if tolerance == "optimum":
        assert_same_optimum(found, golden[name])
    else:
        assert_close(found, golden[name], SIDE_BY_SIDE[tolerance])


def test_nothing_is_kept_that_is_not_compared(golden):
    assert golden.keys() == CASES.keys()
