"""The methods of the tables, each with the settings it is tuned over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from comtl import baselines
from comtl.models import cofactor_estimators as estimators
from comtl.models.factor_model import FactorModel

DECADES = tuple(float(f"1e{power}") for power in range(-3, 4))
RANKS = (2, 3, 5, 7, 9, 10, 15)
"""The paper's grid of λ2, and of K, K1 and K2."""

PAIRS = ((2, 2), (3, 3), (5, 5), (5, 10), (10, 5), (10, 10), (15, 7), (15, 15))
"""Eight of the 49 pairs (K1, K2), for text; see docs/reproduction.md for why these."""


def half_decades(low: int, high: int) -> tuple[float, ...]:
    """Powers of ten and their threefold.

    Examples
    --------
    >>> from comtl_reproduction.methods import half_decades
    >>> half_decades(-1, 1)
    (0.1, 0.3, 1.0, 3.0, 10.0)
    """
    powers = range(low, high)
    steps = [float(f"{digit}e{power}") for power in powers for digit in (1, 3)]
    return (*steps, float(f"1e{high}"))


@dataclass(frozen=True)
class Method:
    """A kind of model and the settings to choose from.

    Parameters
    ----------
    name : str
        As in the tables.
    kind : str
        Estimator without its ending "Regressor" or "Classifier".
    penalties : mapping
        Grid of each penalty; it grows where the winner lies at its edge.
    ranks : mapping
        Grid of each number of columns or clusters, as in the paper.
    fixed : mapping
        What is not searched.
    text : mapping
        What else is set for text: many sparse columns of one scale, fewer rows than columns.
    text_grid : mapping
        Grids for text that replace the others, where a fit is slow there.
    paired : bool
        Whether every other of the eight pairs serves everywhere.
    """

    name: str
    kind: str
    penalties: Mapping[str, tuple[float, ...]]
    ranks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    text: Mapping[str, Any] = field(default_factory=dict)
    text_grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    paired: bool = False

    def model(self, *, text: bool, **setting: Any) -> FactorModel:
        """Estimator at one setting: a regressor, or a classifier of text by squared loss.

        The paper fits classes by squared loss. TF-IDF columns are of one scale already.
        """
        home = estimators if self.kind in ("BiFactor", "TriFactor") else baselines
        if not text:
            return getattr(home, f"{self.kind}Regressor")(**self.fixed, **setting, random_state=0)
        made: type[FactorModel] = getattr(home, f"{self.kind}Classifier")
        common = {"loss": "squared", "standardize": False, "random_state": 0}
        return made(**{**common, **self.fixed, **self.text, **setting})

    def axes(self, *, text: bool) -> dict[str, list[float]]:
        """Grid of each penalty."""
        given = self.text_grid if text else {}
        return {name: list(given.get(name, values)) for name, values in self.penalties.items()}

    def rank_settings(self, *, text: bool) -> list[dict[str, int]]:
        """Choices of columns; for text eight pairs where there are two numbers."""
        if self.paired or (text and len(self.ranks) == 2):
            pairs = PAIRS[::2] if self.paired else PAIRS
            return [dict(zip(self.ranks, pair, strict=True)) for pair in pairs]
        given = self.text_grid if text else {}
        choices = product(*(given.get(name, values) for name, values in self.ranks.items()))
        return [dict(zip(self.ranks, choice, strict=True)) for choice in choices]


PENALTY = {"alpha_task": DECADES}
BI, TRI = {"n_components": RANKS}, {"n_feature_clusters": RANKS, "n_task_clusters": RANKS}
POOL = {"n_clusters": RANKS}

SMOOTH = {"smoothing": 10.0}
"""For text, where shrinking counts for more than choosing directions; measured in
benchmarks/bench_text.md."""
ROUGH = {"tol": 1e-4}
"""For text, where a sweep takes a tenth of a second: the tolerance of BiFactor and TriFactor."""
FEW = (2, 5, 10)
COARSE = (0.01, 0.1, 1.0, 10.0, 100.0)

METHODS = {
    method.name: method
    for method in (
        Method(
            "STL",
            "Pooled",
            {"alpha": half_decades(-2, 3)},
            text=ROUGH,
            text_grid={"alpha": COARSE},
        ),
        Method(
            "ITL",
            "Independent",
            {"alpha": half_decades(-2, 3)},
            text=ROUGH,
            text_grid={"alpha": COARSE},
        ),
        Method(
            "SHAMO",
            "SharedPool",
            {"alpha": DECADES},
            POOL,
            text={**ROUGH, "n_init": 2},
            text_grid={"alpha": (0.1, 1.0, 10.0), "n_clusters": FEW},
        ),
        Method(
            "CMTL",
            "Clustered",
            {"alpha": DECADES},
            POOL,
            text=ROUGH,
            text_grid={"alpha": (0.1, 1.0, 10.0), "n_clusters": FEW},
        ),
        Method(
            "FMTL",
            "Factored",
            PENALTY,
            BI,
            text=ROUGH,
            text_grid={"alpha_task": (10.0, 100.0, 1000.0), "n_components": FEW},
        ),
        Method(
            "MTFL",
            "FeatureLearning",
            {"alpha": half_decades(-3, 2)},
            text=ROUGH,
            text_grid={"alpha": COARSE},
        ),
        Method(
            "MTRL",
            "RelationLearning",
            {"alpha": (0.1, 1.0, 10.0), "alpha_task": DECADES},
            text=ROUGH,
            text_grid={"alpha": (0.1, 1.0), "alpha_task": (0.01, 0.1, 1.0)},
        ),
        Method(
            "GO-MTL",
            "GroupOverlap",
            PENALTY,
            BI,
            text=ROUGH,
            text_grid={"alpha_task": (1.0, 10.0, 100.0), "n_components": FEW},
        ),
        Method(
            "mean-regularised",
            "MeanRegularized",
            {"alpha": half_decades(-1, 3), "alpha_intercept": (1.0, 10.0, 100.0)},
            text=ROUGH,
            text_grid={"alpha": COARSE, "alpha_intercept": (10.0,)},
        ),
        Method("random-intercept", "RandomIntercept", {"alpha": half_decades(-2, 3)}),
        Method("BiFactor", "BiFactor", PENALTY, BI, text=SMOOTH),
        Method("TriFactor", "TriFactor", PENALTY, TRI, text=SMOOTH),
        Method(
            "TriFactor-free",
            "TriFactor",
            {"alpha_task": (1e-3, 1.0, 1e3)},
            TRI,
            {"core_penalty": None},
            SMOOTH,
            paired=True,
        ),
        Method("BiFactor-shared", "BiFactor", PENALTY, BI, {"shared": True}, SMOOTH),
    )
}
