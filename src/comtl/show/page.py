"""Write a model as one HTML page."""

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..evaluation import Comparison, compare
from ..models.task_model import TaskModel
from ..saving.writing import write_atomically
from ..stacking.multitask import MultitaskModel
from . import page_sections as sections
from .page_data import as_json, payload
from .views import view

SCRIPTS = ("page_data.js", "page_table.js", "page_task.js", "page_cocluster_map.js")
"""Parts of the page's script, in the order in which they run."""


def write_report(
    path: str | Path,
    model: TaskModel,
    *,
    comparison: Comparison | None = None,
    notes: Sequence[str] = (),
    title: str | None = None,
    rows: tuple[Any, Any] | None = None,
) -> Path:
    """Write a page that shows a fitted model as a single file.

    With its comparison if any, and with curves over ``rows`` (X, task).
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(
            f"path={str(path)!r} is a folder; name a file in it, such as report.html."
        )
    if isinstance(notes, str):
        raise TypeError("notes must be a sequence of sentences; put a single one into a list.")
    text = page(model, comparison, notes, title, rows)
    write_atomically(path, text.encode(errors="replace"))
    return path


def page(
    model: TaskModel,
    comparison: Comparison | None = None,
    notes: Sequence[str] = (),
    title: str | None = None,
    rows: tuple[Any, Any] | None = None,
) -> str:
    """Return the whole page as text."""
    shown = view(model)
    script = "(() => {\n'use strict';\n" + "".join(map(_part, SCRIPTS)) + "})();\n"
    name = type(model).__name__
    score = "target" if model._linear.classes is None else "score"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "title": escape(title or name),
        "kind": escape(name),
        # No script but this one may run, and nothing may be fetched.
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "css": _part("page.css"),
        "tiles": sections.tiles(shown, model, comparison),
        "notes": "".join(f"<li>{escape(str(note))}</li>" for note in notes),
        "members": sections.members(model) if isinstance(model, MultitaskModel) else "",
        "unit": escape(f"change of the {score} for one {shown.feature_unit} of the feature"),
        "data": as_json(payload(shown, comparison)),
        "script": script,
        **sections.fit(model),
    }
    if comparison is not None:
        parts |= sections.summary(comparison) | sections.scores(comparison)
        parts |= sections.intervals(comparison)
    if rows is not None and isinstance(model, MultitaskModel):
        parts |= sections.curves(model, *rows)
    return _filled(_part("page.html"), parts)


def _filled(template: str, parts: dict[str, str]) -> str:
    """Template with its parts: {{#name}} begins what stands with a part, {{^name}} without."""
    kept = re.sub(
        r"\{\{([#^])(\w+)\}\}\n(.*?)\{\{/\2\}\}\n",
        lambda block: block[3] if bool(parts.get(block[2])) == (block[1] == "#") else "",
        template,
        flags=re.DOTALL,
    )
    # One pass, so that a filled-in text is never read as a placeholder.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], kept)


def report_of(
    model: Any, path: str | Path, rows: tuple[Any, Any, Any, Any], title: str | None
) -> Path:
    """Write the page of a model, compared on rows (X, y, task, sample_weight) if there are some."""
    X, y, task, sample_weight = rows
    if X is None and y is None:
        if task is not None or sample_weight is not None:
            raise ValueError("task and sample_weight are given without X and y; pass these too.")
        return write_report(path, model, title=title)
    if X is None or y is None:
        missing = "X" if X is None else "y"
        raise ValueError(f"{missing} is missing; pass both X and y to compare, or neither.")
    check_is_fitted(model)
    comparison = compare(model, X, y, task, sample_weight)
    return write_report(path, model, comparison=comparison, title=title, rows=(X, task))


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
