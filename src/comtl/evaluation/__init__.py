"""Comparison with reference models on held-out rows."""

from .compare_models import compare
from .comparison import Comparison, Verdict

__all__ = ["Comparison", "Verdict", "compare"]
