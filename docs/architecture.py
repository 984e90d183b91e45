"""Writes the generated parts of architecture.md: picture and table of packages, steps of fits.

python docs/architecture.py
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import warnings
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import comtl

HERE = Path(__file__).resolve().parent
SOURCE = Path(comtl.__file__).resolve().parent
LEAST = 8
"""Lines of code from which a function is a stop on a walk: shorter ones are read in passing."""
PASSED = ("arrays", "saving", "parameters", "phrases")
"""Packages that a walk leaves out: tools that need no visit."""
WAYS = {
    "BiFactorRegressor": (
        "TaskModel.fit",
        "read_training",
        "build_problem",
        "FactorFit.learn",
        "bare_state",
        "alternate",
        "feature_step",
        "task_step",
        "balance_step",
        "extrapolate",
    ),
    "MultitaskRegressor": (
        "TaskModel.fit",
        "read_training",
        "FitInput.splits",
        "MultitaskModel._fit",
        "default_members",
        "fit_stack",
        "cross_fit",
        "blend",
        "Stack.with_trees",
        "TreeMember.stages",
        "MultitaskModel._keep",
        "ErrorModel.of",
    ),
}
"""Main steps that the page names, about ten for each fit."""
DOORS = ("EstimatorMember.fit",)
"""Fits of members of a stack: a walk through the stack ends there, for members have their own."""


def top(module: str) -> str:
    """Package, or module beside the packages, of a dotted name below comtl."""
    return module.partition(".")[0]


@cache
def modules() -> dict[str, Path]:
    """Files by dotted names below comtl; a package by its ``__init__``."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name not in ("", "__main__"):
            found[name] = path
    return found


@cache
def imports() -> dict[str, set[str]]:
    """What each package imports from at module level, itself and what others reach left out."""
    direct: dict[str, set[str]] = {top(name): set() for name in modules()}
    for name, path in modules().items():
        parts = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.level:
                base = [*parts[: len(parts) - node.level + 1], *filter(None, [node.module])]
                targets = [".".join([*base, alias.name]) for alias in node.names]
                direct[top(name)] |= {top(one) for one in targets} & direct.keys()
        direct[top(name)].discard(top(name))
    return direct


def reached(package: str) -> set[str]:
    """Packages that one imports from, also by way of others."""
    return {one for other in imports()[package] for one in (other, *reached(other))}


def level(package: str) -> int:
    """Longest way down to a package that imports from no other."""
    return 1 + max((level(one) for one in imports()[package]), default=-1)


def picture() -> str:
    """The packages as boxes, each above those that it imports from; lines leave out detours."""
    width, height, gap = 128, 32, 36
    rows: dict[int, list[str]] = {}
    for package in sorted(imports()):
        rows.setdefault(level(package), []).append(package)
    widest, highest = max(map(len, rows.values())), max(rows)
    place = {
        package: (
            (number + 0.5 + 0.5 * (widest - len(row))) * (width + 16),
            (highest - rank) * (height + gap) + height,
        )
        for rank, row in rows.items()
        for number, package in enumerate(row)
    }
    size = widest * (width + 16), (highest + 1) * (height + gap) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]:.0f} {size[1]:.0f}" '
        f'width="{size[0]:.0f}" font-family="sans-serif" text-anchor="middle">',
        "<title>Packages of comtl; each imports from those below it</title>",
        f'<rect width="{size[0]:.0f}" height="{size[1]:.0f}" fill="white"/>',
    ]
    for package, below in sorted(imports().items()):
        for other in sorted(below):
            if not any(other in reached(one) for one in below - {other}):
                (x, y), (u, v) = place[package], place[other]
                parts.append(
                    f'<line x1="{x:.0f}" y1="{y + height / 2:.0f}" x2="{u:.0f}" '
                    f'y2="{v - height / 2:.0f}" stroke="#999"/>'
                )
    for package, (x, y) in sorted(place.items()):
        parts.append(
            f'<rect x="{x - width / 2:.0f}" y="{y - height / 2:.0f}" width="{width}" '
            f'height="{height}" rx="6" fill="#e8eef7" stroke="#4a6fa5"/>'
            f'<text x="{x:.0f}" y="{y + 5:.0f}" font-size="14">{escape(package)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def summary(text: str | None) -> str:
    """First paragraph of a docstring as one line."""
    return " ".join((text or "").strip().split("\n\n")[0].split())


def table() -> str:
    """One line for each package and each module beside them, from the top to the bottom."""
    order = sorted(imports(), key=lambda one: (-level(one), one))
    rows = []
    for package in order:
        path = modules()[package]
        text = summary(ast.get_docstring(ast.parse(path.read_text())))
        name = f"`{package}/`" if path.name == "__init__.py" else f"`{package}.py`"
        rows.append(f"| {name} | {text} |")
    return "\n".join(["| in `src/comtl` | what it is |", "| --- | --- |", *rows])


def stops(work: Callable[[], Any], doors: tuple[str, ...] = ()) -> dict[CodeType, int]:
    """Functions of a call in the order of their first calls, and how deep these are.

    What the functions named ``doors`` call is left out.
    """
    found: dict[CodeType, int] = {}
    behind: list[FrameType] = []
    depth = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal depth
        code = frame.f_code
        if behind:
            if event == "return" and frame is behind[-1]:
                behind.pop()
                depth -= 1
            return
        if event not in ("call", "return") or not code.co_filename.startswith(str(SOURCE)):
            return
        depth += 1 if event == "call" else -1
        if event == "return":
            return
        if not code.co_name.startswith("<"):
            found.setdefault(code, depth)
        if code.co_qualname in doors:
            behind.append(frame)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def walk(codes: dict[CodeType, int]) -> dict[CodeType, int]:
    """The functions on the way that a reader stops at: one for each entry into a module."""
    way: dict[CodeType, int] = {}
    last = ""
    for code, depth in codes.items():
        module = Path(code.co_filename).relative_to(SOURCE).parts[0].removesuffix(".py")
        length = len({line for _, _, line in code.co_lines() if line}) - 1
        if module in PASSED or length < LEAST:
            continue
        if last != code.co_filename:
            way[code], last = depth, code.co_filename
    return way


def figures(way: dict[CodeType, int]) -> tuple[int, int]:
    """Modules on a walk, and returns to one that was left."""
    files = [code.co_filename for code in way]
    return len(set(files)), len(files) - len(set(files))


def steps(name: str, codes: dict[CodeType, int]) -> str:
    """The functions of a way with the first sentences of their docstrings, as they were called."""
    called = [code for code in codes if code.co_qualname in WAYS[name]]
    missing = set(WAYS[name]) - {code.co_qualname for code in called}
    if missing:
        raise SystemExit(f"{name}.fit no longer calls {missing}: mend WAYS in {__file__}")
    rows = []
    for number, code in enumerate(called, start=1):
        file = Path(code.co_filename).relative_to(SOURCE).as_posix()
        source = textwrap.dedent("".join(inspect.getsourcelines(code)[0]))
        text = summary(ast.get_docstring(ast.parse(source).body[0]))
        rows.append(f"{number}. `{file}`, `{code.co_qualname}`: {text}")
    return "\n".join(rows)


@cache
def fits() -> dict[str, dict[CodeType, int]]:
    """The functions that two fits to small drawn rows call."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(10), 20)
    X = rng.normal(size=(200, 5))
    y = np.sum(X * rng.normal(size=(10, 5))[task], axis=1) + rng.normal(size=200)
    one, many = comtl.BiFactorRegressor(), comtl.MultitaskRegressor()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            type(one).__name__: stops(lambda: one.fit(X, y, task=task)),
            type(many).__name__: stops(lambda: many.fit(X, y, task=task), DOORS),
        }


def generated() -> dict[str, str]:
    """Parts of the page by the names of their marks."""
    parts = {"table": table()}
    for name, codes in fits().items():
        visited, back = figures(walk(codes))
        parts[f"walk {name}"] = (
            f"`{name}.fit` runs through {visited} modules and comes back to an earlier one {back} "
            f"times (by first calls of\nfunctions of {LEAST} lines or more). "
            f"Its main steps, by first calls:\n\n{steps(name, codes)}"
        )
    return parts


def page(text: str) -> str:
    """The page with its generated parts as they are now."""
    for name, part in generated().items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        text = before + mark + part + "\n" + rest[rest.index("<!-- end -->") :]
    return text


if __name__ == "__main__":
    (HERE / "images" / "packages.svg").write_text(picture(), encoding="utf-8")
    file = HERE / "architecture.md"
    file.write_text(page(file.read_text(encoding="utf-8")), encoding="utf-8")
    for name, codes in fits().items():
        print(name, *figures(walk(codes)))
