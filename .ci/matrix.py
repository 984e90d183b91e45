"""Test in a fresh environment for each Python and for the lowest and newest dependencies.

`make matrix ARGS="--python 3.11 3.14 --resolution lowest -- -k saving"`; what follows `--` goes to
pytest. uv finds or downloads the interpreters; what cannot be had is a row of the table that fails.
The output of each environment is kept in build/matrix/. "nightly" takes NumPy and others as they
are built each night, from the package index that NIGHTLY_INDEX names.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "matrix"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest", "nightly": "highest"}
NIGHTLY = ("numpy", "scipy", "scikit-learn", "pandas")
SHOWN = ("numpy", "scipy", "scikit-learn", "pandas", "torch")
IN_PARALLEL = ("-n", "auto", "--dist", "worksteal")
HEADS = ("Python", "dependencies", "tests", "seconds", *SHOWN)
COUNTS = re.compile(r"^=*\s*(\d+ (?:passed|failed|error).*?) in [\d.]+s", re.M)
VERSIONS = """
from importlib.metadata import distributions as found
import platform, sys
shown = [next((one.version for one in found(name=name)), "-") for name in sys.argv[1:]]
print(platform.python_version(), *shown)
"""
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


def run(*command: object, log: Path) -> bool:
    """Whether a command succeeds; its output is added to the log."""
    words = [str(word) for word in command]
    with log.open("a") as file:
        print("$", *words, file=file, flush=True)
        done = subprocess.run(
            words, cwd=ROOT, env=os.environ | ONE_THREAD, stdout=file, stderr=subprocess.STDOUT
        )
    return done.returncode == 0


def dependencies() -> list[str]:
    """What both distributions name: to be had as wheels, for which lowest bounds are meant."""
    names = set()
    for folder in (ROOT, ROOT / "reproduction"):
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        extras = project.get("optional-dependencies", {}).values()
        for one in [*project["dependencies"], *(one for extra in extras for one in extra)]:
            names.add(re.split(r"[\[<>=~!; ]", one)[0])
    return [f"--only-binary={name}" for name in sorted(names) if not name.startswith("comtl")]


def install(python: str, resolution: str, without: list[str], folder: Path, log: Path) -> str:
    """Make an environment; what went wrong, or nothing."""
    uv = [sys.executable, "-m", "uv"]
    if not run(*uv, "venv", "--clear", "--python", python, folder, log=log):
        return "no such Python"
    leave_out = folder / "overrides.txt"
    leave_out.write_text("".join(f"{name}; sys_platform == 'none'\n" for name in without))
    targets = ["--editable", ".[test]", "--editable", "./reproduction"]
    command = [*uv, "pip", "install", "--python", folder, "--overrides", leave_out, *dependencies()]
    if not run(*command, "--resolution", RESOLUTIONS[resolution], *targets, log=log):
        return "no such dependencies"
    if resolution == "nightly":
        last = ["--upgrade", "--prerelease=allow", "--index", os.environ["NIGHTLY_INDEX"], *NIGHTLY]
        if not run(*uv, "pip", "install", "--python", folder, *last, log=log):
            return "no such dependencies"
    return ""


def row(python: str, resolution: str, without: list[str], tests: list[str]) -> list[str]:
    """Make an environment and test in it."""
    folder, log = PLACE / f"{python}-{resolution}", PLACE / f"{python}-{resolution}.log"
    log.unlink(missing_ok=True)
    if failed := install(python, resolution, without, folder, log):
        return [python, resolution, f"FAILED: {failed}", "", *("" for _ in SHOWN)]
    interpreter, start = folder / "bin" / "python", time.monotonic()
    done = run(
        interpreter, "-m", "pytest", *(tests or ["-n", "auto", "--dist", "worksteal"]), log=log
    )
    seconds = time.monotonic() - start
    found = COUNTS.findall(log.read_text())
    said = ("" if done else "FAILED: ") + (found[-1] if found else "no count")
    versions = subprocess.check_output([interpreter, "-c", VERSIONS, *SHOWN], text=True).split()
    return [versions[0], resolution, said, f"{seconds:.0f}", *versions[1:]]


def main() -> None:
    """Print a line for each environment as it is done; fail where one fails."""
    marks = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    own, tests = sys.argv[1:marks], sys.argv[marks + 1 :]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", nargs="+", default=PYTHONS)
    parser.add_argument(
        "--resolution", nargs="+", default=["lowest", "newest"], choices=RESOLUTIONS
    )
    parser.add_argument("--without", nargs="+", default=[], help="dependencies to leave out")
    options = parser.parse_args(own)
    PLACE.mkdir(parents=True, exist_ok=True)
    lines = [list(HEADS), ["---"] * len(HEADS)]
    for line in lines:
        print("|", " | ".join(line), "|", flush=True)
    for python in options.python:
        for resolution in options.resolution:
            lines.append(row(python, resolution, options.without, tests))
            print("|", " | ".join(lines[-1]), "|", flush=True)
    if any("FAILED" in line[2] for line in lines):
        sys.exit(f"See {PLACE.relative_to(ROOT)}/*.log")


if __name__ == "__main__":
    main()
