"""Estimators that choose their penalty by cross-validation."""

from .models.search_estimators import (
    BiFactorClassifierCV,
    BiFactorRegressorCV,
    TriFactorClassifierCV,
    TriFactorRegressorCV,
)

__all__ = [
    "BiFactorClassifierCV",
    "BiFactorRegressorCV",
    "TriFactorClassifierCV",
    "TriFactorRegressorCV",
]
