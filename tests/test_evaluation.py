"""Comparisons on held-out rows."""

from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import brier_score_loss

from comtl import (
    HierarchicalClassifier,
    HierarchicalRegressor,
    MultitaskClassifier,
    MultitaskRegressor,
)
from comtl.baselines import IndependentClassifier, PooledClassifier, PooledRegressor
from comtl.evaluation.compare_models import NAMES, compare
from comtl.evaluation.reference_models import simple_fit
from comtl.rows.fit_input import FitInput
from comtl.rows.folds import TaskStratifiedKFold
from pages import levels


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_classes_by_brier_score(factor):
    X, y, task = levels(T=8)
    label, weights = np.where(y > 0, "yes", "no"), np.where(np.abs(y) > 1.0, factor, 1.0)
    found = compare(IndependentClassifier(1.0), X, label, task, weights)
    chance = np.empty(len(y))
    for train, test in TaskStratifiedKFold(5).split(X, label, task):
        model = IndependentClassifier(1.0)
        model.fit(X[train], label[train], task=task[train], sample_weight=weights[train])
        chance[test] = model.predict_proba(X[test], task=task[test])[:, 1]
    assert found.metric == "Brier score" and found.nominal is None
    brier = brier_score_loss(label == "yes", chance, sample_weight=weights)
    assert found.overall["model"] == pytest.approx(brier)
    right = (chance > 0.5) == (label == "yes")
    assert found.accuracy["model"] == pytest.approx(np.average(right, weights=weights))


def test_reference_models_have_the_loss_of_the_model():
    X, y, task = levels(T=8)
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * y))
    rows = FitInput(X, counts, task, None)
    for loss in ("auto", "poisson"):
        model, _ = simple_fit("separate", PooledRegressor(1.0, loss=loss), rows, rows)
        assert model.loss == loss
    assert (model.predict(X, task=task) > 0.0).all()


def test_frames_with_a_task_column_and_tasks_of_one_row():
    X, y, task = levels(T=8)
    frame = pd.DataFrame(X, columns=list("abc")).assign(group=task)
    frame.loc[0, "group"] = "alone"
    found = compare(MultitaskRegressor(task_column="group", cv=2), frame, y)
    assert found.tasks.tolist()[0] == "alone"
    assert found.test_rows[0] == 1
    assert np.isnan(found.loss_reduction_se["pooled"][0])


def test_many_rows_hold_out_one_fold_and_progress_is_told():
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(6000, 2)), np.arange(6000) % 3
    y, calls = rng.integers(3, size=6000), []
    found = compare(PooledClassifier(), X, y, task, progress=lambda *at: calls.append(at))
    assert found.test_rows.sum() == 1200
    assert calls == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert set(found.accuracy) == set(NAMES)


def test_a_choice_sees_training_rows_alone():
    X, y, task = levels(T=8)
    sizes = []

    def choose(rows):
        sizes.append(len(rows.y))
        return PooledRegressor(10.0)

    found = compare(PooledRegressor(1000.0), X, y, task, choose=choose)
    assert sizes == [128] * 5
    assert found.overall["model"] == compare(PooledRegressor(10.0), X, y, task).overall["model"]


@pytest.mark.parametrize("column", [None, "group"])
def test_reference_models_take_the_hinges_of_a_model(column):
    """Tasks are alike and not linear: hinges are worth it, learning tasks together is not."""
    rng = np.random.default_rng(0)
    task = np.repeat(["a", "b", "c", "d"], 40)
    frame = pd.DataFrame({"age": rng.normal(size=160), "dose": rng.normal(size=160)})
    y = 2.0 * np.abs(frame["age"]) + 0.5 * rng.normal(size=160)
    if column is not None:
        frame.insert(1, column, task)
    labels = task if column is None else None
    bent = MultitaskRegressor(form="hinges", cv=2, task_column=column)
    found = compare(bent, frame, y, labels, folds=2)
    assert found.overall["model"] < 0.7
    assert found.overall["pooled"] == pytest.approx(found.overall["model"], rel=0.08)
    assert found.overall["separate"] < 0.9
    straight = compare(HierarchicalRegressor(task_column=column), frame, y, labels, folds=2)
    assert min(straight.overall[name] for name in ("pooled", "separate")) > 1.1


def test_reference_classifiers_and_tables_take_hinges():
    rng = np.random.default_rng(1)
    X, task = rng.normal(size=(160, 1)), np.repeat([0, 1], 80)
    y = np.abs(X[:, 0]) + 0.2 * rng.normal(size=160) > 0.7
    bent = MultitaskClassifier(form="hinges", cv=2)
    found = compare(bent, X, y, task, folds=2)
    assert found.accuracy["pooled"] > 0.85 and found.accuracy["separate"] > 0.85
    table = np.column_stack([np.abs(X[:, 0]), 1.0 - np.abs(X[:, 0])]) + 0.1 * X
    both = compare(MultitaskRegressor(form="hinges", cv=2), X, table, folds=2)
    assert both.overall["separate"] < 0.3 * both.overall["mean"]


def test_reference_models_leave_hinges_that_do_not_help():
    rng = np.random.default_rng(1)
    X, task = rng.normal(size=(160, 1)), np.repeat([0, 1], 80)
    model = MultitaskRegressor(form="hinges", cv=2).fit(X, np.abs(X[:, 0]), task=task)
    assert model.form_ == "hinges"
    straight = FitInput(X, 3.0 * X[:, 0] + rng.normal(size=160), task)
    _, rest = simple_fit("separate", model, straight, straight)
    assert rest is straight
    bent = FitInput(X, np.abs(X[:, 0]), task)
    own, rest = simple_fit("separate", model, bent, bent)
    assert rest.X.shape == (160, 5) and own.coef_.shape == (2, 5)


def test_accuracy_is_that_of_classes_at_the_threshold():
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(320, 3)), np.repeat(np.arange(8), 40)
    y = X[:, 0] + rng.normal(size=320) > 1.0
    plain, balanced = (
        compare(MultitaskClassifier(threshold=threshold, cv=2), X, y, task).accuracy["model"]
        for threshold in (None, "balanced_accuracy")
    )
    assert balanced < plain - 0.02  # Many more rows are said to be of the small class.


def table(seed=0, n=80):
    """Rows and a target of two columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, [0]] + rng.normal(size=(n, 2))


def assert_same(one, other):
    for key, value in asdict(one).items():
        twin = getattr(other, key)
        if isinstance(value, dict):
            assert set(value) == set(twin)
            for name in value:
                np.testing.assert_allclose(value[name], twin[name], rtol=1e-5, atol=1e-7)
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            np.testing.assert_allclose(value, twin, rtol=1e-5)
        else:
            np.testing.assert_array_equal(value, twin)


@pytest.mark.parametrize("cells", ["column", "rows"])
@pytest.mark.parametrize("kind", [HierarchicalRegressor, HierarchicalClassifier])
def test_a_weight_of_zero_is_a_missing_cell(kind, cells):
    X, Y = table()
    weights = np.ones((80, 2))
    weights[(slice(0, 40), 0) if cells == "column" else slice(0, 25)] = 0.0
    classes = kind is HierarchicalClassifier
    Y, other = ((Y > 0.5).astype(float), 0.0) if classes else (Y, 1e6)
    weighted = compare(kind(), X, np.where(weights > 0, Y, other), sample_weight=weights)
    assert weighted.test_rows.tolist() == (weights > 0).sum(axis=0).tolist()
    assert weighted.overall["model"] < weighted.overall["mean"]
    assert (weighted.coverage is None) == classes
    assert_same(weighted, compare(kind(), X, np.where(weights > 0, Y, np.nan)))


def test_a_column_of_weight_zero_is_no_task():
    X, Y = table()
    weights = np.ones((80, 2))
    weights[:, 0] = 0.0
    found = compare(HierarchicalRegressor(), X, Y, sample_weight=weights)
    alone = compare(HierarchicalRegressor(), X, pd.DataFrame({1: Y[:, 1]}))
    assert found.tasks.tolist() == [1] and found.test_rows.tolist() == [80]
    for name in NAMES:
        assert found.errors[name] == pytest.approx(alone.errors[name])


@pytest.mark.parametrize("weigh", [False, True])
def test_a_column_that_one_fold_holds_out_is_refused(weigh):
    X, Y = table()
    weights = np.ones((80, 2))
    weights[1:, 0] = 0.0
    Y = Y if weigh else np.where(weights > 0, Y, np.nan)
    with pytest.raises(ValueError, match=r"too few observed values to hold some out: \[0\]"):
        compare(HierarchicalRegressor(), X, Y, sample_weight=weights if weigh else None)


@pytest.mark.parametrize("many", [1.0, 2.0, "counts"])
def test_a_weight_of_two_counts_as_two_rows(many):
    X, y, task = levels(T=8)
    counts = np.random.default_rng(1).integers(1, 4, size=len(y)) if many == "counts" else many
    weights = np.broadcast_to(np.asarray(counts, dtype=float), y.shape).copy()
    found = compare(PooledRegressor(10.0), X, y, task, weights)
    rows = FitInput(X, y, task, weights)
    own, other, constant = (np.empty(len(y)) for _ in range(3))
    for train, test in TaskStratifiedKFold(5).split(X, groups=task):
        part, rest = rows.take(train), rows.take(test)
        model = PooledRegressor(10.0)._fit_quietly(part)
        simple, _ = simple_fit("separate", model, part, rest)
        own[test] = (model.predict(rest.X, task=rest.task) - rest.y) ** 2
        other[test] = (simple.predict(rest.X, task=rest.task) - rest.y) ** 2
        constant[test] = (np.average(part.y, weights=part.sample_weight) - rest.y) ** 2
    copies = np.repeat(np.arange(len(y)), weights.astype(int))
    for name, squares in (("model", own), ("separate", other), ("mean", constant)):
        assert found.overall[name] == pytest.approx(np.sqrt(squares[copies].mean()))
    for number, label in enumerate(found.tasks):
        mine = copies[task[copies] == label]
        assert found.errors["model"][number] == pytest.approx(np.sqrt(own[mine].mean()))
        assert found.loss_reduction["separate"][number] == pytest.approx((other - own)[mine].mean())
        rows_of = task == label
        gaps, share = (other - own)[rows_of], weights[rows_of] / weights[rows_of].sum()
        spread = np.sqrt(20 / 19 * np.sum((share * (gaps - share @ gaps)) ** 2))
        assert found.loss_reduction_se["separate"][number] == pytest.approx(spread)
        if many != "counts":
            plain = gaps.std(ddof=1) / np.sqrt(20)
            assert found.loss_reduction_se["separate"][number] == pytest.approx(plain)
    assert found.test_rows.tolist() == [20] * 8


def test_coverage_is_weighted():
    X, y, task = levels(T=8)
    weights, inside = np.where(np.abs(y) > 1.0, 3.0, 1.0), np.empty(len(y))
    for train, test in TaskStratifiedKFold(5).split(X, groups=task):
        model = HierarchicalRegressor()
        model.fit(X[train], y[train], task=task[train], sample_weight=weights[train])
        low, up = model.predict_interval(X[test], 0.5, task=task[test])
        inside[test] = (low <= y[test]) & (y[test] <= up)
    covered = compare(HierarchicalRegressor(), X, y, task, weights).coverage
    assert covered[4] == pytest.approx(np.average(inside, weights=weights))
    assert np.average(inside, weights=weights) != pytest.approx(inside.mean())


def test_rows_of_weight_zero_make_no_folds():
    X, Y = table(n=8)
    weights = np.repeat([1.0, 0.0], 4)
    found = compare(PooledRegressor(), X, Y, sample_weight=weights)
    assert found.test_rows.tolist() == [4, 4]
    assert_same(found, compare(PooledRegressor(), X[:4], Y[:4]))
    with pytest.raises(ValueError, match="a single row with an observed y"):
        compare(PooledRegressor(), X, Y, sample_weight=np.arange(8) == 0)


def test_a_class_that_was_not_learned_from_costs_its_full_score():
    X, y, task = levels(T=8)
    label = np.where(y > 0, "yes", "no")
    label[3] = "rare"
    found = compare(PooledClassifier(), X, label, task)
    classes, losses = np.unique(label), np.empty((2, len(y)))
    for train, test in TaskStratifiedKFold(5).split(X, label, task):
        model = PooledClassifier().fit(X[train], label[train], task=task[train])
        chance = np.zeros((len(test), 3))
        chance[:, np.isin(classes, model.classes_)] = model.predict_proba(X[test], task=task[test])
        shares = np.mean(label[train][:, None] == classes, axis=0)
        right = label[test][:, None] == classes
        losses[0, test] = 0.5 * ((chance - right) ** 2).sum(axis=1)
        losses[1, test] = 0.5 * ((shares - right) ** 2).sum(axis=1)
    assert losses[:, 3].min() > 0.7
    assert found.overall["model"] == pytest.approx(losses[0].mean())
    assert found.overall["mean"] == pytest.approx(losses[1].mean())


def test_the_constant_is_that_of_each_column():
    X, Y = table()
    found = compare(PooledRegressor(), X, Y + np.array([0.0, 1000.0]))
    np.testing.assert_allclose(found.errors["mean"], Y.std(axis=0), rtol=0.05)
    right = Y > np.quantile(Y, [0.1, 0.9], axis=0)[[0, 1], [0, 1]]
    classes = compare(PooledClassifier(), X, right)
    assert classes.accuracy["mean"] == pytest.approx(0.9)
    np.testing.assert_allclose(classes.errors["mean"], 0.09, rtol=0.05)


def test_a_column_vector_of_classes_is_one_task():
    X, Y = table()
    label = np.digitize(Y[:, 0], [-0.5, 0.5])
    with pytest.warns(UserWarning, match="A column-vector y was passed"):
        found = compare(PooledClassifier(), X, label[:, None])
    assert_same(found, compare(PooledClassifier(), X, label))


@pytest.mark.parametrize("model", [Ridge(), None, HierarchicalRegressor])
def test_other_models_are_refused(model):
    X, y, task = levels(T=8)
    with pytest.raises(TypeError, match="model must be an estimator of comtl, got"):
        compare(model, X, y, task)


@pytest.mark.parametrize(("folds", "error"), [(1, ValueError), (2.0, TypeError), (True, TypeError)])
def test_folds_are_at_least_two(folds, error):
    X, y, task = levels(T=8)
    with pytest.raises(error, match="folds must be"):
        compare(PooledRegressor(), X, y, task, folds=folds)


@pytest.mark.parametrize("weighted", [False, True])
def test_gains_agree_with_errors_and_make_up_that_of_all(weighted):
    rng = np.random.default_rng(3)
    X, task = rng.normal(size=(120, 2)), np.repeat(np.arange(6), 20)
    y = X @ [1.0, -1.0] + rng.normal(size=6)[task] + rng.normal(size=120)
    # Tasks differ in weight, so that rows do not tell how much each counts.
    weights = 10.0 ** rng.integers(-2, 3, 6)[task] if weighted else None
    found = compare(HierarchicalRegressor(), X, y, task, weights)
    for name, gains in found.loss_reduction.items():
        gap = found.errors[name] ** 2 - found.errors["model"] ** 2
        np.testing.assert_allclose(gains, gap, atol=1e-12)
        total = found.held_out @ gains / found.held_out.sum()
        wanted = found.overall[name] ** 2 - found.overall["model"] ** 2
        assert total == pytest.approx(wanted, rel=1e-9)
    assert weighted or found.held_out.tolist() == found.test_rows.tolist()
    before = replace(found, test_weights=None)
    assert before.held_out.tolist() == found.test_rows.tolist()
