"""Columns of a two-dimensional y may be of any units."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.baselines import IndependentRegressor
from comtl.rows.fit_input import FitInput
from comtl.stacking.stack_rows import MAX_UNCENTRED_SD, TargetScaling

UNITS = np.array([1.0, 1e3, 1e-3, 30.0, 1e5])


def draw(seed=0, rows=60, features=4, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features))
    truth = X @ (1.0 + 0.5 * rng.standard_normal((features, 5))) + rng.standard_normal(5)
    return X, truth + noise * rng.standard_normal(truth.shape), truth


def with_holes(Y, share=0.3):
    return np.where(np.random.default_rng(9).random(Y.shape) < share, np.nan, Y)


def read(X, Y, weights=None):
    return FitInput(X, Y, None, weights).read(MultitaskRegressor())


@pytest.mark.parametrize("kind", ["plain", "sparse", "holes", "row weights", "observation weights"])
def test_the_unit_of_a_column_does_not_matter(kind):
    X, Y, _ = draw()
    if kind == "sparse":
        X = sparse.csr_array(X * (np.abs(X) > 0.5))
    if kind == "holes":
        Y = with_holes(Y)
    shape = {"row weights": len(Y), "observation weights": Y.shape}.get(kind)
    weights = shape and np.random.default_rng(1).uniform(0.5, 2.0, shape)
    one = MultitaskRegressor(form="linear", cv=3).fit(X, Y, sample_weight=weights)
    other = MultitaskRegressor(form="linear", cv=3).fit(X, Y * UNITS, sample_weight=weights)
    assert one.coef_.shape == other.coef_.shape == (5, 4)
    for name, weight in one.weights_.items():
        assert other.weights_[name] == pytest.approx(weight, rel=1e-4, abs=1e-6)

    def told(model):
        rows = [*model.predict_interval(X), *model.predict(X, return_std=True)]
        return np.concatenate([model.coef_.T, [model.intercept_], *rows])

    np.testing.assert_allclose(told(other) / UNITS, told(one), atol=1e-5)


def test_it_is_no_worse_than_separate_models():
    def error(model):
        draws = (draw(seed, rows=30, noise=2.0) for seed in range(4))
        gaps = (model.fit(X, Y * UNITS).predict(X) / UNITS - truth for X, Y, truth in draws)
        return np.mean([np.sqrt(np.mean(gap**2)) for gap in gaps])

    assert error(MultitaskRegressor(cv=3)) < error(IndependentRegressor(1.0))


def test_intervals_are_in_the_units_of_their_column():
    X, Y, _ = draw(rows=400)
    half = np.arange(400) % 2 == 0
    frame = pd.DataFrame(with_holes(Y[half]) * UNITS, columns=list("abcde"))
    model = MultitaskRegressor(cv=3).fit(X[half], frame)
    low, high = model.predict_interval(X[~half], 0.9)
    inside = (low < Y[~half] * UNITS) & (Y[~half] * UNITS < high)
    assert 0.85 < inside.mean() < 0.95
    assert np.all(np.abs(inside.mean(axis=0) - 0.9) < 0.09)
    _, spread = model.predict(X, return_std=True)
    np.testing.assert_allclose(spread / UNITS, 1.0, atol=0.3)


def test_members_and_weights_make_the_model():
    X, Y, _ = draw()
    model = MultitaskRegressor(form="linear", cv=3)
    model.fit(X, pd.DataFrame(Y * UNITS, columns=list("abcde")))
    assert model.tasks_.tolist() == list("abcde")
    spread = (Y * UNITS).std(axis=0)
    coef = sum(model.weights_[name] * member.coef_ for name, member in model.members_.items())
    np.testing.assert_allclose(model.coef_, coef * spread[:, None], rtol=1e-7)
    guess = model.predict(X, task=["b"] * len(X))
    np.testing.assert_allclose(guess, model.predict(X)[:, 1])


def test_one_column_is_one_target():
    X, Y, _ = draw()
    column = MultitaskRegressor(cv=3).fit(X, 1e3 * Y[:, :1])
    flat = MultitaskRegressor(cv=3).fit(X, 1e3 * Y[:, 0])
    np.testing.assert_allclose(column.predict(X)[:, 0], flat.predict(X), rtol=1e-6)


@pytest.mark.parametrize("level", [1e2, 1e5, 1e8])
def test_a_column_far_from_zero_leaves_the_others_alone(level):
    X, Y, truth = draw(noise=0.5)
    Y[:, 0], truth[:, 0] = Y[:, 0] + level, truth[:, 0] + level
    error = np.sqrt(np.mean((MultitaskRegressor(cv=3).fit(X, Y).predict(X) - truth) ** 2, axis=0))
    assert error.max() < 0.25


@pytest.mark.parametrize("value", [0.0, 5.0, 101325.0])
def test_a_column_of_one_value(value):
    X, Y, truth = draw(noise=0.5)
    Y[:, 0] = value
    model = MultitaskRegressor(cv=3).fit(X, Y)
    guess, spread = model.predict(X, return_std=True)
    assert np.abs(guess[:, 0] - value).max() < 0.5
    assert np.all(spread[:, 0] < spread[:, 1])
    assert np.sqrt(np.mean((guess - truth)[:, 1:] ** 2)) < 0.25


def test_a_column_that_a_fold_never_saw():
    X, Y, _ = draw()
    Y[1:, 4] = np.nan
    one = MultitaskRegressor(cv=3).fit(X, Y)
    other = MultitaskRegressor(cv=3).fit(X, Y * np.append(UNITS[:4], 1.0))
    assert np.isfinite(one.predict(X)).all() and np.isfinite(one.predict_interval(X)).all()
    assert np.isfinite(other.predict(X)).all()


def test_units_of_columns():
    X, Y, _ = draw()
    Y[:, 1] += 2.0 * MAX_UNCENTRED_SD * Y[:, 1].std()
    weights = np.random.default_rng(1).integers(0, 3, len(Y)).astype(float)
    found = TargetScaling.of(read(X, Y, weights))
    repeated = np.repeat(Y, weights.astype(int), axis=0)
    np.testing.assert_allclose(found.scale, repeated.std(axis=0))
    np.testing.assert_allclose(found.shift, [0.0, repeated[:, 1].mean(), 0.0, 0.0, 0.0])
    constant = TargetScaling.of(read(X, np.column_stack([Y[:, 0], 0.0 * Y[:, 0] + 7.0])))
    np.testing.assert_allclose(constant.scale, Y[:, 0].std())
    alone = TargetScaling.of(read(X, np.full((60, 2), 7.0)))
    np.testing.assert_array_equal(alone.scale, 1.0)


def test_rows_with_a_task_and_classes_have_no_units_of_their_own():
    X, Y, _ = draw()
    data = FitInput(X, Y[:, 0], np.arange(60) % 3).read(MultitaskRegressor())
    found = TargetScaling.of(data)
    np.testing.assert_array_equal(found.scale, 1.0)
    np.testing.assert_array_equal(found.shift, 0.0)
    np.testing.assert_array_equal(found.transform(data).y, data.y)
    labels = FitInput(X, Y > 0).read(MultitaskClassifier())
    assert TargetScaling.of(labels).transform(labels) is labels
    small = read(X.astype(np.float32), Y.astype(np.float32))
    assert TargetScaling.of(small).scale.dtype == "float32"
