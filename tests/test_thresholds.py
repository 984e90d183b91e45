"""The decision threshold between two classes: when there is one, and who has it."""

from functools import cache

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score

from comtl import MultitaskClassifier
from comtl.stacking.thresholds import METRICS, best_thresholds
from helpers import draw_tasks

SIZES = pytest.mark.parametrize("sizes", [(800,), (400, 400), (25,) * 40], ids=["1", "2", "40"])
X, Y, TASK = draw_tasks(seed=2)


def held_out(seed, sizes, level=0.0):
    """Scores that are the log odds of their rows."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(len(sizes)), sizes)
    scores = level + 1.5 * rng.standard_normal(len(task))
    return scores, rng.random(len(task)) < expit(scores), task


@pytest.mark.parametrize("metric", METRICS)
def test_no_threshold_is_better(metric):
    rng = np.random.default_rng(0)
    scores, task = rng.standard_normal(300), rng.integers(0, 4, 300)
    truth = scores + rng.standard_normal(300) > 1.0
    named = {
        "accuracy": accuracy_score,
        "balanced_accuracy": balanced_accuracy_score,
        "f1": f1_score,
        "macro_f1": lambda a, b: f1_score(a, b, average="macro"),
    }[metric]

    def value(threshold):
        said = scores > threshold
        return np.mean([named(truth[task == t], said[task == t]) for t in range(4)])

    found = best_thresholds(metric, scores, 1.0 * truth, np.ones(300), task, 5)
    assert value(found[task]) >= max(value(other) for other in np.linspace(-2, 2, 81)) - 0.01
    assert np.all(np.isfinite(found)) and len(found) == 5


def test_thresholds_follow_the_level_of_a_task():
    rng = np.random.default_rng(0)
    task, level = np.repeat([0, 1], 200), np.repeat([-3.0, 3.0], 200)
    noise = rng.standard_normal(400)
    found = best_thresholds("macro_f1", level + noise, 1.0 * (noise > 0), np.ones(400), task, 2)
    np.testing.assert_allclose(found, [-3.0, 3.0], atol=0.3)


@SIZES
def test_even_odds_suit_accuracy_whatever_the_classes_of_a_few_rows(sizes):
    """Whatever a threshold gains on such rows by their classes is noise."""
    odds, classes = [], []
    for seed in range(10):
        scores, truth, task = held_out(seed, sizes)
        told = np.ones(len(task)), task, len(sizes)
        odds.append(best_thresholds("accuracy", scores, expit(scores), *told))
        classes.append(best_thresholds("accuracy", scores, 1.0 * truth, *told))
    assert np.abs(odds).max() < 0.03
    assert np.abs(classes).max(axis=1).mean() > 0.1


@SIZES
@pytest.mark.parametrize("metric", ["balanced_accuracy", "f1", "macro_f1"])
def test_thresholds_by_the_odds_of_uneven_classes_are_near_those_of_many_rows(metric, sizes):
    many, truth, one = held_out(99, (200_000,), level=-2.5)
    (best,) = best_thresholds(metric, many, 1.0 * truth, np.ones(len(many)), one, 1)
    assert best < -0.3
    for seed in range(10):
        scores, _, task = held_out(seed, sizes, level=-2.5)
        found = best_thresholds(metric, scores, expit(scores), np.ones(len(task)), task, len(sizes))
        assert abs(np.mean(found) - best) < 0.8


def test_weights_are_repetitions():
    scores, _, task = held_out(2, (60, 40), level=-0.5)
    times = 1 + np.arange(100) % 3
    more = np.repeat(np.arange(100), times)
    weighted, given = (
        best_thresholds("f1", scores[rows], expit(scores[rows]), weights, task[rows], 2)
        for rows, weights in ((np.arange(100), 1.0 * times), (more, np.ones(len(more))))
    )
    np.testing.assert_allclose(weighted, given, atol=0.1)


@cache
def fitted(threshold):
    """Fit to a fifth of positive rows."""
    return MultitaskClassifier(threshold=threshold, cv=3).fit(X, np.quantile(Y, 0.8) < Y, TASK)


@pytest.mark.parametrize("metric", ["balanced_accuracy", "f1", "macro_f1"])
def test_decisions_have_the_threshold_and_probabilities_have_not(metric):
    plain, model = fitted(None), fitted(metric)
    assert model.thresholds_.shape == (8,) and np.all(plain.thresholds_ == 0.0)
    assert np.mean(model.thresholds_) < -0.2
    np.testing.assert_allclose(model.coef_, plain.coef_)
    np.testing.assert_allclose(model.intercept_, plain.intercept_ - model.thresholds_)
    score, said = model.decision_function(X, task=TASK), model.predict(X, task=TASK)
    np.testing.assert_array_equal(said, score > 0)
    assert np.any(said != plain.predict(X, task=TASK))
    chance = model.predict_proba(X, task=TASK)
    np.testing.assert_allclose(chance, plain.predict_proba(X, task=TASK), rtol=1e-10)
    np.testing.assert_allclose(chance[:, 1], expit(score + model.thresholds_[TASK]), rtol=1e-10)
    logs = model.predict_log_proba(X, task=TASK)
    np.testing.assert_allclose(logs, plain.predict_log_proba(X, task=TASK), rtol=1e-10)


def test_a_task_never_seen_has_the_mean_threshold():
    plain, model = fitted(None), fitted("f1")
    task = np.where(np.arange(len(TASK)) % 2, TASK, 99)
    chance = model.predict_proba(X, task=task)
    np.testing.assert_allclose(chance, plain.predict_proba(X, task=task), rtol=1e-10)
    shift = plain.decision_function(X, task=task) - model.decision_function(X, task=task)
    np.testing.assert_allclose(shift[task == 99], np.mean(model.thresholds_))


def test_each_column_of_a_table_has_its_threshold():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 3))
    signal = X @ rng.standard_normal((3, 4)) + rng.standard_normal((150, 4))
    Y = np.where(signal > np.quantile(signal, 0.85, axis=0), "yes", "no")
    plain = MultitaskClassifier(cv=3).fit(X, Y)
    model = MultitaskClassifier(threshold="balanced_accuracy", cv=3).fit(X, Y)
    assert np.all(model.thresholds_ != 0.0)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), rtol=1e-10)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, plain.decision_function(X) - model.thresholds_)
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))
    one = model.predict_proba(X[:4], task=np.arange(4))
    np.testing.assert_allclose(one[:, 1], np.diag(model.predict_proba(X[:4])))
