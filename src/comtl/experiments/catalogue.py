"""All experiments by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .convergence import CONVERGENCE
from .experiment import Experiment
from .school import SCHOOL
from .synthetic import SYNTHETIC

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {experiment.name: experiment for experiment in (SYNTHETIC, SCHOOL, CONVERGENCE)}
)
"""Experiments by the name that the command line knows them by."""
