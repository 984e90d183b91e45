"""The command ``comtl``, also as ``python -m comtl``."""

from __future__ import annotations

import sys

NEEDED = frozenset({"click", "rich", "matplotlib", "pandas", "pyarrow", "snowballstemmer"})
"""Modules of the extra ``reproduce``."""


def main() -> None:
    """Run the command line, or say what to install for it.

    Examples
    --------
    >>> import sys
    >>> from unittest import mock
    >>> from comtl.cli import main
    >>> with mock.patch.object(sys, "argv", ["comtl", "--version"]):
    ...     main()
    Traceback (most recent call last):
    SystemExit: 0
    """
    try:
        from .commands import comtl

        comtl()
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in NEEDED:
            raise
        sys.exit(f'comtl needs {missing.name} for this: pip install "comtl[reproduce]"')
