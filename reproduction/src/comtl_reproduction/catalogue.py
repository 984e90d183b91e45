"""All experiments by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .convergence import CONVERGENCE
from .experiment import Experiment
from .newsgroups import NEWSGROUPS
from .school import SCHOOL
from .sensitivity import SENSITIVITY
from .sentiment import SENTIMENT
from .synthetic import SYNTHETIC

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        experiment.name: experiment
        for experiment in (SYNTHETIC, SCHOOL, SENTIMENT, NEWSGROUPS, SENSITIVITY, CONVERGENCE)
    }
)
"""Experiments by the name that the command line knows them by."""
