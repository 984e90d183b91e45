"""The paper's data: problems with a known truth, and loaders of the real sets."""

from .coclusters import make_coclusters
from .newsgroups import load_newsgroups
from .school import load_school
from .sentiment import load_sentiment
from .synthetic import SYNTHETIC, make_syn1, make_syn2, make_syn3, make_syn4, make_syn5

__all__ = [
    "SYNTHETIC",
    "load_newsgroups",
    "load_school",
    "load_sentiment",
    "make_coclusters",
    "make_syn1",
    "make_syn2",
    "make_syn3",
    "make_syn4",
    "make_syn5",
]
