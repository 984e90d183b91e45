"""Searches on arrays of other libraries: the choice of NumPy, where the rows lie."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, cross_val_score

from comtl import (
    BiFactorClassifierCV,
    BiFactorRegressor,
    BiFactorRegressorCV,
    TriFactorRegressorCV,
)
from comtl.hierarchical.coregionalised import CoregionalisedRidgeRegressor
from libraries import NAMES, make

N, P, T = 160, 5, 6
RNG = np.random.default_rng(2)
X, TASK = RNG.normal(size=(N, P)) + 1.0, RNG.integers(0, T, N)
W = RNG.normal(size=(P, 2)) @ RNG.normal(size=(2, T))
Y = (X * W.T[TASK]).sum(1) + 0.5 * RNG.normal(size=N)
TABLE = np.where(RNG.random((N, T)) < 0.2, np.nan, X @ W + RNG.normal(size=(N, T)))
GRID = {"alphas": [0.01, 1.0, 100.0], "cv": 3, "max_iter": 5, "tol": 0.0, "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=NAMES)
def library(request):
    return make(request.param)


@pytest.mark.parametrize(
    "model,y,task",
    [
        (BiFactorRegressorCV(2, **GRID), Y, TASK),
        (BiFactorRegressorCV([1, 2], warm_path=False, **GRID), TABLE, None),
        (TriFactorRegressorCV(2, 2, **{**GRID, "cv": KFold(2)}), Y, TASK),
        (BiFactorRegressorCV(2, **{**GRID, "cv": GroupKFold(2)}, n_jobs=2), Y, TASK),
        (BiFactorClassifierCV(2, **GRID), np.digitize(Y, [0.0]), TASK),
        (BiFactorClassifierCV(2, **GRID), np.digitize(Y, [-1.0, 1.0]), TASK),
    ],
    ids=["rows", "table", "kfold", "groups", "two", "three"],
)
def test_searches(library, model, y, task):
    def found(to):
        model.fit(to(X), to(y), task=task)
        return model.best_params_, model.cv_results_["mean_test_score"], model.coef_

    one, other = found(library), found(np.asarray)
    assert one[0] == other[0]
    np.testing.assert_allclose(one[1], other[1], rtol=1e-6)
    library.assert_same(one[2], other[2], rtol=1e-6)


def test_searches_of_scikit_learn():
    torch = make("torch")

    def scores(to):
        model = BiFactorRegressor(2, task_column=0, max_iter=5, tol=0.0)
        rows = np.concatenate([TASK[:, None], X], axis=1)
        return cross_val_score(model, to(rows), to(Y), cv=3)

    np.testing.assert_allclose(scores(torch), scores(np.asarray), rtol=1e-8)


def test_models_of_the_host_say_so(library):
    model = CoregionalisedRidgeRegressor()
    with pytest.raises(TypeError, match="CoregionalisedRidgeRegressor does not work on arrays of"):
        model.fit(library(X), library(Y), task=TASK)


def test_checkpoints_are_of_the_host(library, tmp_path):
    model = BiFactorRegressor(2, checkpoint=str(tmp_path / "fit"))
    with pytest.raises(TypeError, match="checkpoint="):
        model.fit(library(X), library(Y), task=TASK)
