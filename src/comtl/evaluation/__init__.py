"""What a model is worth beside reference models, on held-out rows."""

from .compare_models import NAMES, compare
from .comparison import Comparison
from .nonlinearity import evidence_for_bends

__all__ = ["NAMES", "Comparison", "compare", "evidence_for_bends"]
