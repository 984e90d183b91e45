"""Write the golden fits anew, where numbers are meant to change.

``PYTHONPATH=src:tests python -m golden.write [part of a name ...]``, with everything that tests
need installed and no change waiting to be committed: the file says from which commit each case is.
With parts of names only the cases that have one of them are made, and the others stay.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib.metadata import version

from sklearn.exceptions import ConvergenceWarning

from golden.cases import CASES
from golden.store import FOLDER, read_cases, read_fits, write_fits

LIBRARIES = ("numpy", "scipy", "scikit-learn", "array-api-compat", "pandas", "torch", "dask")


def git(*words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=FOLDER, text=True).strip()


def main(parts: list[str]) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    chosen = {name for name in CASES if not parts or any(part in name for part in parts)}
    old = read_fits() if parts else {}
    fits = {name: case.run() if name in chosen else old[name] for name, case in CASES.items()}
    commit = git("log", "-1", "--format=%h", "--", "../../src")
    if git("status", "--porcelain", "--", "../../src"):
        commit += " with changes"
    made = {name: case["commit"] for name, case in read_cases().items()}
    commits = {name: commit if name in chosen else made[name] for name in CASES}
    about = {"python": sys.version.split()[0]} | {name: version(name) for name in LIBRARIES}
    write_fits(fits, commits, about)


if __name__ == "__main__":
    main(sys.argv[1:])
