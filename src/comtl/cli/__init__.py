"""The command ``comtl``."""

from .main import main

__all__ = ["main"]
