"""The methods of the tables, each with the settings it is tuned over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from comtl import baselines
from comtl.models import coclustering as estimators
from comtl.models.task_model import TaskModel

from .paper import PAPER

GRIDS = PAPER["grids"]


@dataclass(frozen=True)
class Method:
    """A kind of model and the settings to choose from; ``paper.toml`` says what each part is.

    A grid of penalties grows where the winner lies at its edge; grids of ranks do not.
    """

    name: str
    kind: str
    penalties: Mapping[str, list[float]]
    ranks: Mapping[str, list[int]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    text: Mapping[str, Any] = field(default_factory=dict)
    text_grid: Mapping[str, list[Any]] = field(default_factory=dict)
    paired: bool = False

    def model(self, *, text: bool, **setting: Any) -> TaskModel:
        """Estimator at one setting: a regressor, or a classifier of text by squared loss.

        The paper fits classes by squared loss. TF-IDF columns are of one scale already.
        """
        home = estimators if self.kind in ("BiFactor", "TriFactor") else baselines
        if not text:
            # As the results were made: all columns of one variance, indicators too.
            scaled = {**self.fixed, **setting, "standardize": True, "random_state": 0}
            return getattr(home, f"{self.kind}Regressor")(**scaled)
        made: type[TaskModel] = getattr(home, f"{self.kind}Classifier")
        common = {"loss": "squared", "standardize": False, "random_state": 0}
        return made(**{**common, **self.fixed, **self.text, **setting})

    def axes(self, *, text: bool) -> dict[str, list[float]]:
        """Grid of each penalty."""
        given = self.text_grid if text else {}
        return {name: list(given.get(name, values)) for name, values in self.penalties.items()}

    def rank_settings(self, *, text: bool) -> list[dict[str, int]]:
        """Choices of columns; for text eight pairs where there are two numbers."""
        given = self.text_grid if text else {}
        choices = product(*(given.get(name, values) for name, values in self.ranks.items()))
        if self.paired or (text and len(self.ranks) == 2):
            choices = GRIDS["pairs"][::2] if self.paired else GRIDS["pairs"]
        return [dict(zip(self.ranks, choice, strict=True)) for choice in choices]


def _method(name: str, parts: dict[str, Any]) -> Method:
    for part in ("penalties", "ranks", "text_grid"):
        grids = parts.get(part, {}).items()
        parts[part] = {key: GRIDS[grid] if isinstance(grid, str) else grid for key, grid in grids}
    # TOML has no None.
    fixed = parts.pop("fixed", {}).items()
    nones = {key: None if value == "none" else value for key, value in fixed}
    return Method(name, **parts, fixed=nones)


METHODS = {name: _method(name, dict(parts)) for name, parts in PAPER["methods"].items()}
