"""What a model is worth beside reference models, on held-out rows."""

from .compare_models import NAMES, compare
from .comparison import Comparison
from .nonlinearity import nonlinearity_evidence

__all__ = ["NAMES", "Comparison", "compare", "nonlinearity_evidence"]
