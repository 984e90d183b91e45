"""Pages of the repository that lie outside docs/: copied in, and links to them led there.

Written pages link to each other as the files lie in the repository, so that the links hold there
too. On the site the benchmarks' results and the project's own pages are part of docs/.
"""

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
COPIES = {
    **{path: DOCS / "benchmarks" / path.name for path in sorted(ROOT.glob("benchmarks/*.md"))},
    **{
        ROOT / f"{name}.md": DOCS / "project" / f"{name}.md"
        for name in ("CONTRIBUTING", "CHANGELOG", "SECURITY")
    },
}
PLACES = {
    **COPIES,
    ROOT / "README.md": DOCS / "index.md",
    ROOT / "benchmarks": DOCS / "results.md",
    DOCS / "reproduction": DOCS / "results.md",
}
"""Where the site has what a link of the repository leads to; folders have no page of their own."""
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


def copy_pages(app: Sphinx, config: Config) -> None:
    for source, copy in COPIES.items():
        text = source.read_text(encoding="utf-8")
        if not text.startswith("# "):  # Bare output of a script.
            text = f"# {source.stem}\n\n{text}"
        # A file that did not change keeps its date, so that its page is not built again.
        if not copy.exists() or copy.read_text(encoding="utf-8") != text:
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(text, encoding="utf-8")


def lead_links(app: Sphinx, docname: str, source: list[str]) -> None:
    page = DOCS / f"{docname}.md"
    if not page.exists():
        return
    origin = {copy: source for source, copy in COPIES.items()}.get(page, page)

    def led(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(origin.parent / match[1]))
        if target not in PLACES and origin == page:
            return match[0]
        there = PLACES.get(target, target)
        return "](" + os.path.relpath(there, page.parent).replace(os.sep, "/")

    source[0] = LINK.sub(led, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", copy_pages, priority=100)
    app.connect("source-read", lead_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
