"""Hierarchical models on arrays of other libraries: sums of the rows go to the host, no rows."""

import numpy as np
import pytest

from comtl import HierarchicalClassifier, HierarchicalRegressor
from libraries import NAMES, make

N, P, T = 200, 4, 8
RNG = np.random.default_rng(4)
X, TASK = RNG.normal(size=(N, P)) * [1.0, 2.0, 3.0, 4.0] + 1.0, RNG.integers(0, T, N)
Y = X[:, 0] + X[:, 1] * RNG.normal(size=T)[TASK] + 0.5 * RNG.normal(size=N)
TABLE = np.where(RNG.random((N, T)) < 0.2, np.nan, Y[:, None] + RNG.normal(size=(N, T)))
SHORT = {"max_iter": 5, "tol": 0.0}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=[(name, width) for name in NAMES for width in (64, 32)])
def library(request):
    return make(*request.param)


def same(library, found, expected):
    # NumPy works in double precision here, whatever the type of the rows.
    rtol = 1e-6 if library.width == 64 else 1e-2
    for one, other in zip(found, expected, strict=True):
        library.assert_same(one, other, rtol=rtol)


@pytest.mark.parametrize(
    "options",
    [
        {"structure": "full"},
        {"structure": "factor", "n_components": 1},
        {"structure": "diagonal", "standardize": False},
        {"structure": "intercept", "noise": "task"},
    ],
    ids=lambda options: options["structure"],
)
@pytest.mark.parametrize("y,task", [(Y, TASK), (TABLE, None)], ids=["rows", "table"])
def test_regressors(library, options, y, task):
    def said(to):
        model = HierarchicalRegressor(**options, **SHORT).fit(to(X), to(y), task=task)
        guess, deviation = model.predict(to(X), task=task, return_std=True)
        lower, upper = model.predict_interval(to(X), task=task)
        found = [model.coef_, model.intercept_, guess, deviation, lower, upper]
        return [*found, model.slope_covariance_], model.log_evidence_, model.to_numpy()

    (found, evidence, copy), (expected, goal, own) = said(library), said(np.asarray)
    same(library, found, expected)
    assert evidence == pytest.approx(goal, rel=1e-3 if library.width == 32 else 1e-8)
    rows = np.asarray(X)
    np.testing.assert_allclose(
        copy.predict(rows, task=task, return_std=True)[1],
        own.predict(rows, task=task, return_std=True)[1],
        rtol=1e-2 if library.width == 32 else 1e-6,
    )


@pytest.mark.parametrize("count", [2, 3])
def test_classifiers(library, count):
    labels = np.digitize(Y, np.quantile(Y, np.arange(1, count) / count))

    def said(to):
        model = HierarchicalClassifier("full", **SHORT).fit(to(X), to(labels), task=TASK)
        return [model.coef_, model.intercept_, model.predict_proba(to(X), task=TASK)]

    same(library, said(library), said(np.asarray))


def test_fewer_rows_than_features():
    library = make("strict")
    wide, task = RNG.normal(size=(40, 12)), np.arange(40) // 4
    target = wide[:, 0] + 0.1 * RNG.normal(size=40)

    def said(to):
        return [
            HierarchicalRegressor("isotropic", **SHORT).fit(to(wide), to(target), task=task).coef_
        ]

    same(library, said(library), said(np.asarray))


def test_a_task_never_seen(library):
    def said(to):
        model = HierarchicalRegressor("full", **SHORT).fit(to(X), to(Y), task=TASK)
        task = np.where(np.arange(N) < 50, 99, TASK)
        return model.predict(to(X), task=task, return_std=True)

    same(library, said(library), said(np.asarray))
