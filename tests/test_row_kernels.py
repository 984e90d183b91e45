"""The feature step by the inner products of all rows, where there are fewer than features."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comtl import BiFactorClassifier, BiFactorRegressor
from comtl.baselines import FactoredRegressor, GroupOverlapRegressor
from comtl.datafits import dual_ridge as row_kernels
from comtl.engine import feature_step as systems
from comtl.engine.feature_step import FeatureSystem
from comtl.factors import Factors, State
from comtl.losses import Logistic, Squared
from comtl.penalties import Ridge
from comtl.penalties.learned_relation import LearnedRelation
from comtl.solvers.conjugate_gradient import conjugate_gradient
from wide_rows import wide

P, K = 40, 2


def state_of(
    learned=True, shared=None, intercept=True, intercept_penalty=0.3, strength=0.4, seed=1
):
    rng = np.random.default_rng(seed)
    F, G = 0.1 * rng.standard_normal((P, K)), rng.standard_normal((4, K))
    point = Factors(F, None, G, shared=np.zeros(P), offset=0.0, random_intercepts=np.zeros(4))
    kind = LearnedRelation.start(strength, F, 1e-2) if learned else Ridge(strength)
    penalties = {"F": kind, "G": Ridge(1.0)}
    return State(point, penalties, frozenset(), shared, intercept, intercept_penalty, False)


def system_of(datafit, state, *, factor=True):
    return FeatureSystem(datafit, datafit.quadratic_at(state.factors), state, factor=factor)


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
        (row_kernels, "MAX_OBSERVATIONS", 16),
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
    monkeypatch.setattr(row_kernels, "MAX_OBSERVATIONS", 0)
    before = model.fit(X, y, task=task).objective_history_[-1]
    monkeypatch.setattr(row_kernels, "MAX_OBSERVATIONS", 3_000)
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
