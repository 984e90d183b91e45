"""Hinges of columns: where they lie, when they are kept, and what a model with hinges can do."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import comtl
from comtl import MultitaskClassifier, MultitaskRegressor
from comtl.stacking.blending import mean_and_se
from comtl.stacking.hinges import Hinges
from comtl.stacking.stack import Stack

TASK = np.repeat([f"t{number}" for number in range(6)], 40)


def draw(seed=0):
    """A column with a kink at zero, one that is linear and half zeros, and a flag."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((240, 3))
    X[:, 1] = np.where(rng.random(240) < 0.5, 0.0, X[:, 1])
    X[:, 2] = rng.random(240) < 0.5
    level = np.repeat(rng.standard_normal(6), 40)
    return X, 2 * np.abs(X[:, 0]) + X[:, 1] + 0.5 * level + 0.3 * rng.standard_normal(240)


X, Y = draw()


def regressor():
    return MultitaskRegressor(form="hinges", cv=2)


@cache
def values():
    return regressor().fit(X, Y, task=TASK)


@cache
def classes():
    return MultitaskClassifier(form="hinges", cv=2).fit(X, Y > np.median(Y), task=TASK)


@pytest.mark.parametrize("packed", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("unit", [1.0, 0.1])
def test_a_weight_is_a_number_of_rows(packed, unit):
    rng = np.random.default_rng(1)
    rows = np.column_stack([X, rng.integers(0, 30, 240), -np.abs(X[:, 1])])
    times = rng.integers(0, 4, 240)
    found = Hinges.of(packed(rows), unit * times)
    given = Hinges.of(np.repeat(rows, times, axis=0), np.ones(times.sum()))
    np.testing.assert_array_equal(found.columns, given.columns)
    np.testing.assert_array_equal(found.knots, given.knots)
    assert set(found.columns.tolist()) == {0, 1, 3, 4}, "the flag has two values and no hinges"
    quantiles = np.quantile(
        rows[:, 0], [0.2, 0.4, 0.6, 0.8], weights=1.0 * times, method="inverted_cdf"
    )
    np.testing.assert_array_equal(found.knots[found.columns == 0], quantiles)


def test_rows_of_weight_zero_have_no_values():
    values = np.arange(30.0)[:, None]
    for rows in (values, sparse.csr_array(values)):
        assert len(Hinges.of(rows, np.r_[np.ones(10), np.zeros(20)]).columns) == 4
        assert len(Hinges.of(rows, np.r_[np.ones(9), np.zeros(21)]).columns) == 0
        # A knot at the least or the largest value would repeat the column, or be nothing.
        assert len(Hinges.of(rows, np.r_[1000.0, np.ones(29)]).knots) == 0
    # The values that make a column continuous may lie in a few rows of many.
    rare = np.zeros((5000, 1))
    rare[1::4, 0] = np.arange(1250) / 1250
    assert Hinges.of(rare, np.ones(5000)).knots == pytest.approx([0.1992])


def test_the_weights_of_a_table_are_those_of_its_rows():
    rng = np.random.default_rng(2)
    table = np.column_stack([Y, -Y])
    table[rng.random(table.shape) < 0.3] = np.nan
    times = rng.integers(0, 3, 240)
    model, repeated = regressor(), [np.repeat(part, times, axis=0) for part in (X, table)]
    read = comtl.rows.reading.read_training
    weighed, given = read(model, X, table, sample_weight=times), read(model, *repeated)
    found, expected = (model._candidate_hinges(data) for data in (weighed, given))
    assert len(expected.knots) > 4
    np.testing.assert_array_equal(found.knots, expected.knots)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_have_the_hinges_of_dense_ones(dtype):
    rows = X.astype(dtype)
    hinges = Hinges.of(rows, np.ones(240))
    dense, packed = hinges.expanded(rows), hinges.expanded(sparse.csr_array(rows))
    assert isinstance(packed, sparse.csr_array) and packed.dtype == dense.dtype == dtype
    np.testing.assert_array_equal(packed.toarray(), dense)
    assert (hinges.knots < 0).any(), "or zeros would be no test"


def test_a_fit_is_the_same_on_dense_and_on_sparse_rows():
    model, packed = values(), sparse.csr_array(X)
    other = regressor().fit(packed, Y, task=TASK)
    assert model.form_ == other.form_ == "hinges"
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-6, atol=1e-8)
    low, high = model.predict_interval(packed.tocoo(), task=TASK)
    assert np.all(low < high)
    asked = classes().predict, classes().predict_proba, classes().decision_function
    for said in (model.predict, other.predict, *asked):
        np.testing.assert_allclose(said(packed, task=TASK), said(X, task=TASK), rtol=1e-10)


def test_frames_small_floats_tables_and_gaps():
    frame = pd.DataFrame(X, columns=["age", "dose", "flag"]).assign(site=TASK)
    named = regressor().set_params(task_column="site").fit(frame, Y)
    np.testing.assert_allclose(named.coef_, values().coef_, rtol=1e-8, atol=1e-10)
    small = regressor().fit(X.astype(np.float32), Y, task=TASK)
    assert small.form_ == "hinges"
    guess = small.predict(X.astype(np.float32), task=TASK)
    assert guess == pytest.approx(values().predict(X, task=TASK), abs=0.05)
    table = np.column_stack([Y, 3.0 - Y])
    table[::5, 1] = np.nan
    wide = regressor().fit(X, table)
    assert wide.form_ == "hinges" and wide.predict(sparse.csr_array(X)).shape == (240, 2)
    assert wide.score(X, table) > 0.8
    gaps = X.copy()
    gaps[3, 0] = np.nan
    for rows in (gaps, sparse.csr_array(gaps)):
        with pytest.raises(ValueError, match="contains NaN"):
            values().predict(rows, task=TASK)
        with pytest.raises(ValueError, match="contains NaN"):
            regressor().fit(rows, Y, task=TASK)


def test_hinges_are_kept_where_they_help():
    straight = MultitaskRegressor(cv=2, form="linear").fit(X, Y, task=TASK)
    assert values().form_ == "hinges" and straight.form_ == "linear"
    assert values().score(X, Y, task=TASK) > straight.score(X, Y, task=TASK) + 0.1
    with pytest.raises(ValueError, match="form must be one of"):
        MultitaskRegressor(form="splines").fit(X, Y, task=TASK)


def test_a_gain_must_be_beyond_its_error():
    rng = np.random.default_rng(0)
    gains, times = rng.standard_normal(200), rng.integers(0, 4, 200)
    mean, error = mean_and_se(np.repeat(gains, times), np.ones(times.sum()))
    assert mean_and_se(gains, times) == pytest.approx((mean, error))
    assert error == pytest.approx(np.repeat(gains, times).std() / times.sum() ** 0.5)
    # Weights that sum to one are shares of the rows, not a single row.
    assert mean_and_se(gains, np.full(200, 0.005))[1] == pytest.approx(gains.std() / 200**0.5)


def test_a_stack_beats_another_by_more_than_chance():
    noise = np.random.default_rng(0).standard_normal(400)
    held = SimpleNamespace(weights=np.ones(400))
    other = SimpleNamespace(losses=np.ones(400))
    for gain, better in ((0.01, False), (0.2, True)):
        losses = 1.0 - gain + noise - noise.mean()
        assert Stack.beats(SimpleNamespace(losses=losses, held=held), other) == better


def test_hinges_that_win_by_chance_are_left():
    kept = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        task = np.arange(60) % 4
        rows = rng.standard_normal((60, 1))
        target = rows[:, 0] + 0.5 * rng.standard_normal(4)[task] + rng.standard_normal(60)
        model = MultitaskRegressor(form="hinges", cv=3).fit(rows, target, task=task)
        kept.append(model.form_ == "hinges")
    assert sum(kept) <= 2


def test_hinges_have_names_people_read():
    hinges = Hinges(np.array([1, 1, 0]), np.array([35.21432, 52300.7, -0.5]))
    names = ["age above 35.21", "age above 52301", "pay above -0.5"]
    assert hinges.names(["pay", "age"]) == names
    near = Hinges(np.zeros(2, dtype=int), np.array([1.00001, 1.00002]))
    assert near.names(["x"]) == ["x above 1.00001", "x above 1.00002"]
    assert len(set(Hinges.of(1.7e9 + X[:, :1], np.ones(240)).names(["time"]))) == 4


@pytest.mark.parametrize("made", [values, classes])
def test_a_model_with_hinges_can_be_looked_at(made, tmp_path):
    model = made()
    assert model.form_ == "hinges"
    names = model.coef_frame().columns.tolist()
    width = 3 + len(model._hinges.columns)
    assert names[:3] == ["x0", "x1", "x2"] and len(names) == width
    assert all(name.startswith(("x0 above", "x1 above")) for name in names[3:])
    assert model.task_frame().shape == (6, 2)
    assert model.feature_clusters_.shape == (width,)
    assert f"{width} features" in model._summary()
    page = model.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "x0 above" in page
    model.save(tmp_path / "m.comtl")
    back = comtl.load(tmp_path / "m.comtl")
    np.testing.assert_array_equal(back.predict(X, task=TASK), model.predict(X, task=TASK))
    packed = sparse.csr_array(X)
    np.testing.assert_array_equal(back.predict(packed, task=TASK), model.predict(packed, task=TASK))
    assert back.coef_frame().columns.tolist() == names
