"""Observations: reading them, standardised views, folds, memory and disk."""
