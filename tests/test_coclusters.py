"""Hard clusters of features and tasks: recovery, prediction, and the moves that lead there."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from comtl import BiFactorRegressor, TriFactorClassifier, TriFactorRegressor, TriFactorRegressorCV
from comtl.clusters import cluster_rows
from comtl.datasets import make_coclusters
from comtl.engine.cluster_exchange import exchanges
from comtl.engine.memberships import feature_moves, task_moves
from comtl.factors import Factors, State
from comtl.losses import Logistic, Squared
from comtl.penalties import Ridge
from comtl.penalties.constraints import Membership, indicators, labels_of
from comtl.penalties.learned_relation import LearnedRelation
from helpers import problem, task_rmse

HARD = {"feature_penalty": "clusters", "task_penalty": "clusters"}
SIDES = [HARD, {"feature_penalty": "clusters"}, {"task_penalty": "clusters"}]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """K-means on a few dozen points spends its time waking threads."""
    with threadpool_limits(1, "openmp"):
        yield


def planted(seed, K1, K2, **params):
    sizes = {"n_features": 40, "n_tasks": 40, "n_train": 10, "noise": 2.0, **params}
    return make_coclusters(n_feature_clusters=K1, n_task_clusters=K2, random_state=seed, **sizes)


def small(kind, seed=0):
    data = make_coclusters(n_features=12, n_tasks=9, n_train=20, noise=0.5, random_state=seed)
    y = data.y if kind is TriFactorRegressor else np.where(data.y > 0, "yes", "no")
    return data, y


def error(model, data):
    return task_rmse(data.y_test, model.predict(data.X_test, task=data.task_test), data.task_test)


# ---- what it is for -----------------------------------------------------------------------------


@pytest.mark.parametrize(("K1", "K2"), [(10, 4), (3, 6)])
def test_finds_planted_clusters_where_two_factors_do_not_and_predicts_better(K1, K2):
    found, plain, ratios = [], [], []
    for seed in range(3):
        data = planted(seed, K1, K2)
        truth = data.feature_clusters, data.task_clusters
        model = TriFactorRegressor(K1, K2, random_state=0, **HARD)
        model.fit(data.X, data.y, task=data.task)
        labels = model.feature_clusters_, model.task_clusters_
        found.append(list(map(adjusted_rand_score, truth, labels)))
        scores, errors = [], []
        for alpha in (0.5, 2.0, 5.0):
            two = BiFactorRegressor(min(K1, K2), alpha_task=alpha, random_state=0)
            two.fit(data.X, data.y, task=data.task)
            labels = cluster_rows(two.coef_.T, K1, 0), cluster_rows(two.coef_, K2, 0)
            scores.append(list(map(adjusted_rand_score, truth, labels)))
            errors.append(error(two, data))
        plain.append(np.max(scores, axis=0))
        ratios.append(error(model, data) / min(errors))
    found, plain = np.mean(found, axis=0), np.mean(plain, axis=0)
    assert (found >= 0.9).all()
    assert plain.min() < found.min() - 0.1
    assert max(ratios) < 0.85


def test_classes_too():
    data = planted(0, 6, 3, n_train=25, noise=1.0)
    model = TriFactorClassifier(6, 3, random_state=0, **HARD)
    model.fit(data.X, data.y > 0, task=data.task)
    assert adjusted_rand_score(data.feature_clusters, model.feature_clusters_) >= 0.9
    assert adjusted_rand_score(data.task_clusters, model.task_clusters_) >= 0.9
    assert model.score(data.X_test, data.y_test > 0, task=data.task_test) > 0.85


# ---- the contract -------------------------------------------------------------------------------


@parametrize_with_checks([TriFactorRegressor(**HARD), TriFactorClassifier(**HARD)])
def test_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("more", [{}, {"shared": True}, {"core_penalty": "l1"}], ids=str)
@pytest.mark.parametrize("sides", SIDES, ids=str)
@pytest.mark.parametrize("kind", [TriFactorRegressor, TriFactorClassifier])
def test_the_objective_never_rises_and_rows_stay_memberships(kind, sides, more):
    data, y = small(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(4, 3, max_iter=20, random_state=0, **sides, **more)
        model.fit(data.X, y, task=data.task)
    history = model.objective_history_
    assert (np.diff(history) <= 1e-9 * np.abs(history[:-1])).all()
    factors = model._state.factors
    for name, factor in (("feature_penalty", factors.F), ("task_penalty", factors.G)):
        if name in sides:
            assert_array_equal(np.sort(factor, axis=1)[:, -1], 1.0)
            assert_array_equal(factor.sum(axis=1), 1.0)
    assert model.score(data.X, y, task=data.task) > 0.8


def test_weights_are_constant_on_blocks():
    data, y = small(TriFactorRegressor)
    model = TriFactorRegressor(4, 3, random_state=0, **HARD).fit(data.X, y, task=data.task)
    assert model.core_.shape == (4, 3)
    weights = model.coef_ * data.X.std(axis=0)
    for k, c in np.ndindex(4, 3):
        block = weights[model.task_clusters_ == c][:, model.feature_clusters_ == k]
        assert np.ptp(block) < 1e-9
    assert model.solver_["F"] == model.solver_["G"] == "moves"


def test_sparse_rows_and_weights_give_the_same_clusters():
    data, y = small(TriFactorRegressor)
    model = TriFactorRegressor(4, 3, random_state=0, **HARD)
    dense = model.fit(data.X, y, task=data.task).coef_
    assert_allclose(model.fit(sparse.csr_array(data.X), y, task=data.task).coef_, dense, rtol=1e-6)
    twice = np.concatenate([np.arange(len(y)), np.flatnonzero(data.task == 0)])
    weights = np.where(data.task == 0, 2.0, 1.0)
    weighted = model.fit(data.X, y, task=data.task, sample_weight=weights).coef_
    repeated = model.fit(data.X[twice], y[twice], task=data.task[twice]).coef_
    assert_allclose(weighted, repeated, rtol=1e-6)


def test_new_tasks_join_a_cluster():
    data = planted(0, 6, 3, n_train=15, noise=1.0)
    old = data.task < 30
    model = TriFactorRegressor(6, 3, random_state=0, **HARD)
    model.fit(data.X[old], data.y[old], task=data.task[old])
    for residual in (False, True):
        both = model.adapt(data.X[~old], data.y[~old], task=data.task[~old], residual=residual)
        assert_array_equal(np.unique(both.task_factor_), [0.0, 1.0])
        assert adjusted_rand_score(data.task_clusters, both.task_clusters_) == 1.0
        assert error(both, data) < 1.1 * error(model, data)


def test_beyond_two_classes_and_with_more_clusters_than_rows():
    data, y = small(TriFactorRegressor)
    model = TriFactorClassifier(4, 3, random_state=0, **HARD)
    model.fit(data.X, np.digitize(data.y, [-1.0, 1.0]), task=data.task)
    assert (len(model.feature_clusters_), len(model.task_clusters_)) == (12, 9)
    model = TriFactorRegressor(50, 50, random_state=0, **HARD).fit(data.X, y, task=data.task)
    assert (model.n_feature_clusters_, model.n_task_clusters_) == (12, 9)


def test_two_factors_refuse_and_a_search_takes_them():
    data, y = small(TriFactorRegressor)
    with pytest.raises(ValueError, match="task_penalty"):
        BiFactorRegressor(task_penalty="clusters").fit(data.X, y, task=data.task)
    search = TriFactorRegressorCV((2, 4), 3, alphas=(0.5,), cv=3, random_state=0, **HARD)
    search.fit(data.X, y, task=data.task)
    assert search.best_params_["n_feature_clusters"] == 4


# ---- the moves ----------------------------------------------------------------------------------


def blocks(data, loss=None, *, gram=False, seed=0):
    """A state with random memberships, and the rows it is to fit."""
    rng = np.random.default_rng(seed)
    fit = data.gram() if gram else data.rows(loss)
    P, T = fit.n_features, fit.n_tasks
    F = indicators(rng.integers(3, size=P), np.zeros((P, 3)))
    G = indicators(rng.integers(2, size=T), np.zeros((T, 2)))
    point = Factors(F, rng.standard_normal((3, 2)), G, np.zeros(P), 0.0, np.zeros(T))
    return fit, State(point, {"F": Membership(), "S": Ridge(1.0), "G": Membership()})


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=str)
def test_moves_lower_the_loss(loss):
    fit, state = blocks(problem(0, 10, 8, 12, labels=not loss.quadratic), loss)
    before = fit.quadratic_at(state.factors)
    features, solution = feature_moves(fit, before, state)
    assert fit.quadratic_at(features).value < before.value
    assert solution.solver == "moves"
    tasks, _ = task_moves(fit, before.task_quadratic(state.factors.F), state)
    assert fit.quadratic_at(tasks).value <= before.value


def test_each_task_takes_the_model_that_serves_it_best():
    fit, state = blocks(problem(1, 10, 8, 12))
    point = state.factors
    there, _ = task_moves(fit, fit.quadratic_at(point).task_quadratic(point.F), state)
    losses = fit.losses(point.feature_loadings.T, np.zeros(2))
    assert_array_equal(labels_of(there.G), losses.argmin(axis=1))


def test_grams_move_as_rows_do():
    cases = [blocks(problem(2, 10, 8, 30), gram=gram) for gram in (False, True)]
    moved = [feature_moves(fit, fit.quadratic_at(at.factors), at)[0].F for fit, at in cases]
    assert_array_equal(*moved)


def test_exchanges_free_a_cluster_and_split_another():
    fit, state = blocks(problem(3, 12, 10, 12))
    point = state.factors
    found = list(exchanges(fit, state))
    assert {np.array_equal(there.G, point.G) for there in found} == {True, False}
    for there in found:
        changed = not np.array_equal(there.F, point.F), not np.array_equal(there.G, point.G)
        assert sum(changed) <= 1
        assert_array_equal(there.F.sum(axis=1), 1.0)
    relation = LearnedRelation(1.0).initialised(point.F, 1.0)
    assert all(there.F is point.F for there in exchanges(fit, state.penalized(F=relation)))
