"""Eight threads that fit, save and read at once: every result is that of a fit alone."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import comtl
from comtl import baselines
from comtl.saving import ModelFileError
from small_tables import problem

from .attack import Figures, LostFileError

THREADS = 8
KINDS: list[Any] = [
    comtl.BiFactorRegressor(2, random_state=0),
    comtl.TriFactorClassifier(2, 2, random_state=0, max_iter=20),
    comtl.HierarchicalRegressor(),
    comtl.MultitaskRegressor(cv=2),
    baselines.IndependentRegressor(random_state=0),
    baselines.FeatureLearningClassifier(random_state=0),
]


def fitted(number: int) -> Any:
    """Fit of a kind of model to its rows."""
    X, y, task = problem(type(KINDS[number]), tasks=5, rows=12)
    return clone(KINDS[number]).fit(X, y, task=task)


@cache
def alone() -> list[np.ndarray]:
    """Weights of each kind of model, fitted by one thread."""
    return [fitted(number).coef_ for number in range(len(KINDS))]


def trial(rng: np.random.Generator, folder: Path, figures: Figures) -> str:
    orders = [rng.permutation(len(KINDS)).tolist() for _ in range(THREADS)]
    shared = [folder / f"{number}.comtl" for number in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = alone()
        for path in shared:
            fitted(0).save(path)

        def work(order: list[int]) -> None:
            for number in order:
                model = fitted(number)
                np.testing.assert_array_equal(model.coef_, known[number])
                for path in shared:
                    model.save(path)
                    try:
                        coef = comtl.load(path).coef_
                    except ModelFileError as error:
                        raise LostFileError(f"{path.name} is torn: {error}") from error
                    assert any(np.array_equal(coef, one) for one in known)

        with ThreadPoolExecutor(THREADS) as pool:
            for future in [pool.submit(work, order) for order in orders]:
                future.result()
    assert sorted(one.name for one in folder.iterdir()) == ["0.comtl", "1.comtl"]
    return "same"
