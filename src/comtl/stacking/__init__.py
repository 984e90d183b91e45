"""Members fitted on folds and combined by what they predict for held-out rows."""
