"""All experiments by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .convergence import CONVERGENCE
from .experiment import Experiment

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {experiment.name: experiment for experiment in (CONVERGENCE,)}
)
"""Experiments by the name that the command line knows them by."""
