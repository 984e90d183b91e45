"""Problems that are drawn, with a known truth."""

from typing import Any

from .synthetic import (
    SYNTHETIC,
    make_coclusters,
    make_syn1,
    make_syn2,
    make_syn3,
    make_syn4,
    make_syn5,
)

__all__ = [
    "SYNTHETIC",
    "make_coclusters",
    "make_syn1",
    "make_syn2",
    "make_syn3",
    "make_syn4",
    "make_syn5",
]

MOVED = ("load_school", "load_sentiment", "load_newsgroups")


def __getattr__(name: str) -> Any:
    now = '; it is in comtl_reproduction.loaders now: pip install "comtl[reproduce]"'
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{now * (name in MOVED)}")
