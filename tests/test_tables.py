"""A two-dimensional y: one task a column on shared rows, NaN where nothing was observed."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.metrics import accuracy_score, r2_score

from comtl import (
    BiFactorClassifier,
    BiFactorClassifierCV,
    BiFactorRegressor,
    BiFactorRegressorCV,
    TriFactorClassifier,
    TriFactorRegressor,
)

MODELS = {
    "bi": (BiFactorRegressor, (2,)),
    "tri": (TriFactorRegressor, (3, 2)),
    "bi labels": (BiFactorClassifier, (2,)),
    "tri labels": (TriFactorClassifier, (3, 2)),
}
each_model = pytest.mark.parametrize("kind", MODELS)


def fresh(kind, **params):
    model, ranks = MODELS[kind]
    return model(*ranks, random_state=0, **params)


def table(kind, *, missing=False, features=4, seed=4):
    """Shared X, and a column of Y for each of five tasks."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, features)) + 1.0
    W = rng.standard_normal((features, 2)) @ rng.standard_normal((2, 5))
    Y = X @ W + rng.standard_normal(5) + 0.5 * rng.standard_normal((60, 5))
    if "labels" in kind:
        Y = (Y > Y.mean(axis=0)).astype(float)
    if missing:
        Y[rng.random(Y.shape) < 0.3] = np.nan
    return X, Y


def assert_same(one, other, atol=1e-8):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=atol)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=0, atol=atol)


@each_model
@pytest.mark.parametrize("missing", [False, True])
def test_a_table_is_its_cells(kind, missing):
    # Many features where that is cheap: the two forms are then solved by different solvers.
    features = 4 if "labels" in kind else 36
    X, Y = table(kind, missing=missing, features=features)
    rows, tasks = np.nonzero(~np.isnan(Y))
    wide = fresh(kind).fit(X, Y)
    long = fresh(kind).fit(X[rows], Y[rows, tasks], task=tasks)
    assert_same(wide, long)
    if kind == "bi":
        assert wide.solver_["F"] == ("cg" if missing else "sylvester")
        assert long.solver_["F"] == "cg"
    np.testing.assert_array_equal(wide.tasks_, np.arange(5))
    np.testing.assert_array_equal(wide.task_clusters_, long.task_clusters_)


@each_model
def test_predictions_for_every_task(kind):
    X, Y = table(kind, missing=True)
    model = fresh(kind).fit(X, Y)
    scores = X @ model.coef_.T + model.intercept_
    if "labels" in kind:
        np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-9)
        np.testing.assert_allclose(model.predict_proba(X), 1 / (1 + np.exp(-scores)), atol=1e-9)
        np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(float))
    else:
        np.testing.assert_allclose(model.predict(X), scores, atol=1e-9)
    assert model.predict(X).shape == (60, 5)
    # Or for one task a row, where asked for.
    task = np.arange(60) % 5
    own = model.predict(X, task=task)
    np.testing.assert_allclose(own, model.predict(X)[np.arange(60), task], atol=1e-9)


@each_model
def test_score_skips_missing_cells(kind):
    X, Y = table(kind, missing=True)
    model = fresh(kind).fit(X, Y)
    metric = accuracy_score if "labels" in kind else r2_score
    said = model.predict(X)
    seen = ~np.isnan(Y)

    def mean_score(weight):
        parts = [(Y[own, t], said[own, t], weight[own]) for t, own in enumerate(seen.T)]
        return np.mean([metric(y, found, sample_weight=w) for y, found, w in parts])

    assert model.score(X, Y) == pytest.approx(mean_score(np.ones(60)))
    weight = np.linspace(0.1, 3.0, 60)
    for given in (weight, np.repeat(weight[:, None], 5, axis=1)):
        assert model.score(X, Y, sample_weight=given) == pytest.approx(mean_score(weight))
    Y[:, 2] = np.nan
    assert np.isfinite(model.score(X, Y))


@each_model
@pytest.mark.parametrize("maker", [pd.DataFrame, pl.DataFrame])
def test_a_frame_names_the_tasks(kind, maker):
    X, Y = table(kind, missing=True)
    names = ["wednesday", "tuesday", "friday", "monday", "sunday"]
    frame = maker({name: Y[:, t] for t, name in enumerate(names)})
    model = fresh(kind).fit(X, frame)
    assert list(model.tasks_) == names
    assert_same(model, fresh(kind).fit(X, Y))
    assert model.score(X, frame) == pytest.approx(model.score(X, Y))


def test_labels_of_a_table_may_be_text():
    X, Y = table("bi labels", missing=True)
    words = np.where(np.isnan(Y), None, np.where(Y == 1.0, "yes", "no"))
    model = fresh("bi labels").fit(X, words)
    assert_same(model, fresh("bi labels").fit(X, Y))
    assert set(np.unique(model.predict(X))) == {"no", "yes"}
    assert model.score(X, words) > 0.7


def test_three_classes_in_a_table_are_refused():
    X, Y = table("bi labels")
    with pytest.raises(ValueError, match="y must be binary"):
        fresh("bi labels").fit(X, Y + (Y > 0) * (X[:, :1] > 1))


@pytest.mark.parametrize("kind", ["bi", "tri labels"])
def test_weights_of_rows_and_cells(kind):
    X, Y = table(kind)
    times = np.random.default_rng(5).integers(1, 4, 60)
    again = np.repeat(np.arange(60), times)
    by_rows = fresh(kind).fit(X, Y, sample_weight=times)
    assert_same(by_rows, fresh(kind).fit(X[again], Y[again]), 1e-6)
    cells = np.where(np.random.default_rng(6).random(Y.shape) < 0.3, 0.0, 1.0)
    by_cells = fresh(kind).fit(X, Y, sample_weight=cells)
    assert_same(by_cells, fresh(kind).fit(X, np.where(cells == 0, np.nan, Y)), 1e-6)


@pytest.mark.parametrize("kind", ["bi", "tri labels"])
def test_sparse_rows_of_a_table(kind):
    X, Y = table(kind, missing=True)
    X[X < 1.0] = 0.0
    packed = sparse.csr_array(X)
    model = fresh(kind).fit(packed, Y)
    assert_same(model, fresh(kind).fit(X, Y), 1e-6)
    np.testing.assert_allclose(model.predict(packed), model.predict(X), atol=1e-9)


@pytest.mark.parametrize("kind", ["bi", "bi labels"])
def test_new_columns(kind):
    X, Y = table(kind)
    names = ["a", "b", "c"]
    model = fresh(kind).fit(X, pd.DataFrame(Y[:, :3], columns=names))
    wider = model.adapt(X, pd.DataFrame(Y[:, 3:], columns=["d", "e"]))
    assert list(wider.tasks_) == ["a", "b", "c", "d", "e"]
    np.testing.assert_array_equal(wider.predict(X)[:, :3], model.predict(X))
    for t in (3, 4):
        own = r2_score if kind == "bi" else accuracy_score
        assert own(Y[:, t], wider.predict(X)[:, t]) > 0.85
    with pytest.raises(ValueError, match="two-dimensional"):
        model.adapt(X, Y[:, 3], task=np.full(60, "f"))


def test_columns_of_few_cells():
    """A fold may miss a column altogether, and R² needs two cells."""
    X, Y = table("bi")
    Y[1:, 0] = np.nan
    Y[2:, 1] = np.nan
    model = fresh("bi").fit(X, Y)
    said = model.predict(X)
    values = [r2_score(Y[:2, 1], said[:2, 1]), *(r2_score(Y[:, t], said[:, t]) for t in (2, 3, 4))]
    assert model.score(X, Y) == pytest.approx(np.mean(values))
    search = BiFactorRegressorCV(2, alphas=(0.1, 1e4), cv=3, random_state=0).fit(X, Y)
    assert search.alpha_task_ == 0.1
    assert search.predict(X).shape == (60, 5)
    labels = np.where(np.isnan(Y), None, np.where(Y > 0, "yes", "no"))
    search = BiFactorClassifierCV(2, alphas=(1.0,), cv=3, random_state=0).fit(X, labels)
    assert np.isfinite(search.best_score_)


@pytest.mark.parametrize("search", [BiFactorRegressorCV, BiFactorClassifierCV])
def test_search_on_a_table(search):
    kind = "bi labels" if "Classifier" in search.__name__ else "bi"
    X, Y = table(kind, missing=True)
    model = search(2, alphas=(0.1, 1e4), cv=3, random_state=0).fit(X, Y)
    assert model.alpha_task_ == 0.1
    assert_same(model, fresh(kind, alpha_task=0.1).fit(X, Y))
    assert model.predict(X).shape == (60, 5)
