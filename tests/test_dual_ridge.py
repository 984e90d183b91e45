"""Steps by the inner products of rows, where these are fewer than features: all, or each task's."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from comtl import BiFactorClassifier, BiFactorRegressor
from comtl.baselines import (
    FactoredRegressor,
    GroupOverlapRegressor,
    IndependentClassifier,
    IndependentRegressor,
    MeanRegularizedRegressor,
)
from comtl.datafits import dual_ridge
from comtl.datafits.datafit import FeaturePenalty
from comtl.engine import feature_step as systems
from comtl.engine.feature_step import FeatureSystem
from comtl.factors import Factors, State
from comtl.losses import Logistic, Squared
from comtl.penalties import Free, Ridge
from comtl.penalties.learned_relation import LearnedRelation
from comtl.solvers.conjugate_gradient import conjugate_gradient
from helpers import wide

P, K = 40, 2


def state_of(
    learned=True, shared=None, intercept=True, intercept_penalty=0.3, strength=0.4, seed=1
):
    rng = np.random.default_rng(seed)
    F, G = 0.1 * rng.standard_normal((P, K)), rng.standard_normal((4, K))
    kind = LearnedRelation(strength).initialised(F, 1e-2) if learned else Ridge(strength)
    return _state(F, G, {"F": kind, "G": Ridge(1.0)}, (), shared, intercept, intercept_penalty)


def state_of_tasks(features, shared=None, intercept=True, intercept_penalty=0.3):
    """Weights of each task's own: ``G`` is held at the identity."""
    F = 0.1 * np.random.default_rng(1).standard_normal((features, 4))
    penalties = {"F": Ridge(0.4), "G": Free()}
    return _state(F, np.eye(4), penalties, "G", shared, intercept, intercept_penalty)


def _state(F, G, penalties, fixed, *options):
    point = Factors(F, None, G, np.zeros(len(F)), offset=0.0, random_intercepts=np.zeros(4))
    return State(point, penalties, frozenset(fixed), *options, False)


def system_of(datafit, state, *, factor=True):
    expansion, width = datafit.quadratic_at(state.factors), None if factor else 0
    return FeatureSystem(datafit, expansion, state, width)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("picked", [True, False])
@pytest.mark.parametrize("loss", [Squared(), Logistic()])
@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("shared", [None, 0.2])
@pytest.mark.parametrize(
    ("intercept", "intercept_penalty"), [(True, 0.3), (True, np.inf), (False, np.inf)]
)
def test_it_inverts_the_explicit_hessian(
    packed, picked, loss, learned, shared, intercept, intercept_penalty, monkeypatch
):
    monkeypatch.setattr(systems, "PASSES_PER_EFOLD", 1e9)
    datafit = wide(P, packed=packed, picked=picked, loss=loss)
    system = system_of(datafit, state_of(learned, shared, intercept, intercept_penalty))
    exact = np.linalg.solve(system.matrix(), system.right())
    found = system._by_rows(0.5)(system.right())
    np.testing.assert_allclose(found, exact, atol=1e-9)
    solved = conjugate_gradient(
        system.operator, system.right(), preconditioner=system.preconditioner(1e-9), tol=1e-9
    )
    np.testing.assert_allclose(solved.value, exact, atol=1e-8)
    assert solved.iterations == 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-4, 1e4), st.booleans())
def test_it_is_an_inverse_for_any_penalty(seed, strength, learned):
    with mock.patch.object(systems, "PASSES_PER_EFOLD", 1e9):
        system = system_of(
            wide(P, seed),
            state_of(
                learned, strength=strength, intercept=False, intercept_penalty=np.inf, seed=seed
            ),
        )
        right = np.random.default_rng(seed).standard_normal(len(system.right()))
        found = system._by_rows(0.5)(right)
    np.testing.assert_allclose(system.operator(found), right, atol=1e-6)


def test_the_shared_part_alone(monkeypatch):
    monkeypatch.setattr(systems, "PASSES_PER_EFOLD", 1e9)
    system = system_of(wide(P), state_of(shared=0.2), factor=False)
    exact = np.linalg.solve(system.matrix(), system.right())
    np.testing.assert_allclose(system._by_rows(0.5)(system.right()), exact, atol=1e-9)


def test_where_it_is_not_worth_it(monkeypatch):
    """With more rows than features, rows with few entries, and where no digits would be left."""
    monkeypatch.setattr(systems, "PASSES_PER_EFOLD", 1e9)
    assert system_of(wide(P), state_of())._by_rows(0.5) is not None
    assert system_of(wide(P), state_of(learned=False, strength=1e-12))._by_rows(0.5) is None
    for room, name, value in (
        (systems, "PASSES_PER_EFOLD", 1e-3),
        (dual_ridge, "MAX_OBSERVATIONS", 16),
    ):
        with mock.patch.object(room, name, value):
            assert system_of(wide(P), state_of())._by_rows(0.5) is None


def table(seed=0, rows=12, features=150):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(6), rows)
    X = rng.standard_normal((len(task), features))
    W = rng.standard_normal((features, 2)) @ rng.standard_normal((2, 6))
    y = np.einsum("ip,pi->i", X, W[:, task]) + rng.standard_normal(len(task)) + task
    return X, y, task


@pytest.mark.parametrize(
    "model",
    [
        BiFactorRegressor(2),
        BiFactorRegressor(2, shared=True),
        FactoredRegressor(n_components=2),
        GroupOverlapRegressor(n_components=2),
    ],
    ids=lambda model: f"{type(model).__name__} {model.get_params().get('shared', '')}",
)
def test_fits_end_no_higher_than_by_conjugate_gradients(model, monkeypatch):
    X, y, task = table()
    model.set_params(tol=1e-6, max_iter=1000)
    monkeypatch.setattr(dual_ridge, "MAX_OBSERVATIONS", 0)
    before = model.fit(X, y, task=task).objective_history_[-1]
    monkeypatch.setattr(dual_ridge, "MAX_OBSERVATIONS", 3_000)
    after = model.fit(X, y, task=task).objective_history_[-1]
    assert after <= before + 1e-2 * abs(before)


def test_single_precision_and_classes():
    X, y, task = table()
    y = y > np.median(y)
    double = BiFactorClassifier(2).fit(X, y, task=task)
    single = BiFactorClassifier(2).fit(X.astype(np.float32), y, task=task)
    assert single.coef_.dtype == np.float32
    same = single.predict(X, task=task) == double.predict(X, task=task)
    assert same.mean() > 0.95


# ---- weights of each task's own ----------------------------------------------------------------


def ridge_of_tasks(expansion, alpha, level):
    """By the products of each task's rows; none by those of all rows pays for no passes."""
    penalty = FeaturePenalty(
        alpha, np.zeros((expansion.datafit.n_features, 0)), np.inf, level, True
    )
    return expansion.dual_ridge(np.eye(4), penalty, 0.0)


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
    state = state_of_tasks(12, shared, intercept, intercept_penalty)
    system = FeatureSystem(datafit, datafit.quadratic_at(state.factors), state)
    level = float("inf") if np.isinf(intercept_penalty) else 2.0 * intercept_penalty
    assert ridge_of_tasks(system.expansion, 0.4, level) is not None
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
    expansion = datafit.quadratic_at(state_of_tasks(12).factors)
    rng = np.random.default_rng(seed)
    right, sums = rng.standard_normal((12, 4)), rng.standard_normal(4)
    slopes, deviations, _ = ridge_of_tasks(expansion, alpha, level)(right, sums, 0.0)
    image, back = expansion.normal(slopes, np.eye(4), deviations)
    np.testing.assert_allclose(image + alpha * slopes, right, atol=1e-6)
    np.testing.assert_allclose(back + level * deviations, sums, atol=1e-6)


def test_kernels_too_large_are_not_made():
    datafit = wide(12)
    expansion = datafit.quadratic_at(state_of_tasks(12).factors)
    assert ridge_of_tasks(expansion, 1.0, 1.0) is not None
    for name, value in (("MAX_TASK_ROWS", 6), ("MAX_KERNEL_NUMBERS", 100)):
        with mock.patch.object(dual_ridge, name, value):
            assert ridge_of_tasks(expansion, 1.0, 1.0) is None
    narrow = wide(5)
    assert ridge_of_tasks(narrow.quadratic_at(state_of_tasks(5).factors), 1.0, 1.0) is None


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
    assert ridge_of_tasks(datafit.quadratic_at(state_of_tasks(12).factors), 1e-12, 1.0) is None
