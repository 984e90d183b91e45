"""Conditions of the optimum that fitted baselines must meet, and independent optima."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from comtl.baselines import (
    ClusteredRegressor,
    FactoredRegressor,
    FeatureLearningClassifier,
    FeatureLearningRegressor,
    GroupOverlapRegressor,
    IndependentRegressor,
    RelationLearningRegressor,
    SharedPoolClassifier,
    SharedPoolRegressor,
)
from comtl.baselines import direct as whole
from comtl.baselines.pools import Rounds, SharedPoolFit
from comtl.engine.problem import Problem
from comtl.engine.recipe import Schedule
from helpers import problem
from test_special_cases import loss_and_gradient, singular_values, trace_norm_optimum

MODEL_PHRASES = {"fit_intercept": False, "standardize": False}
LONG = {"max_iter": 5_000, "tol": 1e-12}
CREEP = {"max_iter": 1_500, "tol": 1e-11}


def fitted(model, data):
    """Fit to the standardised rows of a problem."""
    X = data.design.dense_rows(0, len(data.y))
    return model.fit(X, data.y, task=data.codes, sample_weight=data.weights)


def loss_slope(data, model):
    """Weights P × T, the squared loss and its gradient there, intercepts as fitted."""
    W = model._state.factors.coef
    target = data.y - model._units.target_shift - model._state.factors.intercepts[data.codes]
    moved = type(data)(data.X, target, data.weights, data.offsets)
    moved.__dict__["design"] = data.design
    return W, *loss_and_gradient(moved, W)


def check_trace_norm(W, slope, weight, atol):
    """Minus the slope is ``weight`` times a subgradient of the trace norm of ``W``."""
    U, d, Vt = np.linalg.svd(W)
    rank = int(np.sum(d > 0.02 * d[0]))
    inside = -(U.T @ slope @ Vt.T) / weight
    assert_allclose(inside[:rank, :rank], np.eye(rank), atol=atol)
    assert_allclose(inside[:rank, rank:], 0.0, atol=atol)
    assert_allclose(inside[rank:, :rank], 0.0, atol=atol)
    assert np.linalg.norm(inside[rank:, rank:], 2) < 1.0 + atol if rank < min(W.shape) else True
    return rank


# ---- the trace norm -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(7, 6, 10), (6, 7, 10)])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.02, 0.3, 3.0])
def test_feature_learning(alpha, intercept, size):
    data = problem(0, *size)
    model = FeatureLearningRegressor(alpha, **{**MODEL_PHRASES, "fit_intercept": intercept}, **LONG)
    W, loss, slope = loss_slope(data, fitted(model, data))
    norm = singular_values(W).sum()
    rank = check_trace_norm(W, slope, 2.0 * alpha * norm, 5e-3)
    assert alpha < 3.0 or rank < 6
    if not intercept:
        best, _ = trace_norm_optimum(data, 2.0 * alpha * norm)
        assert_allclose(loss + 2.0 * alpha * norm**2, best, rtol=1e-3)


@pytest.mark.parametrize("size", [(400, 4, 5), (3, 120, 6)])
def test_feature_learning_of_long_weights(size):
    """Smoothing in hundreds of directions that the weights do not have would cost a tenth."""
    data = problem(4, *size)
    model = fitted(FeatureLearningRegressor(0.5, **MODEL_PHRASES, max_iter=2_000, tol=1e-9), data)
    W, loss, _ = loss_slope(data, model)
    norm = singular_values(W).sum()
    best, _ = trace_norm_optimum(data, norm)
    assert_allclose(loss + norm**2, best, rtol=1e-3)
    assert_allclose(model.objective_history_[-1], loss + 0.5 * norm**2, rtol=5e-3)


def test_many_tasks_take_no_square_of_them():
    rng = np.random.default_rng(0)
    tasks, rows, features = 3_000, 3, 120
    X = rng.standard_normal((tasks * rows, features))
    y, task = X[:, 0] + rng.standard_normal(len(X)), np.repeat(np.arange(tasks), rows)
    recipe = IndependentRegressor()._algorithm.recipe(features, tasks)
    assert recipe.fixed["F"].shape == (features, features)
    assert IndependentRegressor(10.0).fit(X, y, task=task).score(X, y, task=task) > 0.2


@pytest.mark.parametrize("alpha", [0.02, 0.3, 3.0])
def test_feature_learning_as_it_comes(alpha):
    """With the default tolerance the objective is near that of the long fit."""
    data = problem(1, 7, 6, 10)
    values = []
    for rest in ({}, LONG):
        model = fitted(FeatureLearningRegressor(alpha, **MODEL_PHRASES, **rest), data)
        W, loss, _ = loss_slope(data, model)
        values.append(loss + alpha * singular_values(W).sum() ** 2)
        assert model.converged_
    assert_allclose(*values, rtol=1e-3)


@pytest.mark.parametrize("size", [(7, 6, 10), (6, 7, 10)])
def test_both_sides_are_one_model(size, monkeypatch):
    data = problem(2, *size)
    models = [fitted(FeatureLearningRegressor(0.3, **LONG), data)]
    models.append(fitted(RelationLearningRegressor(0.0, alpha_task=0.3, **LONG), data))
    monkeypatch.setattr(whole.AcrossColumns, "of", lambda between: between)
    models.append(fitted(FeatureLearningRegressor(0.3, **LONG), data))
    for other in models[1:]:
        assert_allclose(other.coef_, models[0].coef_, atol=2e-3)
        assert_allclose(other.objective_history_[-1], models[0].objective_history_[-1], rtol=1e-3)


def test_sweeps_are_few():
    """The step beyond a sweep: without it this takes more than 200."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    model = FeatureLearningClassifier(alpha=0.1).fit(X, X[:, 0] > 0, task=task)
    assert model.converged_
    assert model.n_iter_ < 60


@pytest.mark.parametrize("penalties", [(0.5, 0.3), (5.0, 0.05)])
def test_relation_learning(penalties):
    data, (alpha, task) = problem(3, 7, 6, 10), penalties
    model = fitted(RelationLearningRegressor(alpha, alpha_task=task, **MODEL_PHRASES, **LONG), data)
    W, _, slope = loss_slope(data, model)
    check_trace_norm(W, slope + 2.0 * alpha * W, 2.0 * task * singular_values(W).sum(), 5e-3)
    values, basis = np.linalg.eigh(W.T @ W)
    root = np.sqrt(np.maximum(values, 0.0) + model._algorithm.smoothing * values[-1])
    expected = (basis * (root / root.sum())) @ basis.T
    assert_allclose(model.task_relation_.toarray(), expected, atol=1e-8)


@pytest.mark.parametrize("strengths", [(0.5, 2.0), (3.0, 3.0)])
def test_factored_is_the_trace_norm(strengths):
    data, (one, other) = problem(3, 6, 5, 8), strengths
    model = FactoredRegressor(5, alpha_feature=one, alpha_task=other, **MODEL_PHRASES, **LONG)
    W, loss, _ = loss_slope(data, fitted(model, data))
    weight = 2.0 * (one * other) ** 0.5
    best, _ = trace_norm_optimum(data, weight)
    assert_allclose(loss + weight * singular_values(W).sum(), best, rtol=1e-4)
    assert_allclose(model.objective_history_[-1], best, rtol=1e-4)


# ---- sparse codes and shares --------------------------------------------------------------------


creeping = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def factor_slopes(data, model):
    point = model._state.factors
    _, _, slope = loss_slope(data, model)
    return point.F, point.G, slope @ point.G, slope.T @ point.F


@creeping
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("intercept", [False, True])
def test_group_overlap(seed, intercept):
    data, one, other = problem(seed, 6, 8, 10), 0.5, 1.0
    params = {"alpha_feature": one, "alpha_task": other, "standardize": False, **CREEP}
    model = fitted(GroupOverlapRegressor(3, fit_intercept=intercept, **params), data)
    F, G, by_F, by_G = factor_slopes(data, model)
    assert_allclose(by_F + 2.0 * one * F, 0.0, atol=2e-3 * np.abs(by_F).max())
    assert 0 < np.sum(G == 0.0) < G.size
    assert np.abs(by_G[G == 0.0]).max() <= other * (1.0 + 5e-3)
    assert_allclose(by_G[G != 0.0], -other * np.sign(G[G != 0.0]), atol=5e-3 * other)


@creeping
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("intercept", [False, True])
def test_clustered(seed, intercept):
    data, alpha = problem(seed, 6, 8, 10), 0.5
    params = {"alpha": alpha, "standardize": False, "random_state": 0, **CREEP}
    model = fitted(ClusteredRegressor(3, fit_intercept=intercept, **params), data)
    F, G, by_F, by_G = factor_slopes(data, model)
    assert_allclose(by_F + 2.0 * alpha * F, 0.0, atol=1e-3 * np.abs(by_F).max())
    assert_allclose(G.sum(axis=1), 1.0)
    assert G.min() >= 0.0
    # No share may gain by moving: all that a task holds have the lowest slope of its row.
    above = by_G - by_G.min(axis=1, keepdims=True)
    assert np.max(G * above) <= 1e-3 * np.abs(by_G).max()


# ---- a pool of models ---------------------------------------------------------------------------


def pool_problem(seed, labels=False):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(5), 8)
    X = rng.standard_normal((40, 2))
    W = rng.standard_normal((2, 2))[rng.integers(0, 2, 5)] + 0.5 * rng.standard_normal((5, 2))
    y = (X * W[task]).sum(axis=1) + 0.5 * rng.standard_normal(40)
    return X, (y > 0 if labels else y), task


def ridge_cost(X, y, alpha):
    Z = np.column_stack([X, np.ones(len(y))])
    solution = np.linalg.solve(Z.T @ Z + np.diag([alpha, alpha, 0.0]), Z.T @ y)
    return np.sum((y - Z @ solution) ** 2) + alpha * np.sum(solution[:2] ** 2)


def logistic_cost(X, y, alpha):
    if y.all() or not y.any():
        return 0.0
    model = LogisticRegression(C=0.5 / alpha, tol=1e-10, max_iter=1_000).fit(X, y)
    score = np.where(y, 1.0, -1.0) * model.decision_function(X)
    return np.logaddexp(0.0, -score).sum() + alpha * np.sum(model.coef_**2)


def best_assignment(X, y, task, models, cost):
    """Lowest objective over all assignments of five tasks."""
    known = {(False,) * 5: 0.0}
    for members in list(product([False, True], repeat=5))[1:]:
        rows = np.array(members)[task]
        known[members] = cost(X[rows], y[rows])
    return min(
        sum(known[tuple(label == k for label in labels)] for k in range(models))
        for labels in product(range(models), repeat=5)
    )


@pytest.mark.parametrize(
    ("seed", "models", "labels"),
    [*product(range(5), [2, 3], [False]), *product(range(3), [2, 3], [True])],
)
def test_the_pool_is_the_best_of_all_assignments(seed, models, labels):
    X, y, task = pool_problem(seed, labels)
    kind = SharedPoolClassifier if labels else SharedPoolRegressor
    cost = logistic_cost if labels else ridge_cost
    model = kind(models, alpha=1.0, n_init=10, standardize=False, random_state=0)
    model.fit(X, y, task=task)
    assert np.all(np.diff(model.objective_history_) <= 1e-9 * model.objective_history_[:-1])
    # Of few labels one model may be best left empty.
    assert labels or len(np.unique(model.task_clusters_)) == models
    best = best_assignment(X, y, task, models, lambda X, y: cost(X, y, 1.0))
    assert_allclose(model.objective_history_[-1], best, rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_rows_and_grams_agree_on_the_assignment(seed):
    data = problem(seed, 3, 8, 8)
    units = SimpleNamespace(shift=np.zeros(3))
    pool = SharedPoolFit(SharedPoolRegressor(3, alpha=0.5, tol=1e-9))
    found = []
    for datafit in (data.rows(), data.gram()):
        rounds = Rounds(Problem(datafit, units), pool)
        starts = rounds.starts(4, np.random.default_rng(0))
        found.append([list(rounds.run(labels, Schedule())) for labels in starts])
    for rows, gram in zip(*found, strict=True):
        assert len(rows) == len(gram)
        assert_allclose(rows[-1].state.factors.G, gram[-1].state.factors.G, atol=0)
        assert_allclose([s.objective for s in rows], [s.objective for s in gram], rtol=1e-9)


def test_more_models_than_distinct_tasks():
    """Tasks that are copies share a model, and the rest of the pool stays empty."""
    X, y, _ = pool_problem(0)
    many = np.tile(np.arange(len(y)), 4)
    task = np.repeat(np.arange(4), len(y))
    model = SharedPoolRegressor(3, alpha=5.0, random_state=0).fit(X[many], y[many], task=task)
    alone = SharedPoolRegressor(1, alpha=5.0).fit(X[many], y[many], task=task)
    assert model.objective_history_[-1] <= alone.objective_history_[-1] * (1.0 + 1e-9)
    assert np.all(np.diff(model.objective_history_) <= 1e-9)
