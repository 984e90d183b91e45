"""Weights of each task's own on wide rows: ridge by kernels."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from comtl.baselines import IndependentClassifier, IndependentRegressor, MeanRegularizedRegressor
from comtl.datafits import dual_ridge as task_kernels
from comtl.engine.feature_step import FeatureSystem
from comtl.factors import Factors, State
from comtl.losses import Logistic, Squared
from comtl.penalties import Free, Ridge
from comtl.solvers.conjugate_gradient import conjugate_gradient
from wide_rows import wide


def state_of(datafit, shared=None, intercept=True, intercept_penalty=0.3, seed=1):
    rng = np.random.default_rng(seed)
    P, T = datafit.n_features, datafit.n_tasks
    point = Factors(
        0.1 * rng.standard_normal((P, T)),
        None,
        np.eye(T),
        shared=np.zeros(P),
        offset=0.0,
        random_intercepts=np.zeros(T),
    )
    penalties = {"F": Ridge(0.4), "G": Free()}
    return State(point, penalties, frozenset({"G"}), shared, intercept, intercept_penalty, False)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("picked", [True, False])
@pytest.mark.parametrize("loss", [Squared(), Logistic()])
@pytest.mark.parametrize("shared", [None, 0.2])
@pytest.mark.parametrize(
    ("intercept", "intercept_penalty"), [(True, 0.3), (True, np.inf), (False, np.inf)]
)
def test_kernels_invert_the_normal_equations(
    packed, picked, loss, shared, intercept, intercept_penalty
):
    datafit = wide(12, packed=packed, picked=picked, loss=loss)
    state = state_of(datafit, shared, intercept, intercept_penalty)
    system = FeatureSystem(datafit, datafit.quadratic_at(state.factors), state)
    assert system._by_task() is not None
    exact = np.linalg.lstsq(system.matrix(), system.right(), rcond=None)[0]
    found = conjugate_gradient(
        system.operator, system.right(), preconditioner=system.preconditioner(), tol=1e-11
    )
    np.testing.assert_allclose(system.operator(found.value), system.operator(exact), atol=1e-8)
    np.testing.assert_allclose(found.value[:48], exact[:48], atol=1e-7)
    # But for the offset, which meets all tasks, the inverse is exact.
    assert found.iterations <= (1 if not intercept else 5)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-4, 1e4), st.floats(1e-3, 1e3))
def test_the_inverse_is_one_for_any_penalties(seed, alpha, level):
    datafit = wide(12, seed)
    expansion = datafit.quadratic_at(state_of(datafit).factors)
    rng = np.random.default_rng(seed)
    right, sums = rng.standard_normal((12, 4)), rng.standard_normal(4)
    slopes, deviations = expansion.task_ridge(alpha, level, None)(right, sums)
    image, back = expansion.normal(slopes, np.eye(4), deviations)
    np.testing.assert_allclose(image + alpha * slopes, right, atol=1e-6)
    np.testing.assert_allclose(back + level * deviations, sums, atol=1e-6)


def test_kernels_too_large_are_not_made():
    datafit = wide(12)
    expansion = datafit.quadratic_at(state_of(datafit).factors)
    assert expansion.task_ridge(1.0, 1.0, None) is not None
    for name, value in (("MAX_TASK_ROWS", 6), ("MAX_KERNEL_NUMBERS", 100)):
        with mock.patch.object(task_kernels, name, value):
            assert expansion.task_ridge(1.0, 1.0, None) is None
    narrow = wide(5)
    assert narrow.quadratic_at(state_of(narrow).factors).task_ridge(1.0, 1.0, None) is None


@pytest.mark.parametrize("model", [IndependentRegressor(0.1), MeanRegularizedRegressor(0.1)])
def test_wide_fits_are_those_of_narrow_ones(model, monkeypatch):
    """The same rows by way of the tasks' Grams, and by kernels."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(8), 10)
    X = sparse.random_array((80, 60), density=0.3, rng=rng, format="csr")
    y = rng.standard_normal(80) + task
    model.set_params(tol=1e-9)
    grams = model.fit(X, y, task=task).coef_
    monkeypatch.setattr("comtl.baselines.direct.DENSE_BYTES", 0)
    kernels = model.fit(X, y, task=task)
    np.testing.assert_allclose(kernels.coef_, grams, atol=1e-5)


def test_classes_of_wide_rows(monkeypatch):
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(8), 10)
    X, y = rng.standard_normal((80, 60)), rng.random(80) < 0.5
    model = IndependentClassifier(1.0, tol=1e-9)
    grams = model.fit(X, y, task=task).coef_
    monkeypatch.setattr("comtl.baselines.direct.DENSE_BYTES", 0)
    np.testing.assert_allclose(model.fit(X, y, task=task).coef_, grams, atol=1e-4)


@pytest.mark.parametrize("kind", [IndependentRegressor, MeanRegularizedRegressor])
@pytest.mark.parametrize("tasks", [8, 40])
def test_single_precision_stays(kind, tasks, monkeypatch):
    monkeypatch.setattr("comtl.baselines.direct.DENSE_BYTES", 0)
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(tasks), 6)
    X = sparse.random_array((len(task), 60), density=0.3, rng=rng, format="csr")
    y = rng.standard_normal(len(task)) + task
    double = kind(0.5).fit(X, y, task=task)
    single = kind(0.5).fit(X.astype(np.float32), y.astype(np.float32), task=task)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-2 * np.abs(double.coef_).max())


@pytest.mark.parametrize("kind", [IndependentRegressor, MeanRegularizedRegressor])
def test_next_to_no_penalty(kind, monkeypatch):
    """Where one over the penalty has no digits left the other preconditioner serves."""
    monkeypatch.setattr("comtl.baselines.direct.DENSE_BYTES", 0)
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(4), 10)
    X, y = rng.standard_normal((40, 60)), rng.standard_normal(40)
    model = kind(1e-10).fit(X, y, task=task)
    np.testing.assert_allclose(model.predict(X, task=task), y, atol=1e-2)
    datafit = wide(12)
    assert datafit.quadratic_at(state_of(datafit).factors).task_ridge(1e-12, 1.0, None) is None
