"""Counts: regressors by Poisson loss."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score, mean_poisson_deviance

import comtl
from comtl import BiFactorRegressor, BiFactorRegressorCV, TriFactorRegressor, baselines
from comtl.baselines import IndependentRegressor, PooledRegressor
from helpers import assert_weights
from libraries import NAMES, make

RNG = np.random.default_rng(0)
T, N, P = 8, 240, 4
TASK = np.repeat(np.arange(T), N // T)
X = RNG.normal(size=(N, P))
LEVEL = np.linspace(-3.0, 7.0, T)
"""Rates span four orders of magnitude."""
W = 0.5 * RNG.normal(size=(T, 2)) @ RNG.normal(size=(2, P))
RATE = np.exp(LEVEL[TASK] + (X * W[TASK]).sum(1))
Y = RNG.poisson(RATE).astype(float)
WEIGHT = RNG.integers(0, 4, N).astype(float)
MODELS = [BiFactorRegressor, TriFactorRegressor] + [
    getattr(baselines, name) for name in baselines.__all__ if name.endswith("Regressor")
]
COUNTS = {"loss": "poisson"}


def counts(**params):
    return BiFactorRegressor(2, **COUNTS, **params)


@cache
def fitted():
    return counts().fit(X, Y, task=TASK)


@pytest.mark.parametrize("model", [IndependentRegressor, PooledRegressor])
@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_one_task_with_ridge_is_that_of_scikit_learn(model, alpha):
    y, weights = RNG.poisson(np.exp(1.0 + X[:, 0])).astype(float), WEIGHT
    theirs = PoissonRegressor(alpha=alpha, tol=1e-12, max_iter=10_000)
    theirs.fit(X, y, sample_weight=weights)
    # Theirs is half the mean deviance and half the squares.
    ours = model(alpha * weights.sum() / 2, standardize=False, tol=1e-14, **COUNTS)
    ours.fit(X, y, sample_weight=weights)
    assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-6)
    assert_allclose(ours.intercept_[0], theirs.intercept_, atol=1e-6)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)
    assert_allclose(ours.score(X, y, None, weights), theirs.score(X, y, weights), atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_descends_and_predicts_means(model):
    fit = model(**COUNTS).fit(X, Y, task=TASK)
    assert fit.converged_
    history = fit.objective_history_
    assert np.all(np.diff(history) <= 1e-9 * history[:-1])
    guess = fit.predict(X, task=TASK)
    score = (X * fit.coef_[TASK]).sum(1) + fit.intercept_[TASK]
    assert_allclose(guess, np.exp(score), rtol=1e-9)
    assert_allclose(fit.score(X, Y, task=TASK), d2_tweedie_score(Y, guess, power=1), rtol=1e-9)


@pytest.mark.parametrize("model", [BiFactorRegressor, TriFactorRegressor])
def test_sharing_beats_separate_and_pooled_models(model):
    def deviance(kind):
        guess = kind(**COUNTS).fit(X, Y, task=TASK).predict(X, task=TASK)
        return mean_poisson_deviance(RATE + 1e-12, guess)

    assert deviance(model) < min(deviance(IndependentRegressor), deviance(PooledRegressor))


def test_intercepts_of_tasks_are_partially_pooled_logarithms():
    assert np.abs(fitted().intercept_ - LEVEL)[2:].max() < 0.3
    zero = np.where(TASK == 0, 0.0, Y)
    fit = counts().fit(X, zero, task=TASK)
    assert -12.0 < fit.intercept_[0] < -2.0
    alone = IndependentRegressor(**COUNTS).fit(X, zero, task=TASK)
    assert np.isfinite(alone.coef_).all() and alone.predict(X[:1], task=[0]) < 1e-3


def test_a_weight_counts_as_repetition_and_exposure_as_a_weight():
    times = WEIGHT.astype(int)
    many = [np.repeat(part, times, axis=0) for part in (X, Y, TASK)]
    one = counts(tol=1e-10).fit(X, Y, task=TASK, sample_weight=WEIGHT)
    other = counts(tol=1e-10).fit(*many)
    assert_allclose(one.coef_, other.coef_, atol=1e-6)
    # In another unit of exposure only the intercepts change, by its logarithm.
    unit = 1e6
    scaled = counts(tol=1e-10).fit(X, Y * unit, task=TASK, sample_weight=WEIGHT / unit)
    assert_weights(scaled, one.coef_, one.intercept_ + np.log(unit), atol=1e-6)


def test_a_table_with_gaps_is_the_same_rows_one_by_one():
    base = RNG.normal(size=(60, P))
    table = RNG.poisson(np.exp(1.0 + base @ W.T)).astype(float)
    table[RNG.random(table.shape) < 0.3] = np.nan
    task, row = np.nonzero(~np.isnan(table).T)
    model = counts(standardize=False, fit_intercept=False, tol=1e-10)
    wide = clone(model).fit(base, table)
    long = clone(model).fit(base[row], table[row, task], task=task)
    assert_allclose(wide.coef_, long.coef_, atol=1e-6)
    assert wide.predict(base).shape == table.shape
    assert 0.0 < wide.score(base, table) < 1.0


def test_sparse_rows_float32_and_units_of_features():
    full = fitted()
    packed = counts().fit(sparse.csr_array(X), Y, task=TASK)
    assert_allclose(packed.coef_, full.coef_, atol=1e-6)
    units = np.array([1e-3, 1.0, 1e3, 1e6])
    scaled = counts().fit(X * units, Y, task=TASK)
    assert_allclose(scaled.coef_ * units, full.coef_, atol=1e-6)
    single = counts().fit(X.astype(np.float32), Y, task=TASK)
    assert single.coef_.dtype == np.float32
    assert_allclose(single.coef_, full.coef_, atol=2e-2)


def test_without_intercept_and_from_random_starts():
    fit = counts(fit_intercept=False).fit(X, Y, task=TASK)
    assert np.isfinite(fit.objective_history_).all() and (fit.intercept_ == 0.0).all()
    assert np.isfinite(fit.predict(X, task=TASK)).all()
    fit = counts(init="random", random_state=0).fit(X, Y, task=TASK)
    assert fit.score(X, Y, task=TASK) > 0.9


@pytest.mark.filterwarnings("ignore:No task label is known")
def test_unseen_and_new_tasks():
    old, first = TASK < 6, np.arange(N) % 30 < 10
    fit = counts().fit(X[old], Y[old], task=TASK[old])
    mean = np.exp(X[:5] @ fit.coef_.mean(0) + fit.intercept_.mean())
    assert_allclose(fit.predict(X[:5], task=np.full(5, 99)), mean, rtol=1e-9)
    held = ~old & ~first
    for residual in (True, False):
        own = X[~old & first], Y[~old & first]
        grown = fit.adapt(*own, task=TASK[~old & first], residual=residual)
        assert grown.score(X[held], Y[held], task=TASK[held]) > 0.95


def test_a_search_holds_out_the_deviance():
    train, test = np.flatnonzero(np.arange(N) % 3 != 0), np.flatnonzero(np.arange(N) % 3 == 0)
    search = BiFactorRegressorCV(2, alphas=[0.1, 10.0], cv=[(train, test)], warm_path=False)
    search.set_params(**COUNTS).fit(X, Y, task=TASK)
    for alpha, found in zip([0.1, 10.0], search.cv_results_["mean_test_score"], strict=True):
        fit = counts(alpha_task=alpha).fit(X[train], Y[train], task=TASK[train])
        guess = fit.predict(X[test], task=TASK[test])
        assert_allclose(found, -0.5 * mean_poisson_deviance(Y[test], guess), rtol=1e-9)


def test_a_saved_model_predicts_the_same(tmp_path):
    fitted().save(tmp_path / "model.comtl")
    again = comtl.load(tmp_path / "model.comtl")
    assert_allclose(again.predict(X, task=TASK), fitted().predict(X, task=TASK), rtol=1e-12)


def test_onnx_ends_in_the_exponential():
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(fitted().to_onnx().SerializeToString())
    (found,) = session.run(None, {"X": X, "task": TASK})
    assert_allclose(found, fitted().predict(X, task=TASK), rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_arrays_of_other_libraries(name):
    library = make(name)
    found = counts().fit(library(X), library(Y), task=TASK).predict(library(X), task=TASK)
    library.assert_same(found, fitted().predict(X, task=TASK), rtol=1e-6)


def test_what_is_no_count_is_refused():
    with pytest.raises(ValueError, match=r'"poisson" needs y .* none negative, got -1; clip'):
        BiFactorRegressor(**COUNTS).fit(X, np.where(Y > 3, -1.0, Y), task=TASK)
    with pytest.raises(ValueError, match="needs y of counts"):
        fitted().adapt(X[-9:], -Y[-9:], task=np.full(9, 77))
    with pytest.raises(ValueError, match="loss must be one of 'auto', 'squared', 'logistic', got"):
        comtl.BiFactorClassifier(**COUNTS).fit(X, Y > 3, task=TASK)


def test_dask_collections_are_refused():
    dask = pytest.importorskip("dask.array")
    rows = dask.from_array(X, chunks=(60, -1))
    with pytest.raises(ValueError, match=r"squared loss only; call compute\(\)"):
        BiFactorRegressor(**COUNTS).fit(rows, dask.from_array(Y, chunks=60), task=None)
