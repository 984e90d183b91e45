"""Comparison with reference models on held-out rows."""

from typing import Any

from ..phrases import warn_caller
from .compare_models import compare
from .comparison import Comparison, Verdict
from .nonlinearity import nonlinearity_evidence

__all__ = ["Comparison", "Verdict", "compare", "nonlinearity_evidence"]

FORMER = {"evidence_for_bends": "nonlinearity_evidence"}


def __getattr__(name: str) -> Any:
    if name not in FORMER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_caller(f"{name} is called {FORMER[name]} now; the old name will go.", FutureWarning)
    return globals()[FORMER[name]]
