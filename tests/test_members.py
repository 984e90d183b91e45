"""Members that share rows and Grams come to what each comes to by itself."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, PredefinedSplit

from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.engine.problem import cell_grams
from comtl.hierarchical import population
from comtl.losses import Squared
from comtl.rows.fit_input import FitInput
from comtl.stacking.default_members import default_members
from comtl.stacking.members import Shape, Shared
from comtl.stacking.stack import fit_all


def table(rows=20, tasks=6, features=3, seed=0):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), rows)
    X = rng.normal(size=(len(task), features)) * rng.lognormal(0.0, 2.0, features) + 3.0
    W = 1.0 + rng.normal(size=(tasks, features))
    y = np.einsum("np,np->n", X, W[task]) + rng.normal(size=tasks)[task] + 5.0
    return X, y + rng.normal(size=len(y)), task


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("rows, features", [(20, 3), (4, 9)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_members_fitted_together_are_those_fitted_alone(classes, rows, features):
    X, y, task = table(rows, features=features)
    schema, y = (MultitaskClassifier(), y > np.median(y)) if classes else (MultitaskRegressor(), y)
    data = FitInput(X, y, task).read(schema)
    members = default_members(Shape.of(data), classification=classes)
    shared = Shared(data, members)
    for member, found in zip(members, fit_all(members, shared, {}).values(), strict=True):
        if member.name.startswith(("factor ", "full")):
            continue  # They start from simpler fits, and are not taken to their tops.
        member.model._learn(data, shared.columns)
        expected = member.model._linear.weights.coef
        np.testing.assert_allclose(
            found.linear.coef, expected, rtol=1e-6, atol=1e-8, err_msg=member.name
        )


def test_members_ask_for_the_grams_of_all_rows_once(monkeypatch):
    X, y, task = table(rows=30)
    data, made = FitInput(X, y, task).read(MultitaskRegressor()), []

    def counted(*given):
        made.append(given)
        return cell_grams(*given)

    monkeypatch.setattr(population, "cell_grams", counted)
    members = default_members(Shape.of(data), classification=False)
    shared = Shared(data, members)
    fit_all(members, shared, {})
    # Those of columns on one scale, and of columns as given.
    assert len(made) == 2
    found = shared.population
    assert found.datafit(Squared(), 3, 6) is found.sums


@pytest.mark.parametrize("dtype, outlier", [(np.float32, 1e5), (np.float64, 1e9)])
def test_an_outlier_that_is_held_out_leaves_digits_to_the_rest(dtype, outlier):
    X, y, task = table(rows=25, tasks=12, features=4)
    X = X.astype(dtype)
    X[7, 1] = outlier
    model = MultitaskRegressor(cv=3).fit(X, y, task=task)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("cv", [5, KFold(4)], ids=["number", "splitter"])
@pytest.mark.parametrize("kind", [MultitaskRegressor, MultitaskClassifier])
def test_rows_of_weight_zero_are_no_rows_for_the_folds(cv, kind):
    X, y, task = table()
    weights = (np.random.default_rng(1).random(len(y)) < 0.6) * 1.0
    kept = weights > 0.0
    y = y > np.median(y) if kind is MultitaskClassifier else y
    one = kind(cv=cv).fit(X, y, task=task, sample_weight=weights)
    other = kind(cv=cv).fit(X[kept], y[kept], task=task[kept])
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)


SPLITS, PLACES = list(KFold(6).split(np.zeros(120))), np.repeat(np.arange(6), 20)
GIVEN = {
    "arrays": SPLITS,
    "lists": [(train.tolist(), test.tolist()) for train, test in SPLITS],
    "negative": [(train - 120, test - 120) for train, test in SPLITS],
    "masks": [(PLACES != number, PLACES == number) for number in range(6)],
    "places": PredefinedSplit(PLACES),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_given_folds_leave_out_rows_of_weight_zero(kind):
    X, y, task = table()
    kept = np.arange(len(y)) % 7 > 0
    kept[:20] = False  # A whole fold, and a whole task.
    model = MultitaskRegressor(cv=GIVEN[kind]).fit(X, y, task, 1.0 * kept)
    numbers = np.cumsum(kept) - 1
    splits = [[numbers[part[kept[part]]] for part in split] for split in SPLITS[1:]]
    other = MultitaskRegressor(cv=splits).fit(X[kept], y[kept], task=task[kept])
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-8)


def test_folds_without_any_weight_are_refused():
    X, y, task = table()
    weights = (np.arange(len(y)) >= 20) * 1.0
    with pytest.raises(ValueError, match="no fold with rows of positive sample_weight"):
        MultitaskRegressor(cv=[SPLITS[0]]).fit(X, y, task, weights)


def test_folds_may_be_a_list_a_generator_or_a_splitter():
    X, y, task = table()
    given, *others = (
        MultitaskRegressor(cv=cv).fit(X, y, task=task).coef_
        for cv in (SPLITS, iter(SPLITS), KFold(6))
    )
    for other in others:
        np.testing.assert_array_equal(other, given)
