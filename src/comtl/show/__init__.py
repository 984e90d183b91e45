"""Pages, figures, tables and graphs of fitted models."""
