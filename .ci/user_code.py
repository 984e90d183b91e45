"""Code of a user, which `make dist` checks by mypy against the installed wheel, and runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import comtl
from comtl import BiFactorRegressor, HierarchicalClassifier, MultitaskRegressor, TaskStratifiedKFold
from comtl.baselines import PooledRegressor
from comtl.datasets import make_syn1
from comtl.evaluation import Comparison, compare
from comtl.saving import ModelFileError


def fitted(X: NDArray[Any], y: NDArray[Any], task: NDArray[Any]) -> BiFactorRegressor:
    """Return what `fit` returns: the estimator, not a base class of it."""
    return BiFactorRegressor(2, alpha_task=1.0, loss="squared").fit(X, y, task=task)


def main(folder: Path = Path()) -> None:
    """Fit, save, load and compare, with the types that a user would write."""
    data = make_syn1(random_state=0)
    model = fitted(data.X, data.y, data.task)
    model.save(folder / "model.comtl")
    again = comtl.load(folder / "model.comtl")
    assert np.array_equal(again.predict(data.X, task=data.task), model.predict(data.X, data.task))
    found: Comparison = compare(PooledRegressor(), data.X, data.y, data.task, folds=2)
    assert found.verdict.kind in ("helps", "unclear", "harms")
    stack: MultitaskRegressor = MultitaskRegressor(cv=TaskStratifiedKFold(3))
    stack.set_params(n_jobs=1)
    try:
        comtl.load(Path(__file__))
    except ModelFileError as error:
        message: str = str(error)
        assert "user_code" in message


def wrong(model: BiFactorRegressor) -> None:
    """Never called: mypy must object to each line, or else to a comment that nothing needs."""
    model.fit([[1.0]])  # type: ignore[call-arg]
    BiFactorRegressor(n_components="two")  # type: ignore[arg-type]
    HierarchicalClassifier(structure=3)  # type: ignore[arg-type]
    TaskStratifiedKFold(folds=3)  # type: ignore[call-arg]
    compare(model, fold=2)  # type: ignore[call-arg]


if __name__ == "__main__":
    main()
