"""BiFactor and TriFactor, and what all estimators share."""
