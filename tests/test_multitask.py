"""The stacked estimators and what they are made of."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from comtl import HierarchicalRegressor, MultitaskClassifier, MultitaskRegressor
from comtl.datasets import make_syn4
from comtl.hierarchical.coregionalised import CoregionalisedRidgeRegressor
from comtl.stacking.default_members import default_members
from comtl.stacking.members import Shape
from helpers import draw_tasks


@parametrize_with_checks(
    [
        MultitaskRegressor(cv=2),
        MultitaskClassifier(cv=2),
        MultitaskRegressor(cv=2, form="linear"),
        MultitaskClassifier(cv=2, form="linear"),
        CoregionalisedRidgeRegressor(1),
    ]
)
def test_checks(estimator, check):
    check(estimator)


def test_the_members_make_one_linear_model():
    X, y, task = draw_tasks()
    model = MultitaskRegressor(form="linear").fit(X, y, task=task)
    assert set(model.members_) == set(model.weights_)
    assert all(weight > 0 for weight in model.weights_.values())
    coef = sum(model.weights_[name] * member.coef_ for name, member in model.members_.items())
    np.testing.assert_allclose(model.coef_, coef, atol=1e-10)
    center = np.mean(y)
    guesses = {name: one.predict(X, task=task) - center for name, one in model.members_.items()}
    blended = center + sum(model.weights_[name] * guess for name, guess in guesses.items())
    np.testing.assert_allclose(model.predict(X, task=task), blended, atol=1e-8)
    again = MultitaskRegressor(form="linear", n_jobs=2).fit(X, y, task=task)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-9, atol=1e-10)


def test_it_is_about_as_good_as_its_best_member():
    data = make_syn4(random_state=1)
    model = MultitaskRegressor(form="linear", cv=3).fit(data.X, data.y, task=data.task)

    def error(one):
        return np.mean((one.predict(data.X_test, task=data.task_test) - data.y_test) ** 2)

    best = min(error(member) for member in model.members_.values())
    assert error(model) < 1.05 * best


def test_a_single_slope_may_go_with_the_level():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(40), 6)
    level = rng.standard_normal(40)

    x = rng.uniform(-1.0, 1.0, len(task))
    X, y = x[:, None], level[task] * (1.0 + x) + rng.standard_normal(len(task))
    model = MultitaskRegressor().fit(X, y, task=task)
    apart = HierarchicalRegressor("isotropic").fit(X, y, task=task)
    assert sum(weight for name, weight in model.weights_.items() if "full" in name) > 0.5
    assert np.corrcoef(model.coef_[:, 0], model.intercept_)[0, 1] > 0.9
    errors = [np.abs(it.coef_[:, 0] - level).mean() for it in (model, apart)]
    assert errors[0] < 0.8 * errors[1]


def test_intervals_of_tasks_never_seen_are_wider():
    rng = np.random.default_rng(0)
    level, slope = 2.0 * rng.standard_normal(60), 1.0 + 0.5 * rng.standard_normal(60)

    def rows(task):
        X = rng.standard_normal((len(task), 2))
        return X, X[:, 0] * slope[task] + level[task] + rng.standard_normal(len(task))

    task = np.repeat(np.arange(30), 10)
    model = MultitaskRegressor(cv=3).fit(*rows(task), task=task)
    fresh = np.repeat(np.arange(30, 60), 20)
    X, y = rows(fresh)
    with pytest.warns(UserWarning, match=r"No task label is known.*KFold\(shuffle=True\) or Task"):
        low, high = model.predict_interval(X, 0.9, task=fresh)
    assert 0.8 < np.mean((low < y) & (y < high)) < 0.98


def test_folds_need_not_hold_out_every_task():
    X, y, task = draw_tasks(tasks=4)
    model = MultitaskRegressor(cv=[(np.arange(0, 80, 2), np.arange(1, 40, 2))])
    low, high = model.fit(X, y, task=task).predict_interval(X, task=task)
    assert np.all(low < high)


def test_classes_beyond_two():
    X, y, task = draw_tasks(seed=3)
    labels = np.array(["low", "middle", "high"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    labels[task == 0] = np.where(labels[task == 0] == "high", "middle", labels[task == 0])
    model = MultitaskClassifier(cv=3).fit(X, labels, task=task)
    assert model.coef_.shape == (8, 3, 3)
    assert model.score(X, labels, task=task) > 0.6
    chance = model.predict_proba(X, task=task)
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="threshold"):
        MultitaskClassifier(threshold="f1", cv=3).fit(X, labels, task=task)


def test_classes_of_a_single_task_have_one_hierarchical_member():
    """Beyond two classes each has a prior of its own: with one task there is nothing to share."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X @ rng.normal(size=(3, 4))).argmax(axis=1)
    one = MultitaskClassifier(cv=2).fit(X, y)
    names = [one.name for one in default_members(Shape(3, 4, 1), classification=True)]
    assert set(one.weights_) <= set(names)
    assert names == ["intercept"]
    more = default_members(Shape(3, 12, 3), classification=True)
    assert "full" in [one.name for one in more]
    assert one.score(X, y) > 0.8
