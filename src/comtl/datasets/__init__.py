"""Problems that are drawn, with a known truth."""

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
