"""New tasks on fitted baselines: what is known stays, and what is new builds on it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge, RidgeCV

from comtl import baselines
from comtl.baselines import direct as whole
from helpers import make_baseline as make

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

both = pytest.mark.parametrize("residual", [False, True])
each = pytest.mark.parametrize("name", baselines.__all__)


def drawn(seed=0, new=3, rows=20, features=4, rank=2, classes=None):
    """Rows of twelve old and of new tasks with weights of low rank, and the truth."""
    tasks = 12
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks + new), rows)
    X = rng.standard_normal((len(task), features))
    W = rng.standard_normal((tasks + new, rank)) @ rng.standard_normal((rank, features))
    b = 0.5 * rng.standard_normal(tasks + new)
    y = (X * W[task]).sum(axis=1) + b[task] + 0.5 * rng.standard_normal(len(task))
    if classes == 2:
        y = np.where(y > 0, "yes", "no")
    elif classes:
        y = np.digitize(y, [-0.7, 0.7])
    old = task < tasks
    return (X[old], y[old], task[old]), (X[~old], y[~old], task[~old]), (W, b)


def problem(*args, **params):
    return drawn(*args, **params)[:2]


def say(model, X, task):
    """Numbers of a regressor or a classifier."""
    score = model.decision_function if hasattr(model, "classes_") else model.predict
    return score(X, task=task)


@both
@each
def test_old_tasks_stay_and_new_ones_are_known(name, residual):
    classes = 2 if name.endswith("Classifier") else None
    old, new = problem(classes=classes)
    model = make(name).fit(*old[:2], task=old[2])
    before = say(model, old[0], old[2])
    wider = model.adapt(*new[:2], task=new[2], residual=residual)
    assert_array_equal(wider.tasks_, np.arange(15))
    assert_array_equal(model.tasks_, np.arange(12))
    assert_allclose(say(wider, old[0], old[2]), before, atol=1e-12)
    assert wider.coef_.shape == (15, 4)
    assert wider.intercept_.shape == wider.task_clusters_.shape == (15,)
    lift = wider.coef_[new[2]]
    expected = (new[0] * lift).sum(axis=1) + wider.intercept_[new[2]]
    assert_allclose(say(wider, new[0], new[2]), expected, atol=1e-9)
    common = name.startswith(("Pooled", "RandomIntercept", "Clustered", "SharedPool"))
    if residual or not common:
        assert wider.score(*new[:2], task=new[2]) > (0.7 if classes else 0.5)
        assert wider.score(*new[:2], task=new[2]) > model.score(*new[:2], task=0 * new[2])


@both
@pytest.mark.parametrize("name", [n for n in baselines.__all__ if n.endswith("Classifier")])
def test_three_classes(name, residual):
    old, new = problem(1, rows=40, classes=3)
    model = make(name, 3).fit(*old[:2], task=old[2])
    wider = model.adapt(*new[:2], task=new[2], residual=residual)
    assert wider.coef_.shape == (15, 3, 4)
    chance = wider.predict_proba(new[0], task=new[2])
    assert_allclose(chance.sum(axis=1), 1.0)
    assert_allclose(wider.predict_proba(*old[::2]), model.predict_proba(*old[::2]), atol=1e-12)
    if residual:
        assert wider.score(*new[:2], task=new[2]) > 0.55


@pytest.mark.parametrize("name", ["FactoredRegressor", "GroupOverlapRegressor"])
def test_without_a_residual_weights_stay_in_the_span(name):
    old, new = problem(features=6)
    model = make(name, standardize=False).fit(*old[:2], task=old[2])
    narrow = model.adapt(*new[:2], task=new[2], residual=False)
    wide = model.adapt(*new[:2], task=new[2], residual=True)
    basis = np.linalg.qr(model.feature_factor_)[0]
    for found, inside in ((narrow, True), (wide, False)):
        own = found.coef_[12:]
        assert (np.abs(own - own @ basis @ basis.T).max() < 1e-10) == inside


@pytest.mark.parametrize("kind", ["Factored", "GroupOverlap"])
@pytest.mark.parametrize("rows", [6, 20])
def test_with_a_residual_not_worse_than_ridge_alone(kind, rows):
    """Error on new rows, of tasks with weights of full rank: factors of rank two help little."""
    ratios = []
    for seed in range(40):
        old, new, (W, b) = drawn(seed, new=6, rows=rows, rank=4)
        rng = np.random.default_rng([seed, 1])
        X = rng.standard_normal((600, 4))
        model = make(f"{kind}Regressor").fit(*old[:2], task=old[2])
        wider = model.adapt(*new[:2], task=new[2])
        errors = np.zeros(2)
        for t in range(12, 18):
            mine = new[2] == t
            alone = RidgeCV(np.logspace(-3, 3, 13)).fit(new[0][mine], new[1][mine])
            target = X @ W[t] + b[t] + 0.5 * rng.standard_normal(600)
            guesses = wider.predict(X, task=np.full(600, t)), alone.predict(X)
            errors += [np.mean((target - guess) ** 2) for guess in guesses]
        ratios.append(errors[0] / errors[1])
    assert np.mean(ratios) < 1.02


@pytest.mark.parametrize("form", ["tasks", "rows"])
def test_independent_tasks_that_span_everything_are_ridge(form, monkeypatch):
    if form == "rows":
        monkeypatch.setattr(whole, "DENSE_BYTES", 0)
    old, new = problem()
    model = baselines.IndependentRegressor(0.7, standardize=False).fit(*old[:2], task=old[2])
    wider = model.adapt(*new[:2], task=new[2], residual=False)
    for t in (12, 13, 14):
        mine = new[2] == t
        ridge = Ridge(0.7).fit(new[0][mine], new[1][mine])
        assert_allclose(wider.coef_[t], ridge.coef_, atol=1e-7)
        assert_allclose(wider.intercept_[t], ridge.intercept_, atol=1e-7)


@pytest.mark.parametrize("name", ["FeatureLearningRegressor", "RelationLearningRegressor"])
def test_both_forms_adapt_alike(name, monkeypatch):
    old, new = problem()
    found = []
    for size in (whole.DENSE_BYTES, 0):
        monkeypatch.setattr(whole, "DENSE_BYTES", size)
        model = make(name, tol=1e-10, max_iter=2_000).fit(*old[:2], task=old[2])
        found.append(model.adapt(*new[:2], task=new[2], residual=False))
    assert_allclose(found[0].coef_, found[1].coef_, atol=5e-3)


def test_pooled_weights_serve_new_tasks():
    old, new = problem()
    model = baselines.PooledRegressor().fit(*old[:2], task=old[2])
    wider = model.adapt(*new[:2], task=new[2], residual=False)
    assert_allclose(wider.coef_, np.tile(model.coef_[0], (15, 1)), atol=1e-12)
    assert_allclose(wider.intercept_, model.intercept_[0], atol=1e-12)


def test_random_intercepts_of_new_tasks_are_shrunk_means():
    old, new = problem()
    model = baselines.RandomInterceptRegressor(standardize=False).fit(*old[:2], task=old[2])
    wider = model.adapt(*new[:2], task=new[2], residual=False)
    assert_allclose(wider.coef_, np.tile(model.coef_[0], (15, 1)), atol=1e-12)
    gap = new[1] - new[0] @ model.coef_[0]
    offset = model._units.target_shift + model._state.factors.offset
    offset = offset - model._units.shift @ model.coef_[0]
    for t in (12, 13, 14):
        own, count = gap[new[2] == t].mean() - offset, np.sum(new[2] == t)
        shrunk = offset + own * count / (count + model._state.intercept_penalty)
        assert_allclose(wider.intercept_[t], shrunk, atol=1e-8)
    assert abs(model.intercept_.mean() - offset) < 1.0


@pytest.mark.parametrize("name", ["SharedPoolRegressor", "SharedPoolClassifier"])
def test_a_new_task_takes_a_model_of_the_pool(name):
    old, new = problem(classes=2 if name.endswith("Classifier") else None)
    model = make(name, 3).fit(*old[:2], task=old[2])
    wider = model.adapt(*new[:2], task=new[2], residual=False)
    pool = np.unique(np.column_stack([model.coef_, model.intercept_]).round(9), axis=0)
    assert len(pool) == 3
    for t in (12, 13, 14):
        mine = new[2] == t
        own = np.append(wider.coef_[t], wider.intercept_[t])
        assert np.abs(pool - own).max(axis=1).min() < 1e-8
        score = new[0][mine] @ pool[:, :-1].T + pool[:, -1]
        if name.endswith("Regressor"):
            losses = ((score - new[1][mine, None]) ** 2).sum(axis=0)
        else:
            sign = np.where(new[1][mine] == "yes", 1.0, -1.0)
            losses = np.logaddexp(0.0, -sign[:, None] * score).sum(axis=0)
        assert_allclose(pool[losses.argmin()], own, atol=1e-8)


def test_clusters_of_new_tasks_are_shares_with_an_intercept():
    old, new = problem()
    new = (new[0], new[1] + 10.0, new[2])
    model = make("ClusteredRegressor", 3).fit(*old[:2], task=old[2])
    wider = model.adapt(*new[:2], task=new[2], residual=False)
    assert_allclose(wider.task_factor_.sum(axis=1), 1.0)
    assert wider.task_factor_.min() >= 0.0
    assert wider.intercept_[12:].min() > 5.0
