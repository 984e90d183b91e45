"""The models on real data: the school exam scores, where they are at hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeCV

from comtl import BiFactorRegressor, BiFactorRegressorCV, TaskStratifiedKFold
from helpers import task_rmse


@pytest.fixture(scope="module")
def school(request):
    folder = request.getfixturevalue("data_dir")
    return pd.read_parquet(folder / "school" / "school.parquet")


def split(school):
    """A fifth of every school trains."""
    folds = TaskStratifiedKFold(5).split(school, groups=school["task"])
    test, train = next(folds)
    X = school.drop(columns="y")
    return X.iloc[train], school["y"].iloc[train], X.iloc[test], school["y"].iloc[test]


def test_a_shared_part_beats_pooled_ridge_and_no_shared_part(school):
    X, y, X_test, y_test = split(school)
    task = X_test["task"].to_numpy()

    def rmse(guess):
        return task_rmse(y_test.to_numpy(float), guess, task)

    search = BiFactorRegressorCV(
        2, shared=True, alphas=(30.0, 300.0), cv=3, task_column="task", random_state=0
    )
    shared = rmse(search.fit(X, y).predict(X_test))
    plain = BiFactorRegressor(2, alpha_task=10.0, task_column="task", random_state=0)
    own = rmse(plain.fit(X, y).predict(X_test))
    features = X.drop(columns="task")
    ridge = RidgeCV(np.logspace(-1, 3, 9)).fit(features, y)
    pooled = rmse(ridge.predict(X_test.drop(columns="task")))
    assert shared < 10.2
    assert shared < pooled - 0.1
    assert own < 10.8
