"""Keep the built documentation of this version in build/site, beside that of other versions."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>comtl</title>
<meta http-equiv="refresh" content="3; url={newest}/index.html">
<p>Documentation of comtl: going on to {newest}. All versions:</p>
<ul>{items}</ul></html>
"""


def order(name: str) -> list[int]:
    """Newest release first by this key, and what is no release last."""
    return [-int(number) for number in re.findall(r"\d+", name)] or [1]


def place(built: Path, site: Path, version: str) -> None:
    """Copy a site into the folder of its version, and write the page that lists all."""
    folder = site / ("dev" if "dev" in version else version)
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns(".doctrees", ".buildinfo*")
    shutil.copytree(built, folder, ignore=ignored)
    names = sorted((page.parent.name for page in site.glob("*/index.html")), key=order)
    items = "".join(f'<li><a href="{name}/index.html">{name}</a></li>' for name in names)
    (site / "index.html").write_text(PAGE.format(newest=names[0], items=items), encoding="utf-8")


if __name__ == "__main__":
    text = (ROOT / "src" / "comtl" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.M) or sys.exit("No version is found.")
    place(ROOT / "build" / "docs", ROOT / "build" / "site", found[1])
    print("The site of all versions is build/site/index.html")
