"""What holds for every fit: a falling objective, units that do not matter, ranks."""

import logging
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from comtl import BiFactorClassifier, BiFactorRegressor, TriFactorClassifier, TriFactorRegressor

REGRESSORS = [BiFactorRegressor, TriFactorRegressor]
CLASSIFIERS = [BiFactorClassifier, TriFactorClassifier]
ALL = REGRESSORS + CLASSIFIERS


def problem(kind, seed=0, features=8, tasks=7):
    """Rows of related tasks with intercepts: X, target, task."""
    rng = np.random.default_rng(seed)
    code = rng.permutation(np.repeat(np.arange(tasks), rng.integers(10, 30, tasks)))
    X = rng.standard_normal((len(code), features))
    W = rng.standard_normal((tasks, 2)) @ rng.standard_normal((2, features))
    y = (X * W[code]).sum(axis=1) + rng.standard_normal(tasks)[code]
    y = y + 0.5 * rng.standard_normal(len(code))
    return X, y > 0 if kind in CLASSIFIERS else y, code


SETTINGS = [
    {},
    {"shared": True},
    {"fit_intercept": False},
    {"standardize": False},
    {"init": "random"},
    {"alpha_feature": 0.0, "alpha_task": 0.0},
    {"alpha_task": 1e3},
    {"smoothing": 1e-6},
    {"feature_penalty": "ridge", "task_penalty": "ridge"},
    {"feature_penalty": "ridge", "task_penalty": "l1"},
    {"feature_penalty": "l1", "task_penalty": "relation", "shared": True},
    {"feature_penalty": "relation", "task_penalty": "simplex"},
    {"feature_penalty": "nonnegative", "task_penalty": "ridge"},
    {"feature_penalty": "simplex", "task_penalty": "nonnegative"},
]
CORES = [
    {"core_penalty": "l1"},
    {"core_penalty": "nonnegative", "feature_penalty": "nonnegative"},
    {"core_penalty": None},
    {"alpha_core": 0.0},
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("kind", "params"),
    [
        *((kind, params) for kind in REGRESSORS for params in SETTINGS),
        *((BiFactorClassifier, params) for params in SETTINGS[:8]),
        *((TriFactorClassifier, params) for params in SETTINGS[8:]),
        *((TriFactorRegressor, params) for params in CORES),
        (TriFactorClassifier, CORES[1]),
        (BiFactorClassifier, {"loss": "squared"}),
        (TriFactorClassifier, {"loss": "squared", "shared": True}),
    ],
    ids=str,
)
def test_the_objective_never_rises(kind, params):
    X, y, task = problem(kind)
    model = kind(3, max_iter=20, random_state=0, **params).fit(X, y, task=task)
    history = model.objective_history_
    assert len(history) == model.n_iter_ + 1 and np.isfinite(history).all()
    assert (np.diff(history) <= 1e-10 * np.abs(history[1:])).all()
    assert np.isfinite(model.coef_).all()
    G, F = model.task_factor_, model.feature_factor_
    for name, factor in (("feature_penalty", F), ("task_penalty", G)):
        if params.get(name) in ("nonnegative", "simplex"):
            assert (factor >= 0).all()
    if params.get("task_penalty") == "simplex":
        np.testing.assert_allclose(G.sum(axis=1), 1.0)
    if params.get("core_penalty") == "nonnegative":
        assert (model.core_ >= 0).all()
    # Heavy penalties and factors without signs may say little, but not less than the mean.
    low = params.get("alpha_task") == 1e3 or params.get("feature_penalty") == "simplex"
    assert model.score(X, y, task=task) > (-0.01 if low else 0.5)


@pytest.mark.parametrize("kind", ALL)
def test_weights_are_the_product_of_the_factors(kind):
    X, y, task = problem(kind)
    model = kind(3, shared=True).fit(X * 5.0, y, task=task)
    core = model.core_ if "Tri" in kind.__name__ else np.eye(3)
    product = model.feature_factor_ @ core @ model.task_factor_.T
    np.testing.assert_allclose(model.coef_, product.T + model.shared_coef_, atol=1e-10)
    for relation, size in ((model.feature_relation_, 8), (model.task_relation_, 7)):
        dense = relation.toarray()
        assert dense.shape == (size, size)
        assert np.trace(dense) == pytest.approx(1.0)
        assert np.linalg.eigvalsh(dense).min() > -1e-12
        np.testing.assert_allclose(relation @ np.eye(size), dense, atol=1e-12)


@pytest.mark.parametrize("kind", REGRESSORS)
@pytest.mark.parametrize(("scale", "shift"), [(1e6, 0.0), (-3.0, 1e3), (1e-9, -1.0)])
def test_units_of_the_target_do_not_matter(kind, scale, shift):
    X, y, task = problem(kind)
    plain = kind(3, random_state=0).fit(X, y, task=task)
    moved = kind(3, random_state=0).fit(X, scale * y + shift, task=task)
    said = (moved.predict(X, task=task) - shift) / scale
    # What was lost when y was moved cannot come back.
    lost = 1e-15 * max(1.0, abs(shift / scale))
    np.testing.assert_allclose(said, plain.predict(X, task=task), rtol=0, atol=1e-5 + 1e2 * lost)
    np.testing.assert_array_equal(moved.task_clusters_, plain.task_clusters_)
    assert moved.n_iter_ == plain.n_iter_


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("params", [{}, {"shared": True}], ids=str)
def test_units_of_the_features_do_not_matter(kind, params):
    X, y, task = problem(kind)
    scale, shift = np.logspace(-4, 4, 8), np.linspace(-3.0, 3.0, 8)
    plain = kind(3, random_state=0, **params).fit(X, y, task=task)
    moved = kind(3, random_state=0, **params).fit(scale * (X + shift), y, task=task)
    np.testing.assert_allclose(moved.coef_ * scale, plain.coef_, atol=1e-5)
    own = "predict" if kind in REGRESSORS else "decision_function"
    said = getattr(moved, own)(scale * (X + shift), task=task)
    np.testing.assert_allclose(said, getattr(plain, own)(X, task=task), atol=1e-5)
    np.testing.assert_array_equal(moved.feature_clusters_, plain.feature_clusters_)


def test_order_of_features_and_tasks_does_not_matter():
    X, y, task = problem(BiFactorRegressor)
    turned, renamed = np.random.default_rng(1).permutation(8), np.array([3, 1, 6, 0, 5, 2, 4])
    plain = BiFactorRegressor(3, tol=1e-9, max_iter=500).fit(X, y, task=task)
    other = BiFactorRegressor(3, tol=1e-9, max_iter=500).fit(X[:, turned], y, task=renamed[task])
    np.testing.assert_allclose(other.coef_[renamed], plain.coef_[:, turned], atol=1e-4)


@pytest.mark.parametrize("kind", ALL)
def test_single_precision(kind):
    X, y, task = problem(kind)
    double = kind(3, random_state=0).fit(X, y, task=task)
    single = kind(3, random_state=0).fit(X.astype(np.float32), y, task=task)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, double.coef_, atol=0.02)


def test_ranks_are_capped():
    X, y, task = problem(BiFactorRegressor, features=5, tasks=7)
    bi = BiFactorRegressor(50).fit(X, y, task=task)
    assert bi.n_components_ == 5
    assert (bi.feature_factor_.shape, bi.task_factor_.shape) == ((5, 5), (7, 5))
    assert BiFactorRegressor(50).fit(X, y).n_components_ == 1
    tri = TriFactorRegressor(50, 60).fit(X, y, task=task)
    assert (tri.n_feature_clusters_, tri.n_task_clusters_) == (5, 7)
    assert tri.core_.shape == (5, 7)
    assert (tri.n_feature_clusters, tri.n_task_clusters) == (50, 60)
    small = TriFactorRegressor(2, np.int64(3)).fit(X, y, task=task)
    assert (small.n_feature_clusters_, small.n_task_clusters_) == (2, 3)
    assert (set(small.feature_clusters_), set(small.task_clusters_)) == ({0, 1}, {0, 1, 2})


def test_end_of_the_sweeps(caplog):
    X, y, task = problem(BiFactorRegressor)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = BiFactorRegressor(3, max_iter=2, tol=0.0).fit(X, y, task=task)
    assert model.n_iter_ == 2 and not model.converged_
    with warnings.catch_warnings(), caplog.at_level(logging.INFO, logger="comtl"):
        warnings.simplefilter("error")
        model = BiFactorRegressor(3, verbose=1).fit(X, y, task=task)
    assert model.converged_
    history = model.objective_history_
    assert len(caplog.records) == len(history)
    assert history[-2] - history[-1] <= 1e-4 * history[-1]
    assert set(model.solver_) == {"rows", "F", "G"}


@pytest.mark.parametrize("ranks", [(4, 2), (2, 4)])
def test_a_wider_side_adds_columns_of_zeros(ranks):
    """Only the singular values of W are penalised, and the shorter side sets their number."""
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((120, 6)), np.repeat(np.arange(5), 24)
    y = X @ rng.standard_normal(6) + rng.standard_normal(120)
    wide = TriFactorRegressor(*ranks, random_state=0).fit(X, y, task=task)
    even = TriFactorRegressor(2, 2, random_state=0).fit(X, y, task=task)
    np.testing.assert_array_equal(wide.coef_, even.coef_)
    shapes = wide.feature_factor_.shape, wide.core_.shape, wide.task_factor_.shape
    assert shapes == ((6, ranks[0]), ranks, (5, ranks[1]))
    product = wide.task_factor_ @ wide.core_.T @ wide.feature_factor_.T
    np.testing.assert_allclose(product, wide.coef_, atol=1e-12)
    free = TriFactorRegressor(*ranks, core_penalty=None, random_state=0).fit(X, y, task=task)
    assert np.linalg.norm(free.feature_factor_, axis=0).all()
