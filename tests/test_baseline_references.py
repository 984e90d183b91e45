"""Baselines without factors against independent solutions: scikit-learn, and dense systems."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

from comtl import baselines
from comtl.baselines import direct as whole
from helpers import assert_weights, make_baseline

FORMS = pytest.mark.parametrize("form", ["tasks", "rows"])


@pytest.fixture
def as_form(monkeypatch):
    """Hold ``F`` at the identity, or ``G`` as for many features."""

    def choose(form):
        if form == "rows":
            monkeypatch.setattr(whole, "DENSE_BYTES", 0)

    return choose


def data(seed=0, tasks=4, rows=15, features=3, labels=False):
    rng = np.random.default_rng(seed)
    code = rng.permutation(np.repeat(np.arange(tasks), rows))
    X = rng.standard_normal((len(code), features)) * [0.5, 3.0, 1.0][:features] + 1.0
    X[rng.random(X.shape) < 0.3] = 0.0
    W = rng.standard_normal(features) + 0.7 * rng.standard_normal((tasks, features))
    y = (X * W[code]).sum(axis=1) + rng.standard_normal(tasks)[code]
    y = y + 0.5 * rng.standard_normal(len(code))
    return X, (y > np.median(y) if labels else y), code, rng.uniform(0.2, 2.0, len(code))


def scaled(X, y, weights, standardize, center):
    """Rows and target as the models see them, and how to take weights back."""
    if not standardize:
        return X, y, lambda coef: coef
    mean = np.average(X, axis=0, weights=weights) if center else np.zeros(X.shape[1])
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    shift = np.average(y, weights=weights) if center else 0.0
    unit = np.sqrt(np.average((y - shift) ** 2, weights=weights))
    return (X - mean) / scale, (y - shift) / unit, lambda coef: coef * unit / scale


# ---- ridge of each task, ridge of all -----------------------------------------------------------


@FORMS
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", ["IndependentRegressor", "PooledRegressor"])
def test_ridge(name, intercept, standardize, packed, form, as_form):
    as_form(form)
    X, y, code, weights = data()
    params = {"fit_intercept": intercept, "standardize": standardize}
    model = getattr(baselines, name)(0.7, **params)
    rows = sparse.csr_array(X) if packed else X
    model.fit(rows, y, task=code, sample_weight=weights)
    Z, z, back = scaled(X, y, weights, standardize, intercept)
    for task in range(4):
        mine = code == task if name.startswith("Ind") else np.full(len(code), True)
        ridge = Ridge(0.7, fit_intercept=intercept, solver="cholesky")
        ridge.fit(Z[mine], z[mine], weights[mine])
        coef = back(ridge.coef_)
        assert_allclose(model.coef_[task], coef, rtol=1e-7, atol=1e-8)
        if intercept:
            gap = y[mine] - X[mine] @ coef
            expected = np.average(gap, weights=weights[mine])
            assert_allclose(model.intercept_[task], expected, rtol=1e-7, atol=1e-8)
        else:
            assert not model.intercept_.any()


@FORMS
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", ["IndependentClassifier", "PooledClassifier"])
def test_logistic_regression(name, intercept, form, as_form):
    as_form(form)
    X, y, code, weights = data(1, labels=True, rows=25)
    alpha = 0.4
    params = {"fit_intercept": intercept, "standardize": False, "tol": 1e-12}
    model = getattr(baselines, name)(alpha, **params)
    model.fit(X, y, task=code, sample_weight=weights)
    for task in range(4):
        mine = code == task if name.startswith("Ind") else np.full(len(code), True)
        other = LogisticRegression(
            C=0.5 / alpha, fit_intercept=intercept, tol=1e-12, max_iter=10_000, solver="newton-cg"
        ).fit(X[mine], y[mine], weights[mine])
        assert_allclose(model.coef_[task], other.coef_[0], atol=1e-5)
        assert_allclose(model.intercept_[task], other.intercept_, atol=1e-5)


def test_pooled_classes_are_one_against_the_rest():
    X, _, code, _ = data(2, rows=30)
    y = np.digitize(X @ [1.0, -1.0, 0.5], [-1.0, 1.0])
    model = baselines.PooledClassifier(0.4, standardize=False, tol=1e-12).fit(X, y, task=code)
    for label in range(3):
        other = LogisticRegression(C=0.5 / 0.4, tol=1e-12, max_iter=10_000, solver="newton-cg")
        other.fit(X, y == label)
        assert_allclose(model.coef_[:, label], np.tile(other.coef_, (4, 1)), atol=1e-4)
        assert_allclose(model.intercept_[:, label], other.intercept_[0], atol=1e-4)


# ---- a common part ------------------------------------------------------------------------------


def stacked(X, y, code, weights, alpha, shared, own):
    """Weights of each task and intercepts by one dense ridge on common and own blocks.

    ``alpha``, ``shared`` and ``own`` are the penalties of own slopes, common slopes and own
    intercepts; None leaves a block out. Intercepts are penalised at the mean of the features.
    """
    mean = np.average(X, axis=0, weights=weights)
    X = X - mean
    member = np.eye(code.max() + 1)[code]
    parts = [(X, shared), (np.ones((len(y), 1)), 0.0)]
    if own is not None:
        parts.append((member, own))
    if alpha is not None:
        parts += [(X * member[:, [t]], alpha) for t in range(member.shape[1])]
    Z = np.concatenate([part for part, _ in parts], axis=1)
    ridge = np.concatenate([np.full(part.shape[1], p) for part, p in parts])
    solution = np.linalg.solve(Z.T @ (weights[:, None] * Z) + np.diag(ridge), Z.T @ (weights * y))
    P, T = X.shape[1], member.shape[1]
    coef = np.tile(solution[:P], (T, 1))
    if alpha is not None:
        coef = coef + solution[-P * T :].reshape(T, P)
    intercept = solution[P] - coef @ mean
    return coef, intercept + (solution[P + 1 : P + 1 + T] if own is not None else 0.0)


@FORMS
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("penalties", [(1.0, 2.0, 0.5), (0.05, 0.0, 20.0), (30.0, 1e-3, 1e-3)])
def test_mean_regularized(penalties, seed, form, as_form):
    as_form(form)
    X, y, code, weights = data(seed)
    alpha, shared, own = penalties
    model = baselines.MeanRegularizedRegressor(
        alpha, alpha_shared=shared, alpha_intercept=own, standardize=False
    ).fit(X, y, task=code, sample_weight=weights)
    assert_weights(model, *stacked(X, y, code, weights, *penalties), rtol=1e-6, atol=1e-7)


def test_mean_regularized_limits():
    X, y, code, _ = data()
    rest = {"standardize": False}
    model = baselines.MeanRegularizedRegressor
    pooled = baselines.PooledRegressor(0.7, **rest).fit(X, y, task=code)
    alone = baselines.IndependentRegressor(0.7, **rest).fit(X, y, task=code)
    for penalties, expected in (
        ((1e9, 0.7, 2.0), stacked(X, y, code, np.ones(len(y)), None, 0.7, 2.0)),
        ((1e9, 0.7, 1e9), (pooled.coef_, pooled.intercept_)),
        ((0.7, 1e9, 1e-9), (alone.coef_, alone.intercept_)),
    ):
        alpha, shared, own = penalties
        limit = model(alpha, alpha_shared=shared, alpha_intercept=own, **rest).fit(X, y, task=code)
        assert_weights(limit, *expected, atol=1e-5)


@pytest.mark.parametrize("name", ["RandomInterceptRegressor", "MeanRegularizedRegressor"])
def test_intercepts_at_their_estimated_penalty(name):
    """Penalties come from the fit; the rest must then be the minimum at these penalties."""
    X, y, code, weights = data(3, tasks=8)
    model = getattr(baselines, name)(0.7, standardize=False, tol=1e-12)
    model.fit(X, y, task=code, sample_weight=weights)
    own = model._state.intercept_penalty
    assert 0.0 < own < np.inf
    parts = (None, 0.7) if name.startswith("Random") else (0.7, 1.0)
    assert_weights(model, *stacked(X, y, code, weights, *parts, own), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
def test_random_intercepts_have_the_variance_they_had(spread):
    """The penalty is noise over variance; its mean estimate is near the truth."""
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        code = np.repeat(np.arange(40), 10)
        X, u = rng.standard_normal((400, 3)), spread * rng.standard_normal(40)
        y = X @ [1.0, -1.0, 0.5] + u[code] + rng.standard_normal(400)
        model = baselines.RandomInterceptRegressor(1e-3, standardize=False).fit(X, y, task=code)
        found.append(1.0 / model._state.intercept_penalty)
    assert_allclose(np.mean(found), spread**2, rtol=0.25)


def test_no_spread_is_one_intercept():
    rng = np.random.default_rng(0)
    X, code = rng.standard_normal((400, 3)), np.repeat(np.arange(4), 100)
    y = X @ np.ones(3) + rng.standard_normal(400)
    y -= np.array([y[code == t].mean() for t in range(4)])[code]
    model = baselines.RandomInterceptRegressor().fit(X - X.mean(0), y, task=code)
    assert np.ptp(model.intercept_) < 0.2


# ---- all of them --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", baselines.__all__)
def test_the_objective_never_rises(name):
    for seed in range(3):
        X, y, code, weights = data(seed, tasks=6, labels=name.endswith("Classifier"))
        model = make_baseline(name, max_iter=60)
        history = model.fit(X, y, task=code, sample_weight=weights).objective_history_
        assert len(history) == model.n_iter_ + 1 >= 2
        assert np.all(np.diff(history) <= 1e-9 * np.abs(history[:-1])), np.diff(history).max()
