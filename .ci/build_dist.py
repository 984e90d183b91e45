"""Build source distributions and wheels of both distributions into dist/, and look into them."""

from __future__ import annotations

import email
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
MOST_BYTES = 1_500_000
"""Size of a wheel."""


def require(condition: bool, what: str) -> None:
    """Say what holds, or end."""
    if not condition:
        sys.exit(f"FAILED: {what}")
    print(f"ok  {what}", flush=True)


def build() -> None:
    """Make each wheel from the source distribution, so that this holds all that is needed."""
    shutil.rmtree(DIST, ignore_errors=True)
    for folder in (ROOT, ROOT / "reproduction"):
        command = [sys.executable, "-m", "build", f"--outdir={DIST}"]
        subprocess.run([*command, folder], check=True, stdout=subprocess.DEVNULL)
    names = sorted(DIST.iterdir())
    require(len(names) == 4, f"built {', '.join(path.name for path in names)}")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *names], check=True)


def check_wheel(path: Path) -> str:
    """Version of a wheel whose files and metadata are as they must be."""
    name = path.name.split("-")[0]
    size = path.stat().st_size
    require(size <= MOST_BYTES, f"{path.name} has {size:,} bytes, at most {MOST_BYTES:,}")
    with zipfile.ZipFile(path) as file:
        files = file.namelist()
        place = next(one for one in files if one.endswith(".dist-info/METADATA"))
        data = email.message_from_bytes(file.read(place))
    info = place.split("/")[0]
    require({one.split("/")[0] for one in files} == {name, info}, f"{name}: one package")
    require(f"{name}/py.typed" in files, f"{name}: py.typed")
    require(f"{info}/licenses/LICENSE" in files, f"{name}: the text of the licence")
    require(data["License-Expression"] == "BSD-3-Clause", f"{name}: BSD-3-Clause")
    require(data["Requires-Python"] == ">=3.11", f"{name}: Python {data['Requires-Python']}")
    # An index refuses requirements by address; they would hold a path of this machine.
    addresses = [one for one in data.get_all("Requires-Dist", []) if "@" in one]
    require(not addresses, f"{name}: requirements by name")
    return str(data["Version"])


def check_source(path: Path) -> None:
    """Check that a source distribution can be tested and holds no build products."""
    with tarfile.open(path) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    require({"LICENSE", "README.md", "pyproject.toml"} <= names, f"{path.name}: licence, readme")
    require(any(one.startswith("tests/test_") for one in names), f"{path.name}: tests")
    strange = [one for one in names if "__pycache__" in one or one.startswith((".venv", "build"))]
    require(not strange, f"{path.name}: no build products")


if __name__ == "__main__":
    build()
    versions = {check_wheel(path) for path in DIST.glob("*.whl")}
    require(len(versions) == 1, f"one version, {versions}")
    for source in DIST.glob("*.tar.gz"):
        check_source(source)
