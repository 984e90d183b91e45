"""The stacked estimators and what they are made of."""

from functools import cache
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.datasets import make_syn4
from comtl.design import Design
from comtl.hierarchical.centred_rows import CentredRows
from comtl.hierarchical.intervals import Residuals
from comtl.hierarchical.library import classification_members
from comtl.hierarchical.related import RelatedRegressor
from comtl.hierarchical.ridge_evidence import ridge_scales
from comtl.hierarchical.stacking import stack_odds, stack_values
from comtl.hierarchical.task_covariance import solve_related, task_relation
from comtl.hierarchical.thresholds import METRICS, best_cuts


@parametrize_with_checks([MultitaskRegressor(cv=2), MultitaskClassifier(cv=2), RelatedRegressor(1)])
def test_checks(estimator, check):
    check(estimator)


def draw(seed=0, tasks=8, rows=20, features=3):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), rows)
    X = rng.standard_normal((len(task), features))
    W = 1.0 + 0.5 * rng.standard_normal((tasks, features))
    y = np.einsum("np,np->n", X, W[task]) + rng.standard_normal(tasks)[task]
    return X, y + rng.standard_normal(len(task)), task


def test_the_members_make_one_linear_model():
    X, y, task = draw()
    model = MultitaskRegressor().fit(X, y, task=task)
    assert set(model.members_) == set(model.weights_)
    assert all(weight > 0 for weight in model.weights_.values())
    coef = sum(model.weights_[name] * member.coef_ for name, member in model.members_.items())
    np.testing.assert_allclose(model.coef_, coef, atol=1e-10)
    center = np.mean(y)
    each = [
        weight * (model.members_[name].predict(X, task=task) - center)
        for name, weight in model.weights_.items()
    ]
    np.testing.assert_allclose(model.predict(X, task=task), center + sum(each), atol=1e-8)
    again = MultitaskRegressor(n_jobs=2).fit(X, y, task=task)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-9, atol=1e-10)


def test_the_folds_are_the_users_own():
    X, y, task = draw()
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    one = MultitaskRegressor(cv=splits).fit(X, y, task=task)
    other = MultitaskRegressor(cv=KFold(3, shuffle=True, random_state=0)).fit(X, y, task=task)
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_it_is_about_as_good_as_its_best_member():
    data = make_syn4(random_state=1)
    model = MultitaskRegressor(cv=3).fit(data.X, data.y, task=data.task)

    def error(one):
        return np.mean((one.predict(data.X_test, task=data.task_test) - data.y_test) ** 2)

    best = min(error(member) for member in model.members_.values())
    assert error(model) < 1.05 * best


def test_intervals_hold_what_they_promise():
    X, y, task = draw(seed=1, tasks=40)
    half = np.arange(len(y)) % 2 == 0
    model = MultitaskRegressor(cv=3).fit(X[half], y[half], task=task[half])
    low, high = model.predict_interval(X[~half], 0.9, task=task[~half])
    assert 0.86 < np.mean((low < y[~half]) & (y[~half] < high)) < 0.95
    _, spread = model.predict(X, task=task, return_std=True)
    assert spread.shape == y.shape
    low, high = model.predict_interval(X[:2], 0.5, task=[99, 98])
    assert np.all(low < high)


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
    with pytest.warns(UserWarning, match="No task label is known"):
        low, high = model.predict_interval(X, 0.9, task=fresh)
    assert 0.8 < np.mean((low < y) & (y < high)) < 0.98


def test_folds_need_not_hold_out_every_task():
    X, y, task = draw(tasks=4)
    model = MultitaskRegressor(cv=[(np.arange(0, 80, 2), np.arange(1, 40, 2))])
    low, high = model.fit(X, y, task=task).predict_interval(X, task=task)
    assert np.all(low < high)


def test_a_table_with_holes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    Y = X @ rng.standard_normal((3, 4)) + 0.3 * rng.standard_normal((50, 4))
    Y[::7, 1] = np.nan
    model = MultitaskRegressor(cv=3).fit(X, pd.DataFrame(Y, columns=list("abcd")))
    guess, spread = model.predict(X, return_std=True)
    assert guess.shape == spread.shape == (50, 4)
    assert np.nanmean((guess - Y) ** 2) < 0.2


@cache
def without_a_cut():
    X, y, task = draw(seed=2)
    return MultitaskClassifier(cv=3).fit(X, y > np.quantile(y, 0.8), task=task)


@pytest.mark.parametrize("metric", METRICS)
def test_a_cut_is_part_of_the_intercepts(metric):
    X, y, task = draw(seed=2)
    positive = y > np.quantile(y, 0.8)
    plain = without_a_cut()
    model = MultitaskClassifier(threshold=metric, cv=3).fit(X, positive, task=task)
    score = model.decision_function(X, task=task)
    np.testing.assert_array_equal(model.predict(X, task=task), score > 0)
    np.testing.assert_allclose(model.coef_, plain.coef_)
    shift = model.intercept_ - plain.intercept_
    assert np.all(np.isfinite(shift)) and np.any(shift != 0.0)


def test_bends_are_taken_where_they_help():
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((400, 2)), np.repeat(np.arange(8), 50)
    flag = (rng.random(400) < 0.5).astype(float)
    X = np.column_stack([X, flag])
    y = np.abs(X[:, 0]) + 0.3 * rng.standard_normal(8)[task] + 0.3 * rng.standard_normal(400)
    bent = MultitaskRegressor(basis="hinges", cv=3).fit(X, y, task=task)
    straight = MultitaskRegressor(cv=3).fit(X, y, task=task)
    assert bent.basis_ == "hinges" and straight.basis_ == "linear"
    assert bent.coef_.shape == (8, 3 + 2 * 4)  # the flag has two values and no bends
    assert bent.score(X, y, task=task) > straight.score(X, y, task=task) + 0.2
    linear = X[:, 0] + 0.3 * rng.standard_normal(400)
    kept = MultitaskRegressor(basis="hinges", cv=3).fit(X, linear, task=task)
    assert kept.score(X, linear, task=task) > 0.85
    packed = sparse.csr_array(X)
    assert MultitaskRegressor(basis="hinges", cv=3).fit(packed, y, task=task).basis_ == "linear"
    with pytest.raises(ValueError, match="basis must be one of"):
        MultitaskRegressor(basis="bends").fit(X, y, task=task)


def test_classes_beyond_two():
    X, y, task = draw(seed=3)
    labels = np.array(["low", "middle", "high"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    labels[task == 0] = np.where(labels[task == 0] == "high", "middle", labels[task == 0])
    model = MultitaskClassifier(cv=3).fit(X, labels, task=task)
    assert model.coef_.shape == (8, 3, 3)
    assert model.score(X, labels, task=task) > 0.6
    chance = model.predict_proba(X, task=task)
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="threshold"):
        MultitaskClassifier(threshold="f1", cv=3).fit(X, labels, task=task)


def wide(seed=0, tasks=6, rows=30, features=2500):
    """Text-like rows: the sign of what counts differs from task to task."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), rows)
    X = sparse.random_array((len(task), features), density=0.05, rng=rng, format="csr")
    sign = np.where(np.arange(tasks) % 2, 1.0, -1.0)
    w = rng.standard_normal(features)
    score = (X @ w) * sign[task]
    return X, score + 0.1 * rng.standard_normal(len(task)), task, sign


def test_classes_of_a_single_task_have_one_hierarchical_member():
    """Beyond two classes each has a prior of its own: with one task there is nothing to share."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X @ rng.normal(size=(3, 4))).argmax(axis=1)
    one = MultitaskClassifier(cv=2).fit(X, y)
    names = list(classification_members(3, 4, together=1, sparse=False))
    assert set(one.weights_) <= set(names)
    kinds = [name for name in names if name.split()[0] not in ("bifactor", "factored")]
    assert kinds == ["pooled", "independent", "intercept"]
    assert "full" in classification_members(3, 12, together=3, sparse=False)
    assert one.score(X, y) > 0.8


def test_signs_that_flip_between_tasks_are_learnt():
    X, y, task, sign = wide(rows=150)
    rows = CentredRows(
        Design.standardized(X, np.ones(len(y)), scale=False),
        np.ones(len(y)),
        np.arange(0, 901, 150),
    )
    target = rows.center(y)
    relation = task_relation(rows, target, *ridge_scales(rows, target))
    off = ~np.eye(6, dtype=bool)
    assert np.corrcoef(relation[off], np.outer(sign, sign)[off])[0, 1] > 0.8
    model = MultitaskClassifier(cv=3).fit(X, y > 0, task=task)
    assert model.coef_.shape == (6, 2500)
    alike = np.corrcoef(model.coef_)
    assert np.mean(np.sign(alike[off]) == np.outer(sign, sign)[off]) > 0.9


@pytest.mark.parametrize("packed", [True, False])
def test_related_weights_equal_the_kernel_solution(packed):
    rng = np.random.default_rng(0)
    offsets = np.array([0, 4, 9, 12])
    code = np.repeat(np.arange(3), np.diff(offsets))
    X = rng.standard_normal((12, 20)) * (rng.random((12, 20)) < 0.6)
    weights = rng.choice([1.0, 2.0], 12)
    design = Design.standardized(sparse.csr_array(X) if packed else X, weights)
    rows = CentredRows(design, weights, offsets)
    Z = X * design.inverse_scale - design.shift
    root = np.sqrt(weights)
    M = np.zeros((12, 12))
    for t in range(3):
        own = code == t
        M[np.ix_(own, own)] = np.outer(root[own], root[own]) / weights[own].sum()
    centre = np.eye(12) - M
    Z = centre @ (root[:, None] * Z)
    y = centre @ rng.standard_normal(12)
    C, rest, noise = rng.standard_normal((3, 1)), 0.4, 0.7
    omega = C @ C.T + rest * np.eye(3)
    kernel = (Z @ Z.T) * omega[np.ix_(code, code)]
    dual = np.linalg.solve(kernel + noise * np.eye(12), y)
    W = omega[:, code] @ (dual[:, None] * Z)
    found = solve_related(rows, y, C, rest, noise, tol=1e-12)
    np.testing.assert_allclose(found, W, atol=1e-8)


@pytest.mark.parametrize("features", [5, 60])
def test_sizes_of_weights_and_noise_are_most_likely(features):
    rng = np.random.default_rng(1)
    offsets = np.array([0, 30, 55, 100])
    code = np.repeat(np.arange(3), np.diff(offsets))
    X = rng.standard_normal((100, features))
    # With more features than rows, rows that come twice would tell of no noise at all.
    weights = rng.choice([0.0, 1.0, 2.0 if features == 5 else 1.0], 100, p=[0.1, 0.7, 0.2])
    W = 0.5 * rng.standard_normal((3, features))
    y = np.einsum("ij,ij->i", X, W[code]) + rng.standard_normal(100)
    rows = CentredRows(Design.plain(X), weights, offsets)
    root = np.sqrt(weights)
    target = rows.center(root * y)

    def deviance(size, noise):
        total = 0.0
        for t in range(3):
            own = np.repeat(np.flatnonzero(code == t), weights[code == t].astype(int))
            covariance = noise * np.eye(len(own)) + size * X[own] @ X[own].T
            one = np.ones(len(own))
            inverse = np.linalg.inv(covariance)
            projected = inverse - np.outer(inverse @ one, one @ inverse) / (one @ inverse @ one)
            total += np.linalg.slogdet(covariance)[1] + np.log(one @ inverse @ one)
            total += y[own] @ projected @ y[own]
        return total

    found = ridge_scales(rows, target)
    best = deviance(*found)
    for size in (0.95, 1.0, 1.05):
        for noise in (0.95, 1.0, 1.05):
            assert deviance(size * found[0], noise * found[1]) >= best - 1e-3
    assert features > 5 or 0.3 < found[1] < 2.0


def test_targets_without_signal_are_all_noise():
    rng = np.random.default_rng(0)
    rows = CentredRows(
        Design.plain(rng.standard_normal((200, 30))), np.ones(200), np.array([0, 100, 200])
    )
    size, noise = ridge_scales(rows, rows.center(rng.standard_normal(200)))
    assert 30 * size < 0.2 * noise and 0.7 < noise < 1.4
    assert ridge_scales(rows, np.zeros(200))[0] < 1e-10


def test_a_small_task_among_large_ones_is_told_by_its_own_rows():
    """More rows than features in most tasks, none of which has to do with another."""
    rng = np.random.default_rng(0)
    sizes = np.array([60, 900, 900, 900])
    task = np.repeat(np.arange(4), sizes)
    X = sparse.random_array((len(task) + 500, 300), density=0.1, rng=rng, format="csr")
    W = 2.0 * rng.standard_normal((4, 300))
    own = np.append(task, np.zeros(500, dtype=int))
    y = np.asarray(X.multiply(W[own]).sum(axis=1)).ravel() + 0.5 * rng.standard_normal(len(own)) > 0
    with mock.patch("comtl.hierarchical.library.MOST_WORK", 0.0):
        model = MultitaskClassifier(cv=3).fit(X[: len(task)], y[: len(task)], task=task)
    found = model.score(X[len(task) :], y[len(task) :], task=own[len(task) :])
    alone = RidgeClassifier(1.0).fit(X[:60], y[:60]).score(X[len(task) :], y[len(task) :])
    assert found > alone - 0.03


def test_weights_of_members_are_optimal():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((200, 4))
    truth = scores[:, 0] - 0.5 * scores[:, 1] + rng.standard_normal(200)
    weights = rng.uniform(0.5, 2.0, 200)
    found = stack_values(scores, truth, weights)
    slope = scores.T @ (weights * (scores @ found - truth))
    assert np.all(found >= 0) and np.all(slope >= -1e-8)
    np.testing.assert_allclose(slope[found > 0], 0.0, atol=1e-8)
    signs = np.where(truth > 0.3, 1.0, -1.0)
    shares, shift = stack_odds(scores, signs, weights)
    chance = 1.0 / (1.0 + np.exp(-(scores @ shares + shift)))
    gap = weights * (chance - (signs > 0))
    slope = scores.T @ gap
    assert np.all(shares >= 0) and np.all(slope > -0.05)
    np.testing.assert_allclose(slope[shares > 1e-6], 0.0, atol=0.05)
    assert abs(gap.sum()) < 0.05


@pytest.mark.parametrize("stack", ["values", "odds"])
def test_weights_are_drawn_to_a_member_where_chance_may_have_made_their_gain(stack):
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((300, 4))

    def weights(truth, base):
        if stack == "values":
            return stack_values(scores, truth, np.ones(300), base)
        return stack_odds(scores, np.where(truth > 0, 1.0, -1.0), np.ones(300), base)[0]

    alone = np.eye(4)[1]
    told = scores @ [0.5, 0.2, 1.0, 0.0] + rng.standard_normal(300)
    best = weights(told, None)
    near = weights(told, 1)
    np.testing.assert_allclose(near, best, atol=0.1)
    # The member and noise: there is nothing to gain beyond it.
    noise = rng.standard_normal(300) if stack == "values" else rng.logistic(size=300)
    chance = scores[:, 1] + noise
    far, near = np.abs(weights(chance, None) - alone), np.abs(weights(chance, 1) - alone)
    assert near.sum() < 0.5 * far.sum()


def test_weights_that_sum_to_one_count_rows_alike():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((80, 3))
    truth = scores @ [0.5, 0.2, 1.0] + 2.0 * rng.standard_normal(80)
    signs, ones, shares = np.where(truth > 0, 1.0, -1.0), np.ones(80), np.full(80, 1.0 / 80)
    plain = stack_values(scores, truth, ones, 1)
    assert 0.0 < plain[0] < stack_values(scores, truth, ones)[0]
    np.testing.assert_allclose(stack_values(scores, truth, shares, 1), plain)
    expected = stack_odds(scores, signs, ones, 1)[0]
    np.testing.assert_allclose(stack_odds(scores, signs, shares, 1)[0], expected)
    # Rows told twice are rows of weight two.
    twice = stack_values(*(np.concatenate([it, it]) for it in (scores, truth, ones)), 1)
    np.testing.assert_allclose(stack_values(scores, truth, 2.0 * ones, 1), twice)


def test_a_stack_with_little_signal_leans_on_the_mixed_model():
    shares = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, task = rng.standard_normal((120, 4)), np.repeat(np.arange(12), 10)
        y = X[:, 0] + 2.0 * rng.standard_normal(120)
        model = MultitaskRegressor(cv=3).fit(X, y, task=task)
        shares.append(model.weights_["isotropic"] / sum(model.weights_.values()))
        assert model.members_["isotropic"].shrink_common
    assert np.mean(shares) > 0.4


@pytest.mark.parametrize("metric", METRICS)
def test_no_cut_is_better(metric):
    from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score

    rng = np.random.default_rng(0)
    scores, task = rng.standard_normal(300), rng.integers(0, 4, 300)
    truth = scores + rng.standard_normal(300) > 1.0
    named = {
        "accuracy": accuracy_score,
        "balanced_accuracy": balanced_accuracy_score,
        "f1": f1_score,
        "macro_f1": lambda a, b: f1_score(a, b, average="macro"),
    }[metric]

    def value(cut):
        return np.mean(
            [
                named(truth[task == t], scores[task == t] > np.broadcast_to(cut, 300)[task == t])
                for t in range(4)
            ]
        )

    cuts = best_cuts(metric, scores, truth, np.ones(300), task, 5)
    assert value(cuts[task]) >= max(value(other) for other in np.linspace(-2, 2, 81)) - 0.01
    assert np.all(np.isfinite(cuts)) and len(cuts) == 5


def test_cuts_follow_the_level_of_a_task():
    rng = np.random.default_rng(0)
    task, level = np.repeat([0, 1], 200), np.repeat([-3.0, 3.0], 200)
    noise = rng.standard_normal(400)
    cuts = best_cuts("macro_f1", level + noise, noise > 0, np.ones(400), task, 2)
    np.testing.assert_allclose(cuts, [-3.0, 3.0], atol=0.3)


def test_errors_of_tasks_with_few_rows_lean_on_all():
    rng = np.random.default_rng(0)
    task = np.repeat([0, 1, 2], [500, 500, 2])
    errors = rng.standard_normal(1002) * np.array([1.0, 3.0, 0.01])[task]
    found = Residuals.of(errors, np.ones(1002), task, 4, between=7.0)
    assert found.scales[0] == pytest.approx(1.0, rel=0.1)
    assert found.scales[1] == pytest.approx(3.0, rel=0.1)
    assert found.scales[2] > 1.0
    level = np.mean(errors**2)
    np.testing.assert_allclose(found.scales[3:], np.sqrt([level, level + 7.0]))
    low, high = found.quantiles(0.9)
    inside = (errors >= low * found.scales[task]) & (errors <= high * found.scales[task])
    assert 0.88 < inside.mean() < 0.93
