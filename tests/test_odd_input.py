"""Odd but lawful input is fitted: degenerate shapes, extreme scales, an interrupted fit."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import comtl.engine.alternation
from comtl import (
    BiFactorClassifier,
    BiFactorRegressor,
    BiFactorRegressorCV,
    TriFactorClassifier,
    TriFactorRegressor,
)
from small_tables import problem

KINDS = [BiFactorRegressor, TriFactorRegressor, BiFactorClassifier, TriFactorClassifier]
each_kind = pytest.mark.parametrize("kind", KINDS)


def constant(X, columns, value):
    X = X.copy()
    X[:, columns] = value
    return X


def one_row(X, y, task):
    rows = [0, np.flatnonzero(y != y[0])[0]] if y.dtype == int else [0]
    return X[rows], y[rows], task[rows]


NOISE = np.random.default_rng(1).standard_normal((48, 200))
NO_PENALTY = {"alpha_feature": 0.0, "alpha_task": 0.0, "alpha_shared": 0.0, "shared": True}
CASES = {
    "constant column": lambda X, y, t: (constant(X, 1, 1e6), y, t),
    "all columns constant": lambda X, y, t: (constant(X, slice(None), 3.7), y, t),
    "duplicate columns": lambda X, y, t: (np.hstack([X, X, X[:, :1]]), y, t),
    "one row a task": lambda X, y, t: (X, y, np.arange(48)),
    "one row": one_row,
    "more features than rows": lambda X, y, t: (np.hstack([X, NOISE]), y, t),
    "one task": lambda X, y, t: (X[t == 3], y[t == 3], t[t == 3]),
    "tasks of one class or value": lambda X, y, t: (X, np.where(t < 2, t, y), t),
    "zero penalties": lambda X, y, t: (X, y, t),
    "zero columns": lambda X, y, t: (np.hstack([X, np.zeros((48, 2))]), y, t),
    "many tasks": lambda X, y, t: (X, y, np.arange(48) // 2),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@each_kind
@pytest.mark.parametrize("case", CASES)
def test_odd_but_lawful(kind, case):
    X, y, task = CASES[case](*problem(kind))
    params = NO_PENALTY | {"max_iter": 100, "tol": 1e-2} if case == "zero penalties" else {}
    for form in (np.asarray, sparse.csr_array) if kind in KINDS[::3] else (np.asarray,):
        model = kind(**params).fit(form(X), y, task=task)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.intercept_).all()
        said = model.predict(form(X), task=task)
        assert len(said) == len(y)
        constant = np.ptp(X, axis=0) == 0
        assert (np.abs(model.coef_[..., constant]) < 1e-12).all()
        assert model.task_clusters_.shape == (len(np.unique(task)),)
        assert model.feature_clusters_.shape == (X.shape[1],)
        if case not in ("all columns constant", "one row"):
            assert model.score(form(X), y, task=task) > 0.3


def scores(model, X, task):
    own = model.predict if "Regressor" in type(model).__name__ else model.decision_function
    return own(X, task=task)


def fit_or_refuse(model, X, y, task):
    """A fitted model, or None where the input was refused as too large or too small."""
    try:
        return model.fit(X, y, task=task)
    except ValueError as error:
        assert "X" in str(error) or "y" in str(error)
        assert "scale" in str(error) or "large" in str(error) or "small" in str(error)
        return None


@each_kind
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_extreme_columns(kind, form):
    X, y, task = problem(kind)
    expected = scores(kind(2, random_state=0).fit(X, y, task=task), X, task)
    for exponents in ((150, -150, 0), (151, 151, 151), (300, 0, 0), (-300, 0, 0)):
        moved = form(X * 10.0 ** np.array(exponents, dtype=float))
        model = fit_or_refuse(kind(2, random_state=0), moved, y, task)
        assert model is not None or max(np.abs(exponents)) > 151
        if model is not None:
            np.testing.assert_allclose(scores(model, moved, task), expected, atol=1e-5)
        raw = fit_or_refuse(kind(2, standardize=False), moved, y, task)
        assert raw is None or np.isfinite(scores(raw, moved, task)).all()


@pytest.mark.parametrize("kind", [BiFactorRegressor, TriFactorRegressor])
@pytest.mark.parametrize("exponent", [150, -150, 300, -300])
def test_extreme_targets(kind, exponent):
    X, y, task = problem(kind)
    scale = 10.0**exponent
    plain = kind(2, random_state=0).fit(X, y, task=task)
    model = fit_or_refuse(kind(2, random_state=0), X, y * scale, task)
    if abs(exponent) == 150:
        assert model is not None
    if model is not None:
        said = model.predict(X, task=task) / scale
        np.testing.assert_allclose(said, plain.predict(X, task=task), atol=1e-5)
        new = model.adapt(X[:20], scale * y[:20], task=np.full(20, 9))
        assert np.isfinite(new.predict(X, task=np.full(48, 9))).all()
    raw = fit_or_refuse(kind(2, standardize=False), X, y * scale, task)
    assert raw is None or np.isfinite(raw.predict(X, task=task)).all()


@each_kind
def test_columns_far_from_zero(kind):
    X, y, task = problem(kind)
    plain = kind(2, random_state=0).fit(X, y, task=task)
    far = X + np.array([1e8, -1e6, 0.0])
    model = kind(2, random_state=0).fit(far, y, task=task)
    np.testing.assert_allclose(scores(model, far, task), scores(plain, X, task), atol=1e-4)


@pytest.mark.parametrize("value", [0.0, 7.1e-200, 0.1, 1e8, 7.1e150])
def test_a_constant_target(value):
    X, _, task = problem(BiFactorRegressor)
    model = BiFactorRegressor(2).fit(X, np.full(48, value), task=task)
    np.testing.assert_allclose(model.predict(X, task=task), value, rtol=1e-9, atol=0)


def test_extreme_columns_in_the_search():
    X, y, task = problem(BiFactorRegressorCV)
    scale = np.array([1e150, 1e-150, 1.0])
    search = BiFactorRegressorCV(2, alphas=(0.1, 1.0), cv=3, random_state=0)
    plain = search.fit(X, y, task=task).cv_results_["mean_test_score"]
    search.fit(X * scale, 1e100 * y, task=task)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"] / 1e200, plain, rtol=1e-5)


@each_kind
@pytest.mark.parametrize("sweep", [0, 3])
def test_interrupted_fit(kind, sweep, monkeypatch):
    X, y, task = problem(kind)
    gauge, calls = comtl.engine.alternation.balance_step, []

    def interrupt(state):
        calls.append(state)
        if len(calls) == sweep + 1:  # the first call is part of the start
            raise KeyboardInterrupt
        return gauge(state)

    for part in (comtl.engine.starts, comtl.engine.alternation):
        monkeypatch.setattr(part, "balance_step", interrupt)
    model = kind(2, random_state=0, tol=0.0)
    if sweep == 0:  # nothing to keep
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y, task=task)
        return
    with pytest.warns(ConvergenceWarning, match="Interrupted after sweep 2"):
        assert model.fit(X, y, task=task) is model
    assert not model.converged_
    assert model.n_iter_ == 2
    monkeypatch.undo()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        short = kind(2, random_state=0, tol=0.0, max_iter=2).fit(X, y, task=task)
    np.testing.assert_array_equal(model.coef_, short.coef_)
    assert model.score(X, y, task=task) > 0.5


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shared", [False, True])
def test_values_that_are_not_finite_are_refused_at_predict(bad, packed, shared):
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((40, 3)), np.repeat([0, 1], 20)
    models = [
        BiFactorRegressor(1, shared=shared).fit(X, X[:, 0], task=task),
        BiFactorRegressor(1, shared=shared).fit(X, np.zeros(40), task=task),  # weights of zero
        BiFactorClassifier(1, shared=shared).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]), task=task),
    ]
    X[7, 1] = bad
    form = sparse.csr_array(X) if packed else X
    for model in models:
        with pytest.raises(ValueError, match="Input X contains"):
            model.predict(form, task=task)
    wide = BiFactorRegressor(1).fit(np.nan_to_num(X, posinf=0.0, neginf=0.0), X[:, [0, 2]])
    with pytest.raises(ValueError, match="Input X contains"):
        wide.predict(form)
