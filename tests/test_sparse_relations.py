"""Sparse learned relations: the relation, the penalty, the option of the estimators."""

from itertools import pairwise

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone

import comtl
from comtl import alternation, sparse_relations, steps
from comtl.alternation import Recipe, Schedule, alternate
from comtl.datasets import SYNTHETIC
from comtl.demo import task_rmse
from comtl.learned_relations import LearnedRelation
from comtl.losses import Logistic, Squared
from comtl.penalties import Ridge
from comtl.relations import Relation, SparseRelation
from comtl.solvers.base import Solution
from comtl.sparse_relations import SparseLearnedRelation
from comtl.starting import start_state
from helpers import numeric_gradient, problem
from test_descent import watched

SHAPES = [(6, 2), (4, 4), (2, 5), (1, 3)]
NAMES = ["BiFactorRegressor", "TriFactorRegressor", "BiFactorClassifier", "TriFactorClassifier"]


def random_factor(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def learned(factor, sparsity=0.1, relative_epsilon=0.05, strength=0.7):
    return SparseLearnedRelation(strength, sparsity).started(factor, relative_epsilon)


# ---- the relation -------------------------------------------------------------------------------


def test_relation_is_the_inverse_of_its_precision():
    relation = learned(random_factor((8, 3)), 0.2).relation
    dense = relation.toarray()
    assert relation.shape == dense.shape == (8, 8)
    assert_allclose(np.trace(dense), 1.0)
    assert_allclose(dense @ relation.precision, np.eye(8), atol=1e-9)
    right = random_factor((8, 2), 1)
    assert_allclose(relation @ right, dense @ right)
    assert_allclose(relation @ right[:, 0], dense @ right[:, 0])
    assert_allclose(relation.solve(right), np.linalg.solve(dense, right), rtol=1e-7)
    alpha, low = relation.inverse_parts
    assert_allclose(alpha * np.eye(8) - low @ low.T, relation.precision, atol=1e-9)


# ---- the penalty --------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_gradient_and_curvature_by_differences(shape):
    factor, penalty = random_factor(shape), learned(random_factor(shape, 1))
    gradient = numeric_gradient(penalty.value, factor)
    assert_allclose(penalty.gradient(factor), gradient, rtol=1e-6, atol=1e-6)
    assert_allclose(penalty.pull(factor), np.sum(gradient * factor), rtol=1e-6)
    alpha, low = penalty.curvature(factor)
    step = random_factor(shape, 2)
    change = penalty.gradient(factor + step) - penalty.gradient(factor)
    assert_allclose(alpha * step - low @ (low.T @ step), change, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("relative_epsilon", [0.05, 1.0])
def test_without_sparsity_it_is_the_learned_relation(shape, relative_epsilon):
    factor = random_factor(shape)
    penalty = learned(factor, 0.0, relative_epsilon)
    plain = LearnedRelation.start(0.7, factor, relative_epsilon)
    assert_allclose(penalty.value(factor), plain.value(factor), rtol=1e-4)
    assert_allclose(penalty.relation.toarray(), plain.relation.toarray(), atol=2e-3)
    assert_allclose(penalty.whitener(factor), plain.whitener(factor))


def test_the_value_has_no_units():
    factor = random_factor((9, 3))
    one, other = learned(factor, 0.2), learned(100.0 * factor, 0.2)
    assert_allclose(other.value(100.0 * factor), 1e4 * one.value(factor), rtol=1e-9)
    assert_allclose(other.relation.precision, one.relation.precision, rtol=1e-6, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 99), st.sampled_from([0.0, 0.1, 1.0]))
def test_refreshing_and_annealing_never_raise_the_value(n, rank, seed, sparsity):
    factor = random_factor((n, rank), seed)
    penalty = learned(random_factor((n, rank), seed + 1), sparsity, 1.0)
    for _ in range(25):
        fresh = penalty.refreshed(factor)
        assert fresh.value(factor) <= penalty.value(factor)
        lower = fresh.annealed(factor, 0.3, 0.01)
        assert lower.value(factor) <= fresh.value(factor)
        assert lower.epsilon <= fresh.epsilon
        assert lower.rho <= fresh.rho
        penalty, factor = lower, 1.05 * factor
    assert penalty.settled
    assert penalty.annealed(0.1 * factor, 0.3, 0.01) is penalty


@pytest.mark.parametrize("found", [np.eye(6), -np.eye(6)], ids=["worse", "not definite"])
def test_a_precision_that_is_no_better_is_not_taken(found, monkeypatch):
    factor = random_factor((6, 2))
    penalty = learned(factor)
    monkeypatch.setattr(sparse_relations, "sparse_precision", lambda *a, **k: Solution(found, ""))
    assert penalty.refreshed(factor) is penalty


def test_same_numbers_on_strict_arrays():
    factor = random_factor((6, 2))
    one, other = learned(factor), learned(strict.asarray(factor))
    assert isinstance(other.relation.precision, type(strict.asarray(0.0)))
    assert_allclose(np.asarray(other.relation.precision), one.relation.precision, atol=1e-9)
    assert_allclose(other.value(strict.asarray(factor)), one.value(factor))


# ---- fits ---------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 2**20),
    st.tuples(st.integers(1, 9), st.integers(1, 8)),
    st.booleans(),
    st.sampled_from([None, 0.3, 3.0]),
    st.sampled_from([0.01, 0.1, 1.0]),
    st.booleans(),
)
def test_objective_never_increases(seed, sides, labels, core, sparsity, direct):
    data = problem(seed, *sides, labels=labels)
    fit = data.rows(Logistic() if labels else Squared())
    rng = np.random.default_rng(seed)
    strengths = rng.choice([0.03, 0.3, 3.0], 2)
    penalties = {
        k: SparseLearnedRelation(s, sparsity) for k, s in zip("FG", strengths, strict=True)
    }
    if core is not None:
        penalties["S"] = Ridge(core)
    ranks = tuple(int(k) for k in rng.integers(1, 5, 2)) if core else (3, 3)
    schedule = Schedule(max_iter=8, tol=0.0, smoothing=0.01)
    moves = []
    with pytest.MonkeyPatch.context() as patch:
        if not direct:
            patch.setattr(steps, "DENSE_UNKNOWNS", 0)
            patch.setattr(steps, "WOODBURY_WIDTH", 0)
        patch.setattr(alternation, "descend", watched(moves))
        state = start_state(fit, Recipe(penalties, ranks, shared=core), schedule, like=data.y)
        run = [step.objective for step in alternate(fit, state, schedule)]
    assert np.isfinite(run).all()
    for before, after in (*pairwise(run), *moves):
        assert after <= before + 1e-10 * abs(after) + 1e-9


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_objective_of_the_estimators_never_increases(name, seed):
    data = SYNTHETIC["syn1"](n_features=8, n_tasks=9, n_train=15, random_state=seed)
    model = getattr(comtl, name)(3, relation_penalty="l1", random_state=seed)
    y = data.y if "Regressor" in name else data.y > 0
    model.fit(data.X, y, task=data.task)
    assert np.diff(model.objective_history_).max() <= 0.0
    assert model.converged_
    for relation, n in ((model.feature_relation_, 8), (model.task_relation_, 9)):
        assert isinstance(relation, SparseRelation)
        assert relation.precision.shape == (n, n)


def three_groups(seed, rows=40):
    """Twelve tasks in three groups, each on features of its own: relations of three blocks."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(3), 4)
    W = np.zeros((12, 9))
    for group in range(3):
        common = rng.choice([-1.0, 1.0], 3) * rng.uniform(1.0, 2.0, 3)
        W[groups == group, 3 * group : 3 * group + 3] = common * rng.uniform(0.7, 1.3, (4, 1))
    task = np.repeat(np.arange(12), rows)
    X = rng.standard_normal((len(task), 9))
    y = (X * W[task]).sum(axis=1) + 0.5 * rng.standard_normal(len(task))
    return X, y, task, groups


def test_unrelated_groups_of_tasks_have_no_links():
    for seed in range(3):
        X, y, task, groups = three_groups(seed)
        across = groups[:, None] != groups[None, :]
        zeros = []
        for alpha in (0.003, 0.03, 0.3, 3.0):
            model = comtl.BiFactorRegressor(3, relation_penalty="l1", alpha_relation=alpha)
            precision = model.fit(X, y, task=task).task_relation_.precision
            zeros.append(np.sum(precision == 0.0))
            if alpha == 0.3:
                assert np.all(precision[across] == 0.0)
                assert np.all(precision[~across] != 0.0)
                blocks = np.repeat(np.arange(3), 3)
                links = model.feature_relation_.precision != 0.0
                assert np.array_equal(links, blocks[:, None] == blocks[None, :])
        assert zeros == sorted(zeros)
        assert zeros[0] < zeros[2] == across.sum() < zeros[3] == 12 * 11


@pytest.mark.parametrize(("kind", "ranks"), [("BiFactor", (15,)), ("TriFactor", (15, 15))])
@pytest.mark.parametrize("name", ["syn3", "syn5"])
def test_predictions_are_hardly_worse(name, kind, ranks):
    ratios = []
    for seed in range(2):
        data = SYNTHETIC[name](random_state=seed)
        errors = []
        for extra in ({}, {"relation_penalty": "l1"}):
            model = getattr(comtl, f"{kind}Regressor")(*ranks, alpha_task=0.1, tol=1e-3, **extra)
            guess = model.fit(data.X, data.y, task=data.task).predict(data.X_test, data.task_test)
            errors.append(task_rmse(data.y_test, guess, data.task_test))
        ratios.append(errors[1] / errors[0])
    assert np.mean(ratios) < 1.05, ratios


# ---- the option ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*NAMES, *(f"{name}CV" for name in NAMES)])
def test_the_option_is_a_parameter_like_any_other(name):
    model = getattr(comtl, name)()
    assert model.get_params()["relation_penalty"] is None
    model.set_params(relation_penalty="l1", alpha_relation=0.7)
    copied = clone(model).get_params()
    assert (copied["relation_penalty"], copied["alpha_relation"]) == ("l1", 0.7)
    X, y, task, _ = three_groups(0, rows=10)
    for bad in ({"relation_penalty": "l2"}, {"alpha_relation": -1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            clone(model).set_params(**bad).fit(X, y > 0, task=task)


@pytest.mark.parametrize("name", ["BiFactorRegressorCV", "TriFactorClassifierCV"])
def test_searches(name):
    X, y, task, _ = three_groups(0, rows=20)
    model = getattr(comtl, name)(3, alphas=(0.1, 1e4), cv=2, relation_penalty="l1", tol=1e-2)
    model.fit(X, y if "Regressor" in name else y > 0, task=task)
    assert model.alpha_task_ == 0.1
    assert isinstance(model.task_relation_, SparseRelation)
    assert model.score(X, y if "Regressor" in name else y > 0, task=task) > 0.8


def test_only_relations_are_made_sparse():
    X, y, task, _ = three_groups(0, rows=10)
    model = comtl.BiFactorRegressor(3, feature_penalty="ridge", relation_penalty="l1", tol=1e-2)
    model.fit(X, y, task=task)
    assert isinstance(model.feature_relation_, Relation)
    assert isinstance(model.task_relation_, SparseRelation)


def test_single_precision_stays():
    X, y, task, _ = three_groups(0)
    model = comtl.BiFactorRegressor(3, relation_penalty="l1", alpha_relation=0.3)
    double = clone(model).fit(X, y, task=task)
    model.fit(X.astype(np.float32), y.astype(np.float32), task=task)
    for part in (model.coef_, model.task_relation_.precision, model.feature_relation_.toarray()):
        assert part.dtype == np.float32
    assert_allclose(model.coef_, double.coef_, atol=0.02)
    assert np.diff(model.objective_history_).max() <= 1e-4 * model.objective_history_[-1]


@pytest.mark.parametrize(("features", "tasks", "side"), [(5, 2, "feature"), (2, 5, "task")])
def test_sides_that_are_too_long_are_refused(features, tasks, side, monkeypatch):
    monkeypatch.setattr(sparse_relations, "DENSE_SIDE", 4)
    task = np.repeat(np.arange(tasks), 4)
    X = random_factor((len(task), features))
    model = comtl.BiFactorRegressor(1, relation_penalty="l1")
    with pytest.raises(ValueError, match=f'relation_penalty="l1".*5 {side}s.*4.*{side}_penalty='):
        model.fit(X, X[:, 0], task=task)
    model.set_params(**{f"{side}_penalty": "ridge"}).fit(X, X[:, 0], task=task)
    model.set_params(**{f"{side}_penalty": "relation", "relation_penalty": None})
    model.fit(X, X[:, 0], task=task)


ENDS = [("smoothing", 1e-14), ("alpha_relation", 0.0), ("alpha_relation", 1e6), ("alpha_task", 0.0)]


@pytest.mark.parametrize(("name", "value"), ENDS)
def test_parameters_at_their_ends(name, value):
    X, y, task, _ = three_groups(0, rows=10)
    for target in (y, np.ones_like(y)):
        model = comtl.BiFactorRegressor(3, relation_penalty="l1").set_params(**{name: value})
        history = model.fit(X, target, task=task).objective_history_
        assert model.converged_
        assert np.isfinite(model.coef_).all()
        assert np.diff(history).max() <= 1e-9 * abs(history[-1])


def test_new_tasks_and_warm_starts():
    X, y, task, _ = three_groups(0)
    known = task < 10
    model = comtl.BiFactorRegressor(3, relation_penalty="l1", warm_start=True)
    model.fit(X[known], y[known], task=task[known])
    sweeps = model.n_iter_
    assert model.fit(X[known], y[known], task=task[known]).n_iter_ < sweeps
    adapted = model.adapt(X[~known], y[~known], task=task[~known])
    assert adapted.score(X[~known], y[~known], task=task[~known]) > 0.9
