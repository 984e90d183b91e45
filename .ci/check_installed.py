"""Try the wheels of dist/ where there is no checkout, in fresh environments and empty folders.

Commands get nothing of the caller's environment variables; what is read from the checkout (the
demonstration, pages, code of a user) is copied first. pip needs a network.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from build_dist import DIST, ROOT, require
from fresh import environment, install, packages, run

MOST_GROWTH, MOST_TIME, BASELINE = 40e6, 1.3, "sklearn.linear_model"
"""Bytes that pip adds to scikit-learn, and the time of an import over that of the baseline."""
ROUNDS = 15
FREE = re.compile(r"BSD|MIT|Apache|PSF|Python Software Foundation|ISC|HPND|Zlib|CNRI", re.I)
COPYLEFT = re.compile(r"GPL|General Public|Affero", re.I)
LICENCES = """
from importlib.metadata import distributions
for one in distributions():
    data = one.metadata
    kinds = [c for c in data.get_all("Classifier") or () if c.startswith("License ::")]
    words = data["License-Expression"] or " ".join(kinds) or (data["License"] or "").split("\\n")[0]
    print(one.name, words, sep="\\t")
"""
TABLES = """
import numpy as np, pandas as pd
rng = np.random.default_rng(0)
table = pd.DataFrame({"school": np.repeat(["Ash", "Birch", "Cedar", "Elm"], 30)})
table["pupil"], table["age"] = range(120), rng.integers(14, 17, 120)
table["score"] = 3 * table.age + table.school.map(len) + rng.normal(size=120)
table.to_csv("pupils.csv", index=False)
table.drop(columns="score").to_csv("new.csv", index=False)
"""
LIBRARIES = ("/lib", "/lib64", "/usr/lib64", "/usr/lib")
ENTER = """
import os, sys
os.chdir("/ground")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
BARE = """
import comtl, os, pathlib, shutil
tools = [name for name in ("cc", "gcc", "clang", "git", "sh") if shutil.which(name)]
places = [name for name in ("/bin", "/usr/bin", "/etc", "/home") if os.path.exists(name)]
try:
    pathlib.Path(comtl.__file__).with_name("x").write_text("")
except OSError:
    written = "read-only"
print(tools, places, os.environ.get("HOME"), written)
"""


def size(folder: Path) -> int:
    """Bytes of all files, byte code among them."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def seconds(python: Path, modules: Sequence[str], cwd: Path) -> list[float]:
    """Median time of an import of each, measured in turns."""
    code = "from time import perf_counter as t; start = t(); import {}; print(t() - start)"
    turns = [
        [float(run(python, "-c", code.format(name), cwd=cwd)) for name in modules]
        for _ in range(ROUNDS)
    ]
    return [median(times) for times in zip(*turns, strict=True)]


def check_licences(python: Path, cwd: Path) -> None:
    """Check that all that is installed is free, and none of it copyleft."""
    kinds = dict(line.split("\t") for line in run(python, "-c", LICENCES, cwd=cwd).splitlines())
    unclear = {name: text for name, text in kinds.items() if not FREE.search(text)}
    unclear |= {name: text for name, text in kinds.items() if COPYLEFT.search(text)}
    require(not unclear, f"free licences of {len(kinds)} distributions {unclear or ''}")


def check_plain(work: Path, wheel: Path) -> None:
    """Check the wheel alone: what it adds, its import, and the demonstration on bare ground."""
    python = environment(work / "plain", "scikit-learn")
    before = size(packages(python))
    install(python, wheel)
    grown = size(packages(python)) - before
    require(grown <= MOST_GROWTH, f"{grown / 1e6:.1f} MB more than scikit-learn alone")
    names = (BASELINE, "comtl", "sklearn")
    theirs, ours, bare = seconds(python, names, work)
    times = f"import comtl {1e3 * ours:.0f} ms, {BASELINE} {1e3 * theirs:.0f} ms, bare sklearn"
    times += f" {1e3 * bare:.0f} ms, medians of {ROUNDS}"
    require(ours <= MOST_TIME * theirs, f"{times}: ratio to {BASELINE} {ours / theirs:.2f}")
    ground = work / "ground"
    ground.mkdir()
    shutil.copy(ROOT / "examples" / "demo.py", ground)
    root = work / "root"
    root.mkdir()
    ground.chmod(0o777)
    seen = (*LIBRARIES, Path(sys.base_prefix, "lib"), python.parents[1])
    there = [ROOT / ".ci" / "container.sh", root, ground, *seen, "--", python, "-c", ENTER]
    found = run(*there, "-c", BARE, cwd=work, PATH=os.defpath).strip()
    require(found == "[] [] None read-only", f"a place without tools and home: {found}")
    print(run(*there, "demo.py", cwd=work, PATH=os.defpath))
    require((ground / "comtl-demo.html").stat().st_size > 10_000, "demonstration and its report")


def check_documented(work: Path, *wheels: object) -> None:
    """Check both wheels with the extras: licences, blocks and commands of pages, and types."""
    python = environment(work / "full", *wheels)
    check_licences(python, work)
    install(python, "pytest", "mypy", "statsmodels")  # The last for a page of the guide.
    pages = work / "pages"
    shutil.copytree(ROOT / "docs", pages / "docs")
    (pages / "tests").mkdir()
    shutil.copy(ROOT / "README.md", pages)
    shutil.copy(ROOT / "tests" / "test_docs.py", pages / "tests")
    tests = ("-k", "blocks_run", "tests/test_docs.py")
    run(python, "-m", "pytest", *tests, cwd=pages, HOME=str(pages))
    require(True, "Python blocks of the README and of the guide")
    ground = work / "commands"
    ground.mkdir()
    run(python, "-c", TABLES, cwd=ground)
    blocks = re.findall(r"^```console\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    # What needs the real data is left out.
    commands = re.findall(r"^comtl (?!.* DIR).*$", "".join(blocks), re.M)
    for command in commands:
        run("/bin/sh", "-c", command, cwd=ground, PATH=str(python.parent))
        require(True, command)
    require(len(commands) >= 4, f"{len(commands)} commands of the README")
    shutil.copy(ROOT / ".ci" / "user_code.py", ground)
    run(python, "-m", "mypy", "--strict", "--ignore-missing-imports", "user_code.py", cwd=ground)
    run(python, "user_code.py", cwd=ground)
    require(True, "types of the code of a user, as mypy --strict sees them")


if __name__ == "__main__":
    found = {path.name.split("-")[0]: path for path in DIST.glob("*.whl")}
    with tempfile.TemporaryDirectory(prefix="comtl-dist-") as name:
        check_plain(Path(name), found["comtl"])
        check_documented(
            Path(name), f"{found['comtl']}[cli,report,dask]", found["comtl_reproduction"]
        )
