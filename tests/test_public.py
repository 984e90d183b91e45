"""The public interface is as it was kept in ``golden/public.json``.

A change that is meant goes into the file by ``PYTHONPATH=src:tests python -m golden.public``.
"""

import pytest

from golden.public import public, read_public


def test_signatures_and_docstrings_describe_the_same():
    pytest.importorskip("pyarrow", reason="comtl.tables needs pyarrow")
    pytest.importorskip("matplotlib", reason="comtl.plot needs matplotlib")
    assert public() == read_public()
