"""The choice between rows and Grams, on both sides of its break-even."""

import time

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from comtl import BiFactorRegressor
from comtl.datafits.gram_datafit import GramDatafit
from comtl.datafits.rows_datafit import RowsDatafit
from comtl.engine.problem import sweep_costs
from comtl.factors import Factors
from comtl.losses import Squared
from comtl.rows.design import Design

SWEEPS = 15

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def drawn(P, T, n, packed):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n * T, P))
    if packed:
        X = sparse.csr_array(X * (rng.random(X.shape) < 0.1))
    return X, rng.standard_normal(n * T), np.repeat(np.arange(T), n)


def break_even(P, T, K, packed):
    """Rows a task at which both are expected to cost the same."""
    for n in range(2, 10_000):
        filled = n * T * P // (10 if packed else 1)
        costs = sweep_costs(T, n * T, P, K, filled)
        if costs["gram"] <= costs["rows"]:
            return n
    raise AssertionError("no break-even")


def seconds(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def sweep_seconds(make, parts, point):
    """A sweep's products and quadratic, and its share of making the datafit."""
    best = float("inf")
    for _ in range(3):
        begun = time.perf_counter()
        fit = make(*parts)
        made = time.perf_counter() - begun
        expansion = fit.quadratic_at(point)
        product = min(
            seconds(lambda e=expansion: e.normal(point.F, point.G, point.random_intercepts))
            for _ in range(3)
        )
        quadratic = min(
            seconds(lambda f=fit: f.quadratic_at(point).task_quadratic(point.F)) for _ in range(3)
        )
        best = min(best, made / SWEEPS + 4.0 * product + quadratic)
    return best


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("P", "T", "K"), [(60, 150, 5), (150, 60, 10)])
def test_the_cheaper_form_is_chosen_on_both_sides(P, T, K, packed):
    middle = break_even(P, T, K, packed)
    assert 4 <= middle < 1_500
    rng = np.random.default_rng(1)
    point = Factors(
        rng.standard_normal((P, K)),
        None,
        rng.standard_normal((T, K)),
        np.zeros(P),
        0.0,
        np.zeros(T),
    )
    for n, expected in ((max(middle // 6, 1), "rows"), (6 * middle, "gram")):
        X, y, task = drawn(P, T, n, packed)
        model = BiFactorRegressor(K, max_iter=1, tol=1.0).fit(X, y, task=task)
        assert model.solver_["rows"] == expected
        design = Design.standardized(X, np.ones(len(y)))
        parts = design, y, np.ones(len(y)), np.arange(0, len(y) + 1, n)
        with threadpool_limits(1):
            spent = {
                "rows": sweep_seconds(RowsDatafit, (*parts, Squared()), point),
                "gram": sweep_seconds(GramDatafit.of_rows, parts, point),
            }
        other = {"rows": "gram", "gram": "rows"}[expected]
        assert spent[expected] < 1.2 * spent[other], spent


def test_large_grams_are_never_formed():
    X, y, task = drawn(100, 4_000, 1, packed=False)
    assert BiFactorRegressor(3, max_iter=1, tol=1.0).fit(X, y, task=task).solver_["rows"] == "rows"
