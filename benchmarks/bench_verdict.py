"""Error rates and power of the verdict on held-out rows.

``python benchmarks/bench_verdict.py > benchmarks/bench_verdict.md`` (four minutes on one core)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from scipy.stats import norm, t
from sklearn.base import clone

from comtl import HierarchicalClassifier, HierarchicalRegressor, baselines
from comtl.evaluation import Comparison, compare
from comtl.evaluation import reference_models as simpler
from comtl.rows.fit_input import FitInput

N_FEATURES = 3
REFERENCES = ("pooled", "separate", "mean")
Rule = Callable[[Comparison], str]


@dataclass(frozen=True)
class Design:
    """Tasks from one population. ``uneven``: rows and noise of tasks spread tenfold; ``columns``:
    tasks are columns of y, with noise correlated by 0.8.
    """

    name: str
    tasks: int
    rows: int
    common: float = 1.0
    intercepts: float = 0.0
    slopes: float = 0.0
    structure: str = "isotropic"
    uneven: bool = False
    columns: bool = False
    classes: bool = False
    draws: int = 80

    def draw(self, seed: int) -> tuple[Comparison, float, float]:
        """Comparison, and the true advantage: fitted to all rows, and to those of the folds."""
        rng = np.random.default_rng(seed)
        size = (self.tasks, N_FEATURES)
        coef = self.common * np.array([1.0, -0.5, 0.0]) + self.slopes * rng.normal(size=size)
        level = self.intercepts * rng.normal(size=self.tasks)
        share, spread = 10.0 ** (rng.uniform(-0.5, 0.5, (2, self.tasks)) * self.uneven)
        counts = np.maximum(self.rows * share, 5.0).astype(int)

        def expected(task: np.ndarray | None, rows: int) -> tuple[np.ndarray, np.ndarray]:
            X = rng.normal(size=(rows, N_FEATURES))
            own = X @ coef.T + level if task is None else (X * coef[task]).sum(1) + level[task]
            return X, 1.0 / (1.0 + np.exp(-own)) if self.classes else own

        task = None if self.columns else np.repeat(np.arange(self.tasks), counts)
        X, mean = expected(task, self.rows if task is None else len(task))
        if self.classes:
            y = (rng.random(mean.shape) < mean).astype(int)
        elif task is None:
            common = rng.normal(size=(len(mean), 1))
            y = mean + np.sqrt(0.8) * common + np.sqrt(0.2) * rng.normal(size=mean.shape)
        else:
            y = mean + spread[task] * rng.normal(size=mean.shape)
        fresh = None if task is None else np.repeat(task, -(-8000 // len(task)))
        X_fresh, mean_fresh = expected(fresh, 2000 if fresh is None else len(fresh))
        model = (HierarchicalClassifier if self.classes else HierarchicalRegressor)(self.structure)

        def advantage(own: slice | np.ndarray) -> float:
            """How much lower the risk is than that of the best reference model."""
            part, rest = (
                FitInput(X, y, task).take(np.arange(len(y))[own]),
                FitInput(X_fresh, None, fresh),
            )
            fitted: dict[str, Any] = {"model": clone(model)._fit_quietly(part)}
            for name in REFERENCES[:2]:
                fitted[name] = simpler.simple_fit(name, model, part, rest)[0]
            risk = {"mean": np.mean((np.mean(part.y, axis=0) - mean_fresh) ** 2)}
            for name, one in fitted.items():
                guess = (one.predict_proba if self.classes else one.predict)(X_fresh, task=fresh)
                guess = guess[:, 1] if self.classes else guess
                risk[name] = np.mean((guess - mean_fresh) ** 2)
            return float(min(risk[name] for name in REFERENCES) - risk["model"])

        splits = FitInput(X, y, task).splits(model, 5)
        folds = np.mean([advantage(train) for train, _ in splits])
        return compare(model, X, y, task), advantage(slice(None)), float(folds)


DESIGNS = (
    Design("pooled is true, few tasks", 5, 60),
    Design("pooled is true, many tasks", 60, 8),
    Design("pooled is true, uneven", 20, 20, uneven=True),
    Design("separate is true, many rows", 5, 300, slopes=2.0, intercepts=2.0),
    Design("no signal", 20, 15, common=0.0),
    Design("even, few tasks", 4, 80, 1.0, 0.7, 0.11, "intercept"),
    Design("even, many tasks", 40, 15, 1.0, 0.7, 0.3, "intercept"),
    Design("even, uneven", 15, 30, 1.0, 0.7, 0.27, "intercept", uneven=True),
    Design("even, columns of y", 20, 60, 1.0, 0.7, 0.055, "intercept", columns=True),
    Design("related, two tasks", 2, 150, 1.0, 0.3, 0.1),
    Design("related, few tasks", 5, 60, 1.0, 0.3, 0.2),
    Design("related, many tasks", 60, 8, 1.0, 0.5, 0.3),
    Design("related, uneven", 20, 20, 1.0, 0.5, 0.3, uneven=True),
    Design("classes, pooled is true", 10, 40, classes=True, draws=40),
    Design("classes, related", 20, 30, 1.0, 0.7, 0.3, classes=True, draws=40),
)


def fixed(name: str, classes: bool, task_column: Any, rows: FitInput) -> tuple[float, Any]:
    """Reference model with a penalty of 1 instead of a tuned one, in a quarter of the time."""
    kind = {"pooled": "Pooled", "separate": "Independent"}[name]
    kind += "Classifier" if classes else "Regressor"
    return 0.0, getattr(baselines, kind)(1.0, task_column=task_column)


def parts(found: Comparison, name: str) -> tuple[float, float, float, int]:
    """Gain over a reference model, its standard errors within and between tasks, tasks."""
    gains, errors, held = found.loss_reduction[name], found.loss_reduction_se[name], found.held_out
    share = held / held.sum()
    total, T = float(share @ gains), len(gains)
    within = np.linalg.norm(share * np.where(np.isfinite(errors), errors, np.abs(gains)))
    between = np.linalg.norm(share * (gains - total)) * np.sqrt(T / (T - 1))
    return total, float(within), float(between), T


def terminal_before(found: Comparison) -> str:
    """Two standard errors against the best reference model, between tasks from ten tasks on."""
    best = min(REFERENCES, key=lambda name: found.overall[name])
    total, within, between, T = parts(found, best)
    ratio = found.overall["model"] / found.overall[best]
    sure = abs(total) > 2.0 * (between if T >= 10 else within)
    if not (abs(ratio - 1.0) > 0.1 if best == "mean" else sure):
        return "unclear"
    return "helps" if ratio < 1.0 else "harms"


def page_before(found: Comparison) -> str:
    """Two standard errors within tasks, against pooled and separate."""
    signs = []
    for name in REFERENCES[:2]:
        total, within, _, _ = parts(found, name)
        signs.append(int(np.sign(total)) if abs(total) > 2.0 * within else 0)
    return ("unclear", "helps", "harms")[min(signs)]


def rule(reach: Callable[[float, float, int, float], float]) -> Rule:
    """Against all three at 2.5 %, to harm at a third of it; ``max_abs`` is the critical gain."""

    def judge(found: Comparison) -> str:
        signs = []
        for name in REFERENCES:
            total, within, between, T = parts(found, name)
            level = 0.025 if total > 0 else 0.025 / 3
            signs.append(
                int(np.sign(total)) if abs(total) > reach(within, between, T, level) else 0
            )
        return ("unclear", "helps", "harms")[min(signs)]

    return judge


RULES: dict[str, Rule] = {
    "terminal before": terminal_before,
    "page before": page_before,
    "within": rule(lambda within, between, T, level: norm.isf(level) * within),
    "1.5 × within": rule(lambda within, between, T, level: 1.5 * norm.isf(level) * within),
    "between, t": rule(lambda within, between, T, level: t.isf(level, T - 1) * between),
    "`Comparison.verdict`": lambda found: found.verdict.kind,
}


def outcomes(design: Design) -> tuple[np.ndarray, np.ndarray]:
    """For each draw the two true advantages, and what each rule says."""
    with mock.patch.object(simpler, "tuned", fixed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = [design.draw(seed) for seed in range(design.draws)]
    said = [[judge(found) for judge in RULES.values()] for found, _, _ in draws]
    return np.array([true for _, *true in draws]), np.array(said)


def table(title: str, cells: list[tuple[str, np.ndarray, np.ndarray]], kind: str) -> None:
    """Write how often each rule says ``kind`` among the draws that count, by design."""
    print(f"\n## {title}\n\n| design | draws | {' | '.join(RULES)} |")
    print("| --- |" + " --- |" * (1 + len(RULES)))
    counts, said = (np.concatenate([one[place] for one in cells]) for place in (1, 2))
    for name, own, what in (*cells, ("all", counts, said)):
        if own.any():
            shares = (what[own] == kind).mean(axis=0)
            print(f"| {name} | {own.sum()} | {' | '.join(f'{s:.3f}' for s in shares)} |")


INTRODUCTION = """Shares of simulated data sets, by whether the model has in fact a lower risk on
new rows of the same tasks than each of pooled, separate and mean, with all of them fitted to all
rows, or to the rows of the folds. `Comparison.verdict` uses the larger of two standard errors,
within and between tasks; for "helps" the model must be significantly better (two-sided, 5 %) than
each reference model, for "harms" significantly worse than one (at a third of the level). The other
columns are the previous rules of terminal and report, and the same tests with one standard error.

"helps" is wrong in less than 5 % of the data sets overall. One design has more: many small tasks,
where the model is better in about half of the data sets. The standard error is not the cause:
models in folds are fitted to four fifths of the rows, where multitask learning does help (second
table). With more folds this difference is smaller.

Written by `python benchmarks/bench_verdict.py`."""


def main() -> None:
    """Write the tables."""
    print(f"# Error rates of verdicts on held-out rows\n\n{INTRODUCTION}")
    found = [(design.name, *outcomes(design)) for design in DESIGNS]

    def where(place: int, better: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        return [(name, (true[:, place] > 0.0) == better, said) for name, true, said in found]

    table('"Helps" where the model is not better', where(0, False), "helps")
    table('"Helps" where it is not better, fitted to the rows of folds', where(1, False), "helps")
    table('"Helps" where it is better', where(0, True), "helps")
    table('"Harms" where it is better', where(0, True), "harms")
    table('"Harms" where it is not better', where(0, False), "harms")


if __name__ == "__main__":
    main()
