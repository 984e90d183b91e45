"""Hostile numbers: the result is that of well-scaled data, or one sentence says what is wrong."""

from datetime import datetime, timedelta
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import comtl
from comtl import baselines, pack_tasks, spool_rows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

PUBLIC = {
    name: getattr(module, name)
    for module in (comtl, baselines)
    for name in module.__all__
    if name.endswith(("Regressor", "Classifier", "CV"))
}
REGRESSORS = [name for name in PUBLIC if "Regressor" in name]
WITH_INTERVALS = ["HierarchicalRegressor", "MultitaskRegressor"]
each = pytest.mark.parametrize("name", PUBLIC)
each_regressor = pytest.mark.parametrize("name", REGRESSORS)

TASKS, ROWS = 6, 15
TASK = np.repeat(np.arange(TASKS), ROWS)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((len(TASK), 3))
SLOPES = RNG.standard_normal((TASKS, 3))
SCORE = (X * SLOPES[TASK]).sum(axis=1) + RNG.standard_normal(TASKS)[TASK]
Y = SCORE + 0.3 * RNG.standard_normal(len(TASK))


def make(name, **params):
    """Estimator by its public name, quick and with a seed."""
    known = PUBLIC[name]().get_params()
    quick = {"random_state": 0, "cv": 2, "n_init": 2, "n_components": 2, "n_clusters": 2}
    quick |= {"n_feature_clusters": 2, "n_task_clusters": 2} | params
    if name.endswith("CV"):
        quick["alphas"] = (0.1, 1.0)
    return PUBLIC[name](**{key: value for key, value in quick.items() if key in known})


def target(name):
    return Y if name in REGRESSORS else (Y > 0).astype(int)


def fitted(name, rows=X, y=None, weights=None, task=TASK, **params):
    y = target(name) if y is None else y
    return make(name, **params).fit(rows, y, task=task, sample_weight=weights)


def said(model, rows=X, task=TASK):
    method = "decision_function" if "Classifier" in type(model).__name__ else "predict"
    return getattr(model, method)(rows, task=task)


@cache
def reference(name):
    """The model of well-scaled data."""
    return fitted(name)


@each
@pytest.mark.parametrize("exponents", [(-14, 0, 0), (0, -20, 0), (-150, 0, 150)])
def test_columns_of_any_scale(name, exponents):
    rows = X * 10.0 ** np.array(exponents)
    model, plain = fitted(name, rows), reference(name)
    if name.startswith("Multitask"):
        # Some members take columns as they are.
        assert model.score(rows, target(name), task=TASK) > 0.9
    else:
        np.testing.assert_allclose(said(model, rows), said(plain), atol=1e-5)
        np.testing.assert_array_equal(model.task_clusters_, plain.task_clusters_)
        np.testing.assert_array_equal(model.feature_clusters_, plain.feature_clusters_)
    if name in WITH_INTERVALS:
        _, spread = model.predict(rows, task=TASK, return_std=True)
        _, expected = plain.predict(X, task=TASK, return_std=True)
        np.testing.assert_allclose(spread, expected, rtol=0.1)


TOO_LARGE = r"holds numbers beyond 1e\+152, too large to square"


@each
@pytest.mark.parametrize("value", [1e160, -1e300])
def test_rows_too_large_to_square_are_refused(name, value):
    rows = X.copy()
    rows[5, 1] = value
    with pytest.raises(ValueError, match=f"^X {TOO_LARGE}"):
        fitted(name, rows)


@each_regressor
@pytest.mark.parametrize("value", [1e160, -1e300])
def test_targets_too_large_to_square_are_refused(name, value):
    one = Y.copy()
    one[5] = value
    for y in (one, value * Y):
        with pytest.raises(ValueError, match=f"^y {TOO_LARGE}"):
            fitted(name, y=y)


@each
def test_columns_too_small_to_scale_are_refused(name):
    with pytest.raises(ValueError, match="Column 1 of X is too small to scale; multiply it up"):
        fitted(name, X * np.array([1.0, 1e-308, 1.0]))


@each
def test_weights_of_any_size(name):
    for weight in (1e300, 2e9):
        with pytest.raises(ValueError, match=r"sample_weight goes up to .*divide them by their"):
            fitted(name, weights=np.where(np.arange(len(Y)) == 5, weight, 1.0))
    with pytest.raises(ValueError, match="sample_weight is zero for every observed y"):
        fitted(name, weights=np.full(len(Y), 5e-324))
    weights = np.where(np.arange(len(Y)) % 15 == 5, 5e-324, 1.0)
    without = fitted(name, weights=np.where(weights == 1.0, 1.0, 0.0))
    np.testing.assert_array_equal(said(fitted(name, weights=weights)), said(without))


@pytest.mark.parametrize("name", WITH_INTERVALS)
@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_intervals_of_targets_of_any_unit(name, unit):
    _, spread = fitted(name, y=unit * Y).predict(X, task=TASK, return_std=True)
    _, expected = reference(name).predict(X, task=TASK, return_std=True)
    np.testing.assert_allclose(spread / unit, expected, rtol=0.01)


def masked(values, *places):
    mask = np.zeros(np.shape(values), dtype=bool)
    mask[places] = True
    return np.ma.array(values, mask=mask)


@each
def test_masked_entries_are_missing(name):
    y, hidden = target(name), masked(X, 3, 1)
    for given, said_of_it in (
        ((hidden, y, TASK), "X has masked entries; fill them"),
        ((X, masked(y, 3), TASK), "y contains NaN"),
        ((X, y, masked(TASK, 3)), "task has 1 missing label"),
        ((X, y, TASK, masked(np.ones(len(y)), 3)), "sample_weight has masked entries; fill them"),
    ):
        with pytest.raises(ValueError, match=said_of_it):
            make(name).fit(*given)
    with pytest.raises(ValueError, match="X has masked entries"):
        reference(name).predict(hidden, task=TASK)
    with pytest.raises(ValueError, match="sample_weight has masked entries"):
        reference(name).score(X, y, task=TASK, sample_weight=masked(np.ones(len(y)), 3))
    unmasked = fitted(name, np.ma.array(X), np.ma.array(y), np.ma.ones(len(y)), np.ma.array(TASK))
    np.testing.assert_allclose(said(unmasked), said(reference(name)), atol=1e-9)


@each
def test_masked_targets_of_a_table_are_missing(name):
    table = np.stack([target(name), target(name)[::-1]], axis=1)
    gaps = table.astype(float)
    gaps[[3, 8], [1, 0]] = np.nan
    for held in (table, table.astype(object)):
        model = fitted(name, y=masked(held, [3, 8], [1, 0]), task=None)
        expected = fitted(name, y=gaps, task=None)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-9)
        score = model.score(X, masked(held, [3, 8], [1, 0]))
        assert score == pytest.approx(expected.score(X, gaps))


def test_masked_rows_are_not_packed_or_spooled(tmp_path):
    for Xs, ys in (([masked(X, 3, 1)], [Y]), ([X], [masked(Y, 3)])):
        with pytest.raises(ValueError, match="masked entries"):
            pack_tasks(Xs, ys)
        with pytest.raises(ValueError, match="of block 0 has masked entries"):
            spool_rows([(Xs[0], ys[0], TASK)], tmp_path / "rows")


DAYS = np.datetime64("2020-01-01") + np.arange(len(TASK))
GAP = np.where(TASK == 1, np.datetime64("NaT", "D"), DAYS)
SINCE = DAYS - DAYS[0]


def mixed(value, shape):
    values = np.array(np.broadcast_to(X[:, :1], (len(X), 2)), dtype=object)
    values[3] = value
    return values if shape == 2 else values[:, 0]


DATED_X = {
    "dates": DAYS[:, None],
    "not a date": GAP[:, None],
    "durations": SINCE[:, None],
    "list": [[day] for day in DAYS],
    "list of two kinds": [[day, 1.0] for day in DAYS],
    **{f"object {value!r}": mixed(value, 2) for value in (DAYS[0], SINCE[1], datetime(2020, 1, 1))},
    "pandas": pd.DataFrame({"a": Y, "day": DAYS}),
    "pandas, durations": pd.DataFrame({"a": Y, "day": SINCE}),
    "pandas, objects": pd.DataFrame({"a": Y, "day": pd.Series(DAYS).astype(object)}),
    "pandas, periods": pd.DataFrame({"a": Y, "day": pd.Series(DAYS).dt.to_period("D")}),
    "polars": pl.DataFrame({"a": Y, "day": DAYS}),
}
DATED_Y = {
    "dates": DAYS,
    "not a date": GAP,
    "durations": SINCE,
    "masked": np.ma.array(DAYS),
    "list": list(DAYS),
    "table": np.stack([DAYS, DAYS], axis=1),
    **{f"object {value!r}": mixed(value, 1) for value in (DAYS[0], SINCE[1], timedelta(1))},
    "pandas": pd.Series(DAYS),
    "pandas, with a zone": pd.Series(DAYS).dt.tz_localize("UTC"),
    "pandas, frame": pd.DataFrame({"a": DAYS, "b": DAYS}),
    "polars": pl.Series(DAYS),
}


@pytest.mark.parametrize("name", ["BiFactorRegressor", "MultitaskClassifier"])
@pytest.mark.parametrize("kind", DATED_X)
def test_dates_among_the_features_are_refused(name, kind):
    with pytest.raises(ValueError, match=r"X .*Encode them as numbers \(dates, for example, as"):
        make(name).fit(DATED_X[kind], target(name), task=TASK)


@each
def test_dates_are_refused_everywhere(name):
    with pytest.raises(ValueError, match="X holds dates or durations"):
        make(name).fit(DATED_X["not a date"], target(name), task=TASK)
    with pytest.raises(ValueError, match="X holds dates or durations"):
        reference(name).predict(SINCE[:, None].repeat(3, axis=1), task=TASK)
    with pytest.raises(ValueError, match="y holds dates or durations"):
        make(name).fit(X, DAYS, task=TASK)


@pytest.mark.parametrize("name", ["BiFactorRegressor", "BiFactorClassifier"])
@pytest.mark.parametrize("kind", DATED_Y)
def test_dates_as_targets_are_refused(name, kind):
    y = DATED_Y[kind]
    wrong = r"y (holds dates or durations|has columns that are neither).*(astype|days since)"
    with pytest.raises(ValueError, match=wrong):
        make(name).fit(X, y, task=None if getattr(y, "ndim", 1) == 2 else TASK)


@pytest.mark.parametrize("weights", [SINCE, DAYS, list(SINCE), pd.Series(SINCE)])
def test_dates_as_weights_are_refused(weights):
    with pytest.raises(ValueError, match="sample_weight holds dates or durations"):
        fitted("BiFactorRegressor", weights=weights)


def set_at(name, place, value):
    def damage(rows):
        getattr(rows, name)[place] = value

    return damage


def set_to(name, change):
    def damage(rows):
        setattr(rows, name, change(getattr(rows, name)))

    return damage


DAMAGE = {
    "column beyond the last": set_at("indices", 5, 999),
    "column below zero": set_at("indices", 5, -7),
    "falling row ends": set_at("indptr", 3, 40),
    "rows from two": set_at("indptr", 0, 2),
    "rows beyond the data": set_at("indptr", -1, 10_000),
    "assigned indices": set_to("indices", lambda it: it.astype(np.int64) * 1000 + 500),
    "fractions": set_to("indices", lambda it: it + 0.5),
    "less data": set_to("data", lambda it: it[:-3]),
    "fewer rows": set_to("indptr", lambda it: it[:-3]),
}
BAD_INDICES = "is a sparse matrix with row or column indices that do not fit its shape"


@pytest.mark.parametrize("form", ["csr_array", "csc_array", "bsr_array", "csr_matrix"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_sparse_rows_that_lead_nowhere_are_refused(form, damage):
    wide = np.hstack([np.where(np.abs(X) > 0.3, X, 0.0)] * 2)
    rows = getattr(sparse, form)(wide)
    model = fitted("BiFactorRegressor", rows)
    DAMAGE[damage](rows)
    for use in (
        lambda: fitted("BiFactorRegressor", rows),
        lambda: fitted("BiFactorRegressor", rows, task=None, task_column=0),
        lambda: model.predict(rows, task=TASK),
        lambda: pack_tasks([rows], [Y]),
    ):
        with pytest.raises(ValueError, match=BAD_INDICES):
            use()


@each
def test_sparse_rows_that_lead_nowhere_are_refused_everywhere(name, tmp_path):
    rows = sparse.csr_array(X)
    for use in (lambda: fitted(name, rows), lambda: reference(name).predict(rows, task=TASK)):
        rows.indices[7] = 3
        with pytest.raises(ValueError, match=BAD_INDICES):
            use()
    with pytest.raises(ValueError, match=f"X of block 0 {BAD_INDICES}"):
        spool_rows([(rows, Y, TASK)], tmp_path / "rows")


@pytest.mark.parametrize(("row", "column"), [(90, 0), (-1, 0), (0, 3), (0, -1)])
def test_coordinates_that_lead_nowhere_are_refused(row, column):
    rows = sparse.coo_array(X)
    rows.row[5], rows.col[5] = row, column
    with pytest.raises(ValueError, match=BAD_INDICES):
        reference("BiFactorRegressor").predict(rows, task=TASK)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
def test_lawful_sparse_rows_are_taken(form):
    rows = sparse.csr_array(X).asformat(form)
    if form == "csr":  # room behind the last entry, and columns out of order
        rows.indices[:3], rows.data[:3] = rows.indices[2::-1].copy(), rows.data[2::-1].copy()
        rows.indices, rows.data = np.append(rows.indices, 99), np.append(rows.data, 1.0)
    model = fitted("BiFactorRegressor", rows)
    np.testing.assert_allclose(said(model, rows), said(reference("BiFactorRegressor")), atol=1e-6)
