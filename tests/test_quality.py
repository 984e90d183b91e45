"""Do the models learn? Planted low rank, clusters, common parts and intercepts."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.metrics import adjusted_rand_score

from comtl import BiFactorClassifier, BiFactorRegressor, TriFactorClassifier, TriFactorRegressor
from comtl.datasets import make_coclusters
from helpers import assert_weights


def rmse(model, X, y, task):
    return float(np.sqrt(np.mean((model.predict(X, task=task) - y) ** 2)))


def draw(W, rows, rng, noise=1.0, intercepts=None):
    """Rows of every task of the weights W (T, P); centred where intercepts are looked at."""
    task = np.repeat(np.arange(len(W)), rows)
    X = rng.standard_normal((len(task), W.shape[1]))
    X -= X.mean(axis=0) if intercepts is not None else 0.0
    y = (X * W[task]).sum(axis=1) + noise * rng.standard_normal(len(task))
    return X, y if intercepts is None else y + intercepts[task], task


@pytest.mark.parametrize("init", ["svd", "random"])
@pytest.mark.parametrize(
    "model", [BiFactorRegressor(4), TriFactorRegressor(6, 4)], ids=["bi", "tri"]
)
def test_low_rank_is_found_from_any_start(model, init):
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        W = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 40))
        train, test = draw(W, 30, rng), draw(W, 100, rng)
        model.set_params(init=init, random_state=seed).fit(*train)
        errors.append(rmse(model, *test))
    assert np.mean(errors) <= 1.25, errors
    assert max(errors) <= 1.35, errors


def coclusters(features, tasks, rows, seed):
    return make_coclusters(
        n_feature_clusters=features, n_task_clusters=tasks, n_train=rows, random_state=seed
    )


def assert_found(data, model, counts):
    for found, planted, count in (
        (model.feature_clusters_, data.feature_clusters, counts[0]),
        (model.task_clusters_, data.task_clusters, counts[1]),
    ):
        assert adjusted_rand_score(planted, found) >= 0.9
        assert found.shape == planted.shape
        assert set(found) == set(range(count))


@pytest.mark.parametrize("ranks", [(2, 3), (4, 3), (3,)])
def test_planted_clusters(ranks):
    kind = BiFactorRegressor if len(ranks) == 1 else TriFactorRegressor
    counts = ranks[0], ranks[-1]
    for seed in range(10):
        data = coclusters(*counts, 25, seed)
        model = kind(*ranks, random_state=seed).fit(data.X, data.y, task=data.task)
        assert_found(data, model, counts)


@pytest.mark.parametrize("model", [BiFactorClassifier(3), TriFactorClassifier(3, 3)])
def test_planted_clusters_of_classifiers(model):
    data = coclusters(3, 3, 60, 0)
    model.set_params(random_state=0).fit(data.X, data.y > 0, task=data.task)
    assert_found(data, model, (3, 3))


def test_clusters_do_not_depend_on_units():
    data, scale = coclusters(3, 3, 25, 0), np.logspace(-3, 3, 30)
    model = TriFactorRegressor(3, 3, random_state=0).fit(data.X * scale, data.y, task=data.task)
    assert adjusted_rand_score(data.feature_clusters, model.feature_clusters_) >= 0.9


def test_clusters_of_three_classes():
    rng = np.random.default_rng(0)
    groups = np.arange(12) % 3
    W = 3.0 * rng.standard_normal((3, 3, 5))[groups]
    task = np.repeat(np.arange(12), 60)
    X = rng.standard_normal((720, 5))
    y = np.einsum("icj,ij->ic", W[task], X).argmax(axis=1)
    model = TriFactorClassifier(5, 3, random_state=0).fit(X, y, task=task)
    assert adjusted_rand_score(groups, model.task_clusters_) == 1.0
    assert model.feature_clusters_.shape == (5,)


@pytest.mark.parametrize("kind", [BiFactorRegressor, TriFactorRegressor])
def test_shared_part(kind):
    """Tasks that agree, few rows each: a common part beats factors at their best penalty."""
    gains = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        common = 2.0 * rng.standard_normal(12)
        W = common + 0.3 * rng.standard_normal((15, 12))
        train, test = draw(W, 5, rng), draw(W, 100, rng)
        plain = [kind(2, alpha_task=alpha, tol=1e-3).fit(*train) for alpha in (0.1, 1.0, 10.0)]
        shared = kind(2, shared=True, alpha_task=100.0, tol=1e-3).fit(*train)
        gains.append(rmse(shared, *test) / min(rmse(model, *test) for model in plain))
        found = shared.shared_coef_
        assert found @ common / np.linalg.norm(found) / np.linalg.norm(common) > 0.95
        assert (plain[0].shared_coef_ == 0).all()
    assert np.mean(gains) < 0.97, gains


def test_shared_part_alone_is_ridge():
    """With factors shut off, one task's w0 and intercept are ridge regression."""
    rng = np.random.default_rng(0)
    X, y, _ = draw(rng.standard_normal((1, 8)), 30, rng, intercepts=np.array([4.0]))
    off = {"alpha_feature": 1e8, "alpha_task": 1e8}
    ridge = {"feature_penalty": "ridge", "task_penalty": "ridge", "standardize": False}
    model = BiFactorRegressor(1, shared=True, alpha_shared=5.0, tol=1e-12, **off, **ridge)
    model.fit(X, y)
    exact = Ridge(5.0).fit(X, y)
    np.testing.assert_allclose(model.shared_coef_, exact.coef_, atol=1e-4)
    assert_weights(model, exact.coef_[None], exact.intercept_, atol=1e-4)


@pytest.mark.parametrize("model", [BiFactorRegressor(2), TriFactorRegressor(2, 2)])
def test_strong_intercepts_are_found(model):
    rng = np.random.default_rng(0)
    W = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 6))
    intercepts = 10.0 * rng.standard_normal(20)
    X, y, task = draw(W, 40, rng, intercepts=intercepts)
    model.fit(X, y, task=task)
    assert np.abs(model.intercept_ - intercepts).max() < 5.0 / np.sqrt(40)
    none = type(model)(2, fit_intercept=False).fit(X, y, task=task)
    assert (none.intercept_ == 0).all()


def test_equal_intercepts_are_pooled():
    spreads = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        W = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 6))
        X, y, task = draw(W, 20, rng, intercepts=np.full(20, 7.0))
        model = BiFactorRegressor(2).fit(X, y, task=task)
        spreads.append(model.intercept_.std())
        assert model.intercept_.mean() == pytest.approx(7.0, abs=0.2)
    # Means of 20 rows with noise 1 would spread by 0.22.
    assert np.mean(spreads) < 0.06, spreads


def test_intercepts_are_partially_pooled():
    """Between the two extremes, the estimated variance beats both."""
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        intercepts = 0.7 * rng.standard_normal(60)
        X, y, task = draw(np.zeros((60, 2)), 3, rng, intercepts=intercepts)
        model = BiFactorRegressor(1, alpha_feature=10.0, alpha_task=10.0).fit(X, y, task=task)
        means = np.array([y[task == t].mean() for t in range(60)])
        guesses = (model.intercept_, means, np.full(60, y.mean()))
        errors.append([np.mean((guess - intercepts) ** 2) for guess in guesses])
    pooled, separate, common = np.mean(errors, axis=0)
    assert pooled < 0.85 * min(separate, common), errors


def test_intercepts_of_classifiers():
    rng = np.random.default_rng(0)
    intercepts = np.repeat([-2.0, 2.0], 10)
    task = np.repeat(np.arange(20), 60)
    X = rng.standard_normal((1200, 3))
    y = X @ [1.0, -1.0, 0.5] + intercepts[task] + rng.logistic(size=1200) > 0
    found = BiFactorClassifier(1).fit(X, y, task=task).intercept_
    assert found[:10].max() < -0.7
    assert found[10:].min() > 0.7


def test_the_models_beat_separate_ridge():
    """The bounds above mean something: separate ridge is far off."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 40))
    (X, y, task), (X_new, y_new, task_new) = draw(W, 30, rng), draw(W, 30, rng)
    gaps = []
    for t in range(30):
        ridge = RidgeCV(np.logspace(-3, 3, 20)).fit(X[task == t], y[task == t])
        gaps.append((ridge.predict(X_new[task_new == t]) - y_new[task_new == t]) ** 2)
    assert np.sqrt(np.mean(gaps)) > 3.0
