"""Members that share rows and Grams come to what each comes to by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, PredefinedSplit

from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.hierarchical.population import Population
from comtl.linear import OutputColumns
from comtl.rows.fit_input import FitInput
from comtl.stacking.default_members import (
    default_classification_members,
    default_regression_members,
)
from comtl.stacking.shared_fits import WholeSums, fit_members, population_for


def table(rows=20, tasks=6, features=3, seed=0):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), rows)
    X = rng.normal(size=(len(task), features)) * rng.lognormal(0.0, 2.0, features) + 3.0
    W = 1.0 + rng.normal(size=(tasks, features))
    y = np.einsum("np,np->n", X, W[task]) + rng.normal(size=tasks)[task] + 5.0
    return X, y + rng.normal(size=len(y)), task


def cells(schema, X, y, task):
    return FitInput(X, y, task).read(schema)


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("rows, features", [(20, 3), (4, 9)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_members_fitted_together_are_those_fitted_alone(classes, rows, features):
    X, y, task = table(rows, features=features)
    stack = MultitaskClassifier() if classes else MultitaskRegressor()
    make = default_classification_members if classes else default_regression_members
    members = make(features, 6, together=6, sparse=False)
    data = cells(stack, X, y > np.median(y) if classes else y, task)
    columns = OutputColumns.of(data)
    found = fit_members(list(members.values()), data, columns, population_for(stack, data, columns))
    for name, member in zip(members, found, strict=True):
        if name.startswith(("factor ", "full")):
            continue  # They start from simpler fits, and are not taken to their tops.
        alone = members[name]
        alone._learn(data, columns)
        np.testing.assert_allclose(
            member._linear.coef, alone._linear.coef, rtol=1e-6, atol=1e-8, err_msg=name
        )


def test_members_ask_for_the_grams_of_all_cells_once():
    X, y, task = table(rows=30)
    made = []
    whole = MultitaskRegressor._table

    class Counted(MultitaskRegressor):
        def _table(self, data, hinges):
            found = whole(self, data, hinges)
            made.append(found.population)
            return found

    Counted().fit(X, y, task=task)
    (population,) = made
    assert "sums" in vars(population)
    assert population.datafit(Counted()._loss(), 3, 6) is population.sums
    assert population.gaussian(heteroscedastic=True).data.sums is population.sums


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0.05, 0.9), shared=st.booleans())
def test_sums_of_the_rest_follow_from_those_of_all(seed, share, shared):
    rng = np.random.default_rng(seed)
    schema = MultitaskRegressor()
    if shared:
        X, task = rng.normal(size=(24, 3)), None
        y = rng.normal(size=(24, 4))
    else:
        X, y, task = table(rows=8, seed=seed)
    held = rng.random(len(X)) < share
    held[:2], held[-2:] = True, False
    all_cells, rest, few = (
        cells(schema, X[part], y[part], None if task is None else task[part])
        for part in (slice(None), ~held, held)
    )
    whole, direct = (
        Population.of(data, standardize=True, classification=False) for data in (all_cells, rest)
    )
    models = list(default_regression_members(3, 6, together=6, sparse=False).values())
    found = WholeSums.of(whole, models).without(few, direct)
    assert found.known_moments is not None and direct.known_moments is None
    for name in ("gram", "moment", "energy"):
        expected = getattr(direct.sums, name)
        np.testing.assert_allclose(
            getattr(found.sums, name), expected, atol=1e-9 * np.abs(expected).max(), err_msg=name
        )


@pytest.mark.parametrize("dtype, outlier", [(np.float32, 1e5), (np.float64, 1e9)])
def test_an_outlier_that_is_held_out_leaves_digits_to_the_rest(dtype, outlier):
    X, y, task = table(rows=25, tasks=12, features=4)
    X = X.astype(dtype)
    X[7, 1] = outlier
    model = MultitaskRegressor(cv=3).fit(X, y, task=task)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("cv", [5, KFold(4)], ids=["number", "splitter"])
@pytest.mark.parametrize("classes", [False, True])
def test_rows_of_weight_zero_are_no_rows_for_the_folds(cv, classes):
    X, y, task = table()
    weights = (np.random.default_rng(1).random(len(y)) < 0.6) * 1.0
    kept = weights > 0.0
    kind = MultitaskClassifier if classes else MultitaskRegressor
    y = y > np.median(y) if classes else y
    one = kind(cv=cv).fit(X, y, task=task, sample_weight=weights)
    other = kind(cv=cv).fit(X[kept], y[kept], task=task[kept])
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)


def given_folds(kind, X):
    splits = list(KFold(6).split(X))
    places = np.zeros(len(X), dtype=int)
    for number, (_, test) in enumerate(splits):
        places[test] = number
    return {
        "arrays": splits,
        "lists": [(train.tolist(), test.tolist()) for train, test in splits],
        "negative": [(train - len(X), test - len(X)) for train, test in splits],
        "masks": [(places != number, places == number) for number in range(6)],
        "places": PredefinedSplit(places),
    }[kind]


@pytest.mark.parametrize("kind", ["arrays", "lists", "negative", "masks", "places"])
def test_given_folds_leave_out_rows_of_weight_zero(kind):
    X, y, task = table()
    weights = np.ones(len(y))
    weights[::7] = 0.0
    weights[:20] = 0.0  # A whole fold, and a whole task.
    kept = weights > 0.0
    model = MultitaskRegressor(cv=given_folds(kind, X)).fit(X, y, task, weights)
    numbers = np.cumsum(kept) - 1
    splits = [
        (numbers[train[kept[train]]], numbers[test[kept[test]]])
        for train, test in given_folds("arrays", X)[1:]
    ]
    other = MultitaskRegressor(cv=splits).fit(X[kept], y[kept], task=task[kept])
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-8)


def test_folds_without_any_weight_are_refused():
    X, y, task = table()
    weights = (np.arange(len(y)) >= 20) * 1.0
    with pytest.raises(ValueError, match="no fold with rows of positive sample_weight"):
        MultitaskRegressor(cv=[next(KFold(6).split(X))]).fit(X, y, task, weights)


def test_folds_may_be_a_generator_for_each_basis():
    X, y, task = table()
    once = MultitaskRegressor(cv=iter(list(KFold(4).split(X))), basis="hinges")
    again = MultitaskRegressor(cv=list(KFold(4).split(X)), basis="hinges")
    np.testing.assert_array_equal(once.fit(X, y, task=task).coef_, again.fit(X, y, task=task).coef_)
