"""Loaders of the real sets of the paper, from files with a known checksum."""

from .newsgroups import load_newsgroups
from .school import load_school
from .sentiment import load_sentiment

__all__ = ["load_newsgroups", "load_school", "load_sentiment"]
