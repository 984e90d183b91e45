"""The hierarchical estimators: references, error bars, the contract."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import comtl
from comtl import HierarchicalClassifier, HierarchicalRegressor, MultitaskRegressor
from comtl.hierarchical import intervals_mixin
from comtl.hierarchical.covariances import COVARIANCE_FAMILIES
from comtl.hierarchical.hierarchical_estimators import populations_of
from comtl.linear import OutputColumns
from comtl.rows.fit_input import FitInput

KINDS = (HierarchicalRegressor, HierarchicalClassifier)


@parametrize_with_checks(
    [kind(structure) for kind in KINDS for structure in ("isotropic", "full")]
    + [HierarchicalRegressor("factor", noise="task")]
)
def test_checks(estimator, check):
    check(estimator)


def draw(seed=0, tasks=30, rows=12):
    """Slopes of tasks around common ones, and intercepts of their own."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), rows)
    X = rng.standard_normal((len(task), 4))
    W = np.linspace(1.0, -1.0, 4) + 0.5 * rng.standard_normal((tasks, 4))
    y = np.einsum("np,np->n", X, W[task]) + rng.standard_normal(tasks)[task]
    return X, y + rng.standard_normal(len(task)), task, W


def test_it_recovers_the_variances_of_the_population():
    X, y, task, _ = draw(tasks=400, rows=30)
    model = HierarchicalRegressor("isotropic").fit(X, y, task=task)
    assert_allclose(model.slope_covariance_, 0.25 * np.eye(4), atol=0.025)
    assert model.intercept_variance_ == pytest.approx(1.0, rel=0.15)
    assert model.noise_variance_ == pytest.approx(1.0, rel=0.05)
    assert_allclose(model.shared_coef_, np.linspace(1.0, -1.0, 4), atol=0.1)


@pytest.mark.parametrize(
    "name, target, task, column",
    [("exam", "normexam", "school", "standLRT"), ("sleepstudy", "Reaction", "Subject", "Days")],
)
def test_random_intercepts_equal_those_of_a_mixed_model(data_dir, name, target, task, column):
    """Restricted likelihood, against statsmodels."""
    mixed = pytest.importorskip("statsmodels.regression.mixed_linear_model")
    table = pd.read_parquet(data_dir / "hierarchical" / f"{name}.parquet")
    X, y = table[[column]].to_numpy(float), table[target].to_numpy(float)
    labels = table[task].to_numpy()
    model = HierarchicalRegressor("intercept", tol=1e-10, max_iter=5000).fit(X, y, task=labels)
    known = mixed.MixedLM(y, np.column_stack([np.ones(len(y)), X]), labels).fit(reml=True)
    assert model.noise_variance_ == pytest.approx(known.scale, rel=0.01)
    between = float(np.ravel(known.cov_re)[0])
    assert model.intercept_variance_ == pytest.approx(between, rel=0.01)
    assert_allclose(model.predict(X, task=labels), known.fittedvalues, atol=1e-3 * np.std(y))


@pytest.mark.parametrize("structure", COVARIANCE_FAMILIES)
def test_it_beats_separate_and_pooled_fits(structure):
    X, y, task, W = draw(rows=8)
    model = HierarchicalRegressor(structure).fit(X, y, task=task)
    rng = np.random.default_rng(5)
    X_test = rng.standard_normal((3000, 4))
    t = rng.integers(0, 30, 3000)
    truth = np.einsum("np,np->n", X_test, W[t])
    guess = model.predict(X_test, task=t) - model.intercept_[t]
    error = np.mean((guess - truth) ** 2)
    pooled = np.mean((X_test @ W.mean(axis=0) - truth) ** 2)
    separate = []
    for number in range(30):
        own = task == number
        rows = np.column_stack([X[own], np.ones(own.sum())])
        w = np.linalg.lstsq(rows, y[own], rcond=None)[0]
        separate.append(np.mean((X_test[t == number] @ (w[:-1] - W[number])) ** 2))
    assert error < np.mean(separate)
    if structure != "intercept":
        assert error < pooled


@pytest.mark.parametrize("kind", KINDS)
def test_common_slopes_are_shrunk_on_request(kind):
    """Slopes that say little shrink, by evidence; those that say much stay."""
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((400, 6)), np.repeat(np.arange(20), 20)
    y = X @ np.full(6, 0.05) + rng.standard_normal(400)
    strong = X @ np.arange(-3.0, 3.0) + rng.standard_normal(400)
    if kind is HierarchicalClassifier:
        y, strong = y > 0, strong > 0
    sizes = []
    for target in (y, strong):
        found = [
            kind("intercept", shrink_common=shrink).fit(X, target, task=task).shared_coef_
            for shrink in (False, True)
        ]
        sizes.append(np.linalg.norm(found[1]) / np.linalg.norm(found[0]))
    assert sizes[0] < 0.9 and 0.9 < sizes[1] <= 1.0
    with pytest.raises(TypeError, match="shrink_common"):
        kind(shrink_common="yes").fit(X, y, task=task)


def test_error_bars_cover():
    X, y, task, W = draw(seed=1, tasks=60)
    model = HierarchicalRegressor("isotropic").fit(X, y, task=task)
    rng = np.random.default_rng(2)
    t = rng.integers(0, 60, 4000)
    X_test = rng.standard_normal((4000, 4))
    own = model.intercept_  # the true ones are not kept; their error is part of the interval
    y_test = np.einsum("np,np->n", X_test, W[t]) + own[t] + rng.standard_normal(4000)
    low, high = model.predict_interval(X_test, 0.9, task=t)
    assert 0.87 < np.mean((low < y_test) & (y_test < high)) < 0.94
    guess, deviation = model.predict(X_test, task=t, return_std=True)
    assert_allclose((low + high) / 2, guess)
    assert deviation.shape == guess.shape and np.all(deviation > 0.9)
    # A task that was never seen is less certain.
    _, unseen = model.predict(X_test, task=np.full(4000, 99), return_std=True)
    assert unseen.min() > np.median(deviation)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        model.predict_interval(X, 1.5, task=task)


def test_a_table_is_rows_of_all_tasks_also_for_error_bars():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    Y = X @ rng.standard_normal((3, 5)) + rng.standard_normal((40, 5))
    model = HierarchicalRegressor("full").fit(X, Y)
    task = np.repeat(np.arange(5), 40)
    long = HierarchicalRegressor("full").fit(np.tile(X, (5, 1)), Y.T.ravel(), task=task)
    assert_allclose(model.coef_, long.coef_, atol=1e-8)
    guess, deviation = model.predict(X, return_std=True)
    assert guess.shape == deviation.shape == (40, 5)
    own = long.predict(np.tile(X, (5, 1)), task=task, return_std=True)[1]
    assert_allclose(deviation.T.ravel(), own, rtol=1e-6)
    Y[3, 2] = np.nan
    holed = HierarchicalRegressor("full").fit(X, Y).predict(X, return_std=True)
    assert np.isfinite(holed).all()
    assert_allclose(holed[0], guess, atol=0.5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_equals_dense_and_weights_are_repetitions(kind):
    X, y, task, _ = draw(tasks=6, rows=10)
    X = np.where(X > 0.3, X, 0.0)
    y = y > 0 if kind is HierarchicalClassifier else y
    model = kind("full", max_iter=40, tol=0.0)
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    dense = model.fit(X, y, task).coef_
    packed = model.fit(sparse.csr_array(X), y, task).coef_
    heavy = model.fit(X, y, task, weight).coef_
    twice = model.fit(X[again], y[again], task[again]).coef_
    assert_allclose(packed, dense, atol=1e-7)
    assert_allclose(heavy, twice, atol=1e-6)


@pytest.mark.parametrize("structure", ["intercept", "isotropic", "diagonal", "factor"])
@pytest.mark.parametrize("features, rows", [(30, 6), (20, 12)])
def test_error_bars_by_rows_are_those_by_covariances(
    structure, features, rows, monkeypatch, tmp_path
):
    """With more features than rows in all, and with fewer."""
    rng = np.random.default_rng(0)
    tasks = 4 if features == 30 else 8
    X, task = rng.normal(size=(tasks * rows, features)), np.repeat(np.arange(tasks), rows)
    y = X[:, 0] * rng.normal(size=tasks)[task] + rng.normal(size=len(task))
    model = HierarchicalRegressor(structure, tol=1e-3).fit(X, y, task=task)
    monkeypatch.setattr(intervals_mixin, "BLOCK_CELLS", 0)
    wide = HierarchicalRegressor(structure, tol=1e-3).fit(X, y, task=task)
    wide.save(tmp_path / "wide.comtl")
    wide = comtl.load(tmp_path / "wide.comtl")
    assert type(wide._spread) is not type(model._spread)
    known = model.predict(X, task=(task + 1) % (tasks + 1), return_std=True)
    found = wide.predict(X, task=(task + 1) % (tasks + 1), return_std=True)
    assert_allclose(found, known, rtol=1e-6, atol=1e-3)  # Differences of nearly equal numbers.


def test_thousands_of_columns_have_room():
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(60, 4000)), np.repeat(np.arange(10), 6)
    y = X[:, :400].mean(axis=1) * 20.0 + rng.normal(size=10)[task] + 0.1 * rng.normal(size=60)
    for structure in ("isotropic", "factor"):
        model = HierarchicalRegressor(structure, tol=1e-3).fit(X, y, task=task)
        assert model._spread.rows.size == 60 * 4001
        low, high = model.predict_interval(X, task=task)
        assert np.all(low < high) and np.mean((low < y) & (y < high)) > 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_to_some_rows_starts_from_that_to_all(kind):
    X, y, task, _ = draw()
    y = np.digitize(y, [-1.0, 1.0]) if kind is HierarchicalClassifier else y
    whole = kind("isotropic").fit(X, y, task=task)
    read = FitInput(X[::2], y[::2], task[::2], None).read(whole)
    columns = OutputColumns.of(read)
    fold, cold = kind("isotropic", max_iter=1), kind("isotropic", max_iter=1)
    for model, priors in ((fold, whole._priors), (cold, ())):
        populations = populations_of(model._population(read, columns), columns)
        with pytest.warns(ConvergenceWarning):
            model._fit_em(populations, read, columns, warm=priors)
    assert fold.n_iter_ == 1 and fold.log_evidence_ > cold.log_evidence_


def test_classes_of_tasks():
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((600, 2)), np.repeat(np.arange(30), 20)
    angle = np.where(task % 2, 0.0, 0.5)
    y = np.digitize(X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle), [-0.5, 0.5])
    model = HierarchicalClassifier("full").fit(X, y, task=task)
    assert model.coef_.shape == (30, 3, 2)
    assert model.score(X, y, task=task) > 0.75
    binary = HierarchicalClassifier("full").fit(X, y > 0, task=task)
    chance = binary.predict_proba(X, task=task)
    assert_allclose(chance.sum(axis=1), 1.0)
    assert binary.score(X, y > 0, task=task) > 0.9


def test_it_says_what_is_wrong():
    X, y, task, _ = draw(tasks=3)
    with pytest.raises(ValueError, match="structure must be one of"):
        HierarchicalRegressor("round").fit(X, y, task=task)
    with pytest.raises(ValueError, match="noise must be one of"):
        HierarchicalRegressor(noise="loud").fit(X, y, task=task)
    with pytest.raises(ValueError, match="leave out features"):
        HierarchicalRegressor().fit(np.ones((4, 2000)), np.arange(4.0), task=[0, 0, 1, 1])
    with pytest.warns(ConvergenceWarning, match="max_iter=1 steps"):
        HierarchicalRegressor(max_iter=1).fit(X, y, task=task)


def test_clusters_of_tasks_are_found():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(20), 40)
    X = rng.standard_normal((800, 4))
    sign = np.where(np.arange(20) < 10, 1.0, -1.0)
    y = 2.0 * sign[task] * X[:, 0] + 0.3 * rng.standard_normal(800)
    model = HierarchicalRegressor("factor", n_components=1).fit(X, y, task=task)
    assert model.task_clusters_.tolist() == [0] * 10 + [1] * 10


@pytest.mark.parametrize("shift", [0.0, 50.0])
@pytest.mark.parametrize(
    "model", [HierarchicalRegressor("isotropic"), MultitaskRegressor(cv=2)], ids=str
)
def test_clusters_of_tasks_count_levels(model, shift):
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(20), 20)
    X = rng.standard_normal((400, 3)) + shift
    y = X[:, 0] + 2.0 * (task % 2) + 0.3 * rng.standard_normal(400)
    assert model.fit(X, y, task=task).task_clusters_.tolist() == [0, 1] * 10


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_direction_is_found_where_slopes_of_one_variance_are_not():
    """One slope of thirty differs between tasks: on average next to nothing."""
    rng = np.random.default_rng(1)
    task = np.repeat(np.arange(40), 6)
    X = rng.standard_normal((240, 30))
    y = X[:, 0] * (1 + 0.5 * rng.standard_normal(40))[task] + rng.standard_normal(40)[task]
    y += rng.standard_normal(240)
    models = [HierarchicalRegressor(s, n_components=1) for s in ("isotropic", "factor")]
    isotropic, factor = (model.fit(X, y, task=task).log_evidence_ for model in models)
    assert factor > isotropic + 5
