"""The command ``comtl``, also as ``python -m comtl``."""

import io
import sys

NEEDED = {
    "cli": frozenset({"click", "rich", "pandas", "pyarrow"}),
    "dask": frozenset({"dask", "distributed"}),
    "report": frozenset({"matplotlib"}),
}
"""Modules by the extra that brings them."""


def main() -> None:
    """Run the command line, or say what to install for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Letters that the terminal lacks are written as escapes.
            stream.reconfigure(errors="backslashreplace")
    try:
        from .commands import comtl

        comtl()
    except ModuleNotFoundError as missing:
        module = (missing.name or "").partition(".")[0]
        extra = next((name for name, modules in NEEDED.items() if module in modules), None)
        if extra is None:
            raise
        sys.exit(f'comtl needs {missing.name} for this: pip install "comtl[{extra}]"')
