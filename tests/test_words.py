"""Documents, messages and public docstrings use the terms of the field."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
WORDS = {
    r"bends?|bent": "hinge, linear spline; nonlinear",
    r"cuts?|cuts_": "decision threshold, thresholds_",
    r"laws?": "distribution",
    r"told": "significantly different (told from, told apart); given; estimated",
    r"steps? beyond": "extrapolation step",
    r"gauge": "rescaling, balance",
    r"houses?|rooms?": "package, module",
    r"cells?": "observation; entry, nonzero; fit",
    r"evidence": "marginal likelihood, restricted likelihood (REML)",
    r"simpler (?:ones|models)": "reference models",
    r"own effects": "random effects",
    r"(?:of|on) (?:its|their|each task's) own": "random effects; per task, separate",
    r"own noise": "noise variance per task",
    r"forth and back": "the product and its transpose",
    r"drawn (?:to|towards)": "shrunk towards",
    r"beyond chance": "significantly",
    r"all or nothing|never half": "atomically",
    r"filled cells": "nonzeros",
    r"as given": "unscaled",
}
"""Words that only this project used, and what to write in their place."""
ALLOWED = re.compile(r"\b(?:full, own noise|(?:isotropic|full), as given)\b|\(was `\w+`\)")
"""Keys of `weights_`, and former names."""
RENAMED = {
    "bends": "hinges",
    "cuts_": "thresholds_",
}
"""Old public names: allowed in messages by themselves, or with the new name in a deprecation."""
PATTERNS = {
    re.compile(rf"\b(?:{word})\b".replace(" ", r"\s+"), re.IGNORECASE): replacement
    for word, replacement in WORDS.items()
}

DOCUMENTS = [
    *ROOT.glob("*.md"),
    ROOT / "Makefile",
    *(
        page
        for page in DOCS.rglob("*.md")
        # Copies and pages written by the build.
        if page.relative_to(DOCS).parts[0] not in ("benchmarks", "project", "auto_examples")
    ),
    *(ROOT / "examples").glob("*.*"),
    *(ROOT / "benchmarks").glob("*.md"),
]
PUBLIC = ("", ".baselines", ".datasets", ".evaluation", ".plot", ".saving", ".tables")


def found(text: str) -> dict[str, str]:
    """Such words of a text, and what to write in their place."""
    text = ALLOWED.sub("", text)
    return {
        match[0]: replacement
        for pattern, replacement in PATTERNS.items()
        for match in pattern.finditer(text)
    }


def messages(source: str) -> Iterator[str]:
    """String constants of a module that are not docstrings, without old names where allowed."""
    tree = ast.parse(source)
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            for old, new in RENAMED.items():
                if new in text or text == old:
                    text = text.replace(old, "")
            if id(node) not in statements:
                yield text


def docstrings() -> dict[str, str]:
    """Docstrings of public names and of methods, each under the first name that has it."""
    first: dict[str, str] = {}
    for package in PUBLIC:
        module = importlib.import_module(f"comtl{package}")
        for name in module.__all__:
            public = getattr(module, name)
            first.setdefault(inspect.getdoc(public) or "", name)
            if inspect.isclass(public):
                for method, value in inspect.getmembers(public):
                    if not method.startswith("_"):
                        first.setdefault(inspect.getdoc(value) or "", f"{name}.{method}")
    return {name: text for text, name in first.items()}


@pytest.mark.skipif(not DOCS.is_dir(), reason="a source distribution has no docs/")
@pytest.mark.parametrize("page", sorted(DOCUMENTS), ids=lambda page: str(page.relative_to(ROOT)))
def test_documents(page):
    assert found(page.read_text(encoding="utf-8")) == {}


def test_messages():
    offending = {
        path.name: words
        for path in (ROOT / "src" / "comtl").rglob("*.py")
        if (words := found("\n".join(messages(path.read_text(encoding="utf-8")))))
    }
    assert offending == {}


def test_public_docstrings():
    offending = {name: words for name, text in docstrings().items() if (words := found(text))}
    assert offending == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The law was\nnot told  from noise.", {"law", "told"}),
        ("A step\nbeyond each sweep", {"step\nbeyond"}),
        ("`cuts_` and bends", {"cuts_", "bends"}),
        ("A shortcut by `log_evidence_`, `full, own noise`, lawful in the cellar", set()),
        ("`thresholds_` (was `cuts_`)", set()),
    ],
)
def test_the_search_finds_words_and_no_parts_of_words(text, words):
    assert found(text).keys() == words


def test_messages_are_strings_without_docstrings_and_old_names():
    source = 'def f():\n    """Laws."""\n    raise ValueError(f"cut {f} law")\n\nOLD = "cuts_"\n'
    source += 'warn("cuts_ is deprecated, use thresholds_; the cut")'
    assert found("\n".join(messages(source))).keys() == {"cut", "law"}
