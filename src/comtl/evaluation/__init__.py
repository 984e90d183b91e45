"""Comparison with reference models on held-out rows."""

from typing import Any

from ..phrases import warn_caller
from .compare_models import compare
from .comparison import Comparison, Verdict
from .nonlinearity import nonlinearity_evidence

__all__ = ["Comparison", "Verdict", "compare", "nonlinearity_evidence"]


def __getattr__(name: str) -> Any:
    if name != "evidence_for_bends":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_caller(
        "evidence_for_bends is called nonlinearity_evidence now; the old name will go.",
        FutureWarning,
    )
    return nonlinearity_evidence
