"""Hostile numbers: the result is that of well-scaled data, or one sentence says what is wrong."""

from functools import cache

import numpy as np
import pytest

import comtl
from comtl import baselines

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

PUBLIC = {
    name: getattr(module, name)
    for module in (comtl, baselines)
    for name in module.__all__
    if name.endswith(("Regressor", "Classifier", "CV"))
}
REGRESSORS = [name for name in PUBLIC if "Regressor" in name]
WITH_INTERVALS = ["HierarchicalRegressor", "MultitaskRegressor"]
each = pytest.mark.parametrize("name", PUBLIC)
each_regressor = pytest.mark.parametrize("name", REGRESSORS)

TASKS, ROWS = 6, 15
TASK = np.repeat(np.arange(TASKS), ROWS)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((len(TASK), 3))
SLOPES = RNG.standard_normal((TASKS, 3))
SCORE = (X * SLOPES[TASK]).sum(axis=1) + RNG.standard_normal(TASKS)[TASK]
Y = SCORE + 0.3 * RNG.standard_normal(len(TASK))


def make(name, **params):
    """Estimator by its public name, quick and with a seed."""
    known = PUBLIC[name]().get_params()
    quick = {"random_state": 0, "cv": 2, "n_init": 2, "n_components": 2, "n_clusters": 2}
    quick |= {"n_feature_clusters": 2, "n_task_clusters": 2} | params
    if name.endswith("CV"):
        quick["alphas"] = (0.1, 1.0)
    return PUBLIC[name](**{key: value for key, value in quick.items() if key in known})


def target(name):
    return Y if name in REGRESSORS else (Y > 0).astype(int)


def fitted(name, rows=X, y=None, weights=None, task=TASK, **params):
    y = target(name) if y is None else y
    return make(name, **params).fit(rows, y, task=task, sample_weight=weights)


def said(model, rows=X, task=TASK):
    method = "decision_function" if "Classifier" in type(model).__name__ else "predict"
    return getattr(model, method)(rows, task=task)


@cache
def reference(name):
    """The model of well-scaled data."""
    return fitted(name)


@each
@pytest.mark.parametrize("exponents", [(-14, 0, 0), (0, -20, 0), (-150, 0, 150)])
def test_columns_of_any_scale(name, exponents):
    rows = X * 10.0 ** np.array(exponents)
    model, plain = fitted(name, rows), reference(name)
    if name.startswith("Multitask"):
        # Some members take columns as they are.
        assert model.score(rows, target(name), task=TASK) > 0.9
    else:
        np.testing.assert_allclose(said(model, rows), said(plain), atol=1e-5)
        np.testing.assert_array_equal(model.task_clusters_, plain.task_clusters_)
        np.testing.assert_array_equal(model.feature_clusters_, plain.feature_clusters_)
    if name in WITH_INTERVALS:
        _, spread = model.predict(rows, task=TASK, return_std=True)
        _, expected = plain.predict(X, task=TASK, return_std=True)
        np.testing.assert_allclose(spread, expected, rtol=0.1)
