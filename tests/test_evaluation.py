"""Comparisons on held-out rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, mean_squared_error

from comtl import HierarchicalRegressor, MultitaskClassifier, MultitaskRegressor
from comtl.baselines import IndependentClassifier, PooledClassifier, PooledRegressor
from comtl.evaluation import NAMES, compare
from comtl.folds import TaskStratifiedKFold
from comtl.rows import Rows
from comtl.simpler import PENALTIES, simple_fit


def problem(seed=0, T=8, n=20):
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(T * n, 3)), np.repeat([f"t{i}" for i in range(T)], n)
    effect = np.repeat(rng.normal(size=T), n)
    return X, X[:, 0] + effect + 0.5 * rng.normal(size=T * n), task


def test_errors_are_those_of_the_folds():
    X, y, task = problem()
    found = compare(PooledRegressor(10.0), X, y, task)
    guess = np.empty(len(y))
    for train, test in TaskStratifiedKFold(5).split(X, groups=task):
        guess[test] = (
            PooledRegressor(10.0)
            .fit(X[train], y[train], task=task[train])
            .predict(X[test], task=task[test])
        )
    assert found.overall["model"] == pytest.approx(np.sqrt(mean_squared_error(y, guess)))
    for number, label in enumerate(found.tasks):
        own = task == label
        expected = np.sqrt(mean_squared_error(y[own], guess[own]))
        assert found.errors["model"][number] == pytest.approx(expected)
    assert found.test_rows.tolist() == [20] * 8
    assert 10.0 in PENALTIES
    assert found.overall["pooled"] == pytest.approx(found.overall["model"], rel=0.05)
    constant = np.sqrt(np.mean((y - y.mean()) ** 2))
    assert found.overall["mean"] == pytest.approx(constant, rel=0.02)


def test_gains_agree_with_errors():
    X, y, task = problem()
    found = compare(HierarchicalRegressor(), X, y, task)
    for name in ("pooled", "separate"):
        gap = found.errors[name] ** 2 - found.errors["model"] ** 2
        np.testing.assert_allclose(found.gains[name], gap, atol=1e-12)
        assert (found.gain_errors[name] > 0).all()
    assert found.overall["model"] < found.overall["pooled"]
    assert np.abs(found.covered - found.levels).max() < 0.15


def test_classes_by_brier_score():
    X, y, task = problem()
    found = compare(IndependentClassifier(1.0), X, np.where(y > 0, "yes", "no"), task)
    chance = np.empty(len(y))
    label = np.where(y > 0, "yes", "no")
    for train, test in TaskStratifiedKFold(5).split(X, label, task):
        model = IndependentClassifier(1.0).fit(X[train], label[train], task=task[train])
        chance[test] = model.predict_proba(X[test], task=task[test])[:, 1]
    assert found.metric == "Brier score"
    assert found.overall["model"] == pytest.approx(brier_score_loss(label == "yes", chance))
    assert found.accuracy["model"] == pytest.approx(np.mean((chance > 0.5) == (label == "yes")))
    assert found.levels is None


def test_frames_with_a_task_column_and_tasks_of_one_row():
    X, y, task = problem()
    frame = pd.DataFrame(X, columns=list("abc")).assign(group=task)
    frame.loc[0, "group"] = "alone"
    found = compare(MultitaskRegressor(task_column="group", cv=2), frame, y)
    assert found.tasks.tolist()[0] == "alone"
    assert found.test_rows[0] == 1
    assert np.isnan(found.gain_errors["pooled"][0])


def test_many_rows_hold_out_one_fold_and_progress_is_told():
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(6000, 2)), np.arange(6000) % 3
    calls = []
    found = compare(
        PooledClassifier(),
        X,
        rng.integers(3, size=6000),
        task,
        progress=lambda *at: calls.append(at),
    )
    assert found.test_rows.sum() == 1200
    assert calls == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert set(found.accuracy) == set(NAMES)


def test_a_column_a_task_with_missing_cells():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = X @ rng.normal(size=(2, 4)) + rng.normal(size=(60, 4))
    Y[::3, 1] = np.nan
    found = compare(HierarchicalRegressor(), X, Y)
    assert found.test_rows.tolist() == [60, 40, 60, 60]
    assert found.overall["model"] < found.overall["mean"]


def test_a_choice_sees_training_rows_alone():
    X, y, task = problem()
    sizes = []

    def choose(rows):
        sizes.append(len(rows.y))
        return PooledRegressor(10.0)

    found = compare(PooledRegressor(1000.0), X, y, task, choose=choose)
    assert sizes == [128] * 5
    assert found.overall["model"] == compare(PooledRegressor(10.0), X, y, task).overall["model"]


@pytest.mark.parametrize("column", [None, "group"])
def test_simpler_models_take_the_bends_of_a_bent_one(column):
    """Tasks are alike and the line bends: bends are worth it, learning tasks together is not."""
    rng = np.random.default_rng(0)
    task = np.repeat(["a", "b", "c", "d"], 40)
    frame = pd.DataFrame({"age": rng.normal(size=160), "dose": rng.normal(size=160)})
    y = 2.0 * np.abs(frame["age"]) + 0.5 * rng.normal(size=160)
    if column is not None:
        frame.insert(1, column, task)
    labels = task if column is None else None
    bent = MultitaskRegressor(basis="hinges", cv=2, task_column=column)
    found = compare(bent, frame, y, labels, folds=2)
    assert found.overall["model"] < 0.7
    assert found.overall["pooled"] == pytest.approx(found.overall["model"], rel=0.08)
    assert found.overall["separate"] < 0.9
    straight = compare(HierarchicalRegressor(task_column=column), frame, y, labels, folds=2)
    assert min(straight.overall[name] for name in ("pooled", "separate")) > 1.1


def test_simpler_classifiers_and_tables_take_bends():
    rng = np.random.default_rng(1)
    X, task = rng.normal(size=(160, 1)), np.repeat([0, 1], 80)
    y = np.abs(X[:, 0]) + 0.2 * rng.normal(size=160) > 0.7
    bent = MultitaskClassifier(basis="hinges", cv=2)
    found = compare(bent, X, y, task, folds=2)
    assert found.accuracy["pooled"] > 0.85 and found.accuracy["separate"] > 0.85
    table = np.column_stack([np.abs(X[:, 0]), 1.0 - np.abs(X[:, 0])]) + 0.1 * X
    both = compare(MultitaskRegressor(basis="hinges", cv=2), X, table, folds=2)
    assert both.overall["separate"] < 0.3 * both.overall["mean"]


def test_simpler_models_leave_bends_that_do_not_help():
    rng = np.random.default_rng(1)
    X, task = rng.normal(size=(160, 1)), np.repeat([0, 1], 80)
    model = MultitaskRegressor(basis="hinges", cv=2).fit(X, np.abs(X[:, 0]), task=task)
    assert model.basis_ == "hinges"
    straight = Rows(X, 3.0 * X[:, 0] + rng.normal(size=160), task)
    _, rest = simple_fit("separate", model, straight, straight)
    assert rest is straight
    bent = Rows(X, np.abs(X[:, 0]), task)
    own, rest = simple_fit("separate", model, bent, bent)
    assert rest.X.shape == (160, 5) and own.coef_.shape == (2, 5)


def test_accuracy_is_that_of_what_is_said_at_the_cut():
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(320, 3)), np.repeat(np.arange(8), 40)
    y = X[:, 0] + rng.normal(size=320) > 1.0
    plain, cut = (
        compare(MultitaskClassifier(threshold=threshold, cv=2), X, y, task).accuracy["model"]
        for threshold in (None, "balanced_accuracy")
    )
    assert cut < plain - 0.02  # Many more rows are said to be of the small class.
