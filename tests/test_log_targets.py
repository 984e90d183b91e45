"""Logarithms of targets: when they are taken, and what is predicted then."""

import json

import numpy as np
import pandas as pd
import pytest

import comtl
from command_line import run
from comtl import MultitaskRegressor
from comtl.tables import fit_table


def skewed(seed=0, rows=40, tasks=20, noise=0.5):
    """Sales that multiply: a level of the shop, a price, and noise in per cent."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), rows)
    X = rng.standard_normal((len(task), 3))
    score = 3.0 + 0.7 * rng.standard_normal(tasks)[task] + X @ [0.8, -0.4, 0.0]
    mean = np.exp(score + 0.5 * noise**2)
    return X, np.exp(score + noise * rng.standard_normal(len(task))), task, mean


@pytest.fixture(scope="module")
def halves():
    X, y, task, mean = skewed()
    half = np.arange(len(y)) % 2 == 0
    return (X[half], y[half], task[half]), (X[~half], y[~half], task[~half], mean[~half])


@pytest.fixture(scope="module")
def model(halves):
    X, y, task = halves[0]
    return MultitaskRegressor().fit(X, y, task=task)


def test_they_are_taken_where_effects_multiply(halves, model):
    (X, y, task), (X_test, _, task_test, mean) = halves
    plain = MultitaskRegressor(loss="squared").fit(X, y, task=task)
    assert model.loss_ == "log" and plain.loss_ == "squared"
    errors = [np.mean((one.predict(X_test, task=task_test) - mean) ** 2) for one in (model, plain)]
    assert errors[0] < 0.5 * errors[1]


def test_means_have_no_bias(halves, model):
    _, (X, _, task, mean) = halves
    assert model.predict(X, task=task).sum() == pytest.approx(mean.sum(), rel=0.08)


def test_predictions_are_positive_and_intervals_follow_the_level(halves, model):
    _, (X, y, task, _) = halves
    guess, deviation = model.predict(X, task=task, return_std=True)
    low, high = model.predict_interval(X, level=0.9, task=task)
    assert (low > 0.0).all() and (deviation > 0.0).all()
    inside = (low < y) & (y < high)
    for part in np.array_split(np.argsort(guess), 4):
        assert 0.82 < inside[part].mean() < 0.97
    large, small = guess > np.median(guess), guess <= np.median(guess)
    assert (high - low)[large].mean() > 1.5 * (high - low)[small].mean()


def test_linear_targets_and_those_below_zero_stay_as_they_are(halves):
    X, y, task = halves[0]
    rng = np.random.default_rng(1)
    linear = 50.0 + X @ [3.0, 1.0, 0.0] + rng.standard_normal(len(task))
    assert MultitaskRegressor(cv=3).fit(X, linear, task=task).loss_ == "squared"
    assert MultitaskRegressor(cv=3).fit(X, y - y.max(), task=task).loss_ == "squared"


def test_asked_for_they_need_positive_values_of_one_column(halves):
    X, y, task = halves[0]
    with pytest.raises(ValueError, match=r'loss="log" is for one column .* zero or less'):
        MultitaskRegressor(loss="log").fit(X, np.append(0.0, y[1:]), task=task)
    with pytest.raises(ValueError, match=r'loss="log" is for one column .* several columns'):
        MultitaskRegressor(loss="log").fit(X, np.column_stack([y, y]))


def test_saved_models_predict_the_same(halves, model, tmp_path):
    _, (X, _, task, _) = halves
    model.save(tmp_path / "model.comtl")
    again = comtl.load(tmp_path / "model.comtl")
    np.testing.assert_array_equal(again.predict(X, task=task), model.predict(X, task=task))
    np.testing.assert_array_equal(
        again.predict_interval(X, task=task)[1], model.predict_interval(X, task=task)[1]
    )


def test_a_change_of_unit_changes_predictions_by_it(halves, model):
    X, y, task = halves[0]
    other = MultitaskRegressor().fit(X, 1000.0 * y, task=task)
    np.testing.assert_allclose(
        other.predict(X, task=task), 1000.0 * model.predict(X, task=task), rtol=1e-3
    )


def test_the_command_says_that_logarithms_were_fitted(halves, tmp_path):
    X, y, task = halves[0]
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(shop=task, sales=y)
    path = tmp_path / "model.comtl"
    fit_table(frame, task="shop", target="sales", score=False).save(path)
    assert "It fits logarithms of the target" in " ".join(
        run(tmp_path, "inspect", path).output.split()
    )
    assert json.loads(run(tmp_path, "inspect", path, "--json").output)["loss"] == "log"
