"""A page that shows a fitted model: one HTML file without network, other files or libraries."""

from .write import report_of, write_report

__all__ = ["report_of", "write_report"]
