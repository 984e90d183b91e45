"""Warnings name the line of the program that called comtl, however deep the fit is."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from comtl import (
    BiFactorRegressor,
    BiFactorRegressorCV,
    HierarchicalRegressor,
    MultitaskRegressor,
)
from comtl.stacking import stack


def problem():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(4), 15)
    X = rng.standard_normal((60, 3))
    return X, X[:, 0] + 0.3 * task * X[:, 1] + 0.3 * rng.standard_normal(60), task


SHORT = {"max_iter": 1, "tol": 1e-12}
MODELS = [
    BiFactorRegressor(2, **SHORT),
    HierarchicalRegressor(**SHORT),
    BiFactorRegressorCV(2, alphas=(0.1, 1.0), cv=2, **SHORT),
    BiFactorRegressorCV(2, alphas=(0.1, 1.0), cv=2, warm_path=False, n_jobs=1, **SHORT),
    GridSearchCV(BiFactorRegressor(2, task_column=0, **SHORT), {"alpha_task": [0.1]}, cv=2),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_warnings_of_a_fit_name_this_file(model):
    X, y, task = problem()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        if isinstance(model, GridSearchCV):
            model.fit(np.column_stack([task, X]), y)
        else:
            model.fit(X, y, task=task)
    files = {one.filename for one in caught if one.category is ConvergenceWarning}
    assert files == {__file__}


def test_the_warning_of_unknown_tasks_names_this_file():
    X, y, task = problem()
    model = BiFactorRegressor(2).fit(X, y, task=task)
    with pytest.warns(UserWarning, match="No task label is known") as caught:
        model.predict(X, task=task + 100)
    assert caught[0].filename == __file__


def test_the_warning_of_an_interrupted_stack_names_this_file(monkeypatch):
    fold, folds = stack.fit_fold, []

    def interrupted(*args):
        folds.append(1)
        if len(folds) == 2:
            raise KeyboardInterrupt
        return fold(*args)

    monkeypatch.setattr(stack, "fit_fold", interrupted)
    X, y, task = problem()
    with pytest.warns(ConvergenceWarning, match="1 of 2 folds") as caught:
        MultitaskRegressor(cv=2).fit(X, y, task=task)
    assert caught[0].filename == __file__
