"""Baselines, searches, hierarchical models and stacks on arrays of other libraries."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, cross_val_score

from comtl import (
    BiFactorClassifierCV,
    BiFactorRegressor,
    BiFactorRegressorCV,
    HierarchicalClassifier,
    HierarchicalRegressor,
    MultitaskClassifier,
    MultitaskRegressor,
    TriFactorRegressorCV,
    baselines,
)
from comtl.clusters import in_order
from comtl.hierarchical.coregionalised import CoregionalisedRidgeRegressor
from libraries import NAMES, make

N, P, T = 200, 5, 6
RNG = np.random.default_rng(1)
X, TASK = RNG.normal(size=(N, P)) + 1.0, RNG.integers(0, T, N)
W = RNG.normal(size=(P, 2)) @ RNG.normal(size=(2, T))
Y = (X * W.T[TASK]).sum(1) + 0.3 * RNG.normal(size=N)
NEW_X, NEW_TASK = RNG.normal(size=(50, P)) + 1.0, RNG.integers(T, T + 2, 50)
NEW_Y = NEW_X[:, 0] + 0.5 * RNG.normal(size=50)
TABLE = np.where(RNG.random((N, T)) < 0.2, np.nan, X @ W + RNG.normal(size=(N, T)))
GRID = {"alphas": [0.01, 1.0, 100.0], "cv": 3, "max_iter": 5, "tol": 0.0, "random_state": 0}
SHORT = {"max_iter": 5, "tol": 0.0}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=NAMES)
def library(request):
    return make(request.param)


@pytest.fixture(params=[(name, width) for name in NAMES for width in (64, 32)])
def typed(request):
    return make(*request.param)


def cut(values, count):
    return np.digitize(values, np.quantile(values, np.arange(1, count) / count)) + 3


# ---- baselines ----------------------------------------------------------------------------------


def cases():
    for name in baselines.__all__:
        if name.endswith("Regressor"):
            yield pytest.param(name, Y, NEW_Y, id=name)
        else:
            for count in (2, 3):
                yield pytest.param(name, cut(Y, count), cut(NEW_Y, count), id=f"{name}-{count}")


@pytest.mark.parametrize("name,old,new", list(cases()))
def test_baselines(library, name, old, new):
    def said(to):
        model = getattr(baselines, name)(max_iter=5, random_state=0)
        model.fit(to(X), to(old), task=TASK)
        grown = [model.adapt(to(NEW_X), to(new), task=NEW_TASK, residual=r) for r in (False, True)]
        scores = model.predict if name.endswith("Regressor") else model.decision_function
        found = [model.coef_, model.intercept_, scores(to(X), task=TASK)]
        found += [g.coef_ for g in grown]
        small = model.score(to(X), to(old), task=TASK), in_order(model.task_clusters_).tolist()
        return found, small, model.to_numpy().coef_

    (found, score, copy), (expected, goal, own) = said(library), said(np.asarray)
    for one, other in zip(found, expected, strict=True):
        # Settings that new tasks are chosen from may be as good as tied.
        library.assert_same(one, other, rtol=1e-4 if other is expected[-1] else 1e-7)
    assert score == (pytest.approx(goal[0], abs=1e-7), goal[1])
    np.testing.assert_allclose(copy, own, rtol=1e-6, atol=1e-6)


# ---- searches -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model,y,task",
    [
        (BiFactorRegressorCV(2, **GRID), Y, TASK),
        (BiFactorRegressorCV([1, 2], warm_path=False, **GRID), TABLE, None),
        (TriFactorRegressorCV(2, 2, **{**GRID, "cv": KFold(2)}), Y, TASK),
        (BiFactorRegressorCV(2, **{**GRID, "cv": GroupKFold(2)}, n_jobs=2), Y, TASK),
        (BiFactorClassifierCV(2, **GRID), np.digitize(Y, [0.0]), TASK),
        (BiFactorClassifierCV(2, **GRID), np.digitize(Y, [-1.0, 1.0]), TASK),
    ],
    ids=["rows", "table", "kfold", "groups", "two", "three"],
)
def test_searches(library, model, y, task):
    def found(to):
        model.fit(to(X), to(y), task=task)
        return model.best_params_, model.cv_results_["mean_test_score"], model.coef_

    one, other = found(library), found(np.asarray)
    assert one[0] == other[0]
    np.testing.assert_allclose(one[1], other[1], rtol=1e-6)
    library.assert_same(one[2], other[2], rtol=1e-6)


def test_searches_of_scikit_learn():
    torch = make("torch")

    def scores(to):
        model = BiFactorRegressor(2, task_column=0, max_iter=5, tol=0.0)
        rows = np.concatenate([TASK[:, None], X], axis=1)
        return cross_val_score(model, to(rows), to(Y), cv=3)

    np.testing.assert_allclose(scores(torch), scores(np.asarray), rtol=1e-8)


def test_models_of_the_host_say_so(library):
    model = CoregionalisedRidgeRegressor()
    with pytest.raises(TypeError, match="CoregionalisedRidgeRegressor does not work on arrays of"):
        model.fit(library(X), library(Y), task=TASK)


def test_checkpoints_are_of_the_host(library, tmp_path):
    model = BiFactorRegressor(2, checkpoint=str(tmp_path / "fit"))
    with pytest.raises(TypeError, match="checkpoint="):
        model.fit(library(X), library(Y), task=TASK)


# ---- hierarchical models ------------------------------------------------------------------------


def same(typed, found, expected):
    # NumPy works in double precision here, whatever the type of the rows.
    rtol = 1e-6 if typed.width == 64 else 1e-2
    for one, other in zip(found, expected, strict=True):
        typed.assert_same(one, other, rtol=rtol)


@pytest.mark.parametrize(
    "options",
    [
        {"structure": "full"},
        {"structure": "factor", "n_components": 1},
        {"structure": "diagonal", "standardize": False},
        {"structure": "intercept", "noise": "task"},
    ],
    ids=lambda options: options["structure"],
)
@pytest.mark.parametrize("y,task", [(Y, TASK), (TABLE, None)], ids=["rows", "table"])
def test_hierarchical_regressors(typed, options, y, task):
    def said(to):
        model = HierarchicalRegressor(**options, **SHORT).fit(to(X), to(y), task=task)
        guess, deviation = model.predict(to(X), task=task, return_std=True)
        lower, upper = model.predict_interval(to(X), task=task)
        found = [model.coef_, model.intercept_, guess, deviation, lower, upper]
        return [*found, model.slope_covariance_], model.log_evidence_, model.to_numpy()

    (found, evidence, copy), (expected, goal, own) = said(typed), said(np.asarray)
    same(typed, found, expected)
    assert evidence == pytest.approx(goal, rel=1e-3 if typed.width == 32 else 1e-8)
    rows = np.asarray(X)
    np.testing.assert_allclose(
        copy.predict(rows, task=task, return_std=True)[1],
        own.predict(rows, task=task, return_std=True)[1],
        rtol=1e-2 if typed.width == 32 else 1e-6,
    )


@pytest.mark.parametrize("count", [2, 3])
def test_hierarchical_classifiers(typed, count):
    labels = cut(Y, count)

    def said(to):
        model = HierarchicalClassifier("full", **SHORT).fit(to(X), to(labels), task=TASK)
        return [model.coef_, model.intercept_, model.predict_proba(to(X), task=TASK)]

    same(typed, said(typed), said(np.asarray))


def test_fewer_rows_than_features():
    typed = make("strict")
    wide, task = RNG.normal(size=(40, 12)), np.arange(40) // 4
    target = wide[:, 0] + 0.1 * RNG.normal(size=40)

    def said(to):
        return [
            HierarchicalRegressor("isotropic", **SHORT).fit(to(wide), to(target), task=task).coef_
        ]

    same(typed, said(typed), said(np.asarray))


def test_a_task_never_seen(typed):
    def said(to):
        model = HierarchicalRegressor("full", **SHORT).fit(to(X), to(Y), task=TASK)
        task = np.where(np.arange(N) < 50, 99, TASK)
        return model.predict(to(X), task=task, return_std=True)

    same(typed, said(typed), said(np.asarray))


# ---- stacks -------------------------------------------------------------------------------------


def test_stacks(library):
    def said(to):
        model = MultitaskRegressor(form="linear", cv=2).fit(to(X), to(Y), task=TASK)
        lower, upper = model.predict_interval(to(X), task=TASK)
        return [model.coef_, model.intercept_, lower, upper], model

    (found, model), (expected, own) = said(library), said(np.asarray)
    for one, other in zip(found, expected, strict=True):
        library.assert_same(one, other, rtol=1e-3)
    assert type(model.to_numpy().coef_) is np.ndarray
    np.testing.assert_allclose(
        model.to_numpy().predict(X, task=TASK), own.predict(X, task=TASK), rtol=1e-2, atol=1e-3
    )


@pytest.mark.parametrize("count, threshold", [(2, None), (3, None), (2, "balanced_accuracy")])
def test_stacks_of_classes(count, threshold):
    library = make("torch")
    noisy = Y + 1.5 * np.random.default_rng(3).normal(size=N)
    labels = np.digitize(noisy, np.quantile(noisy, np.arange(1, count) / count + 0.1))

    def said(to):
        model = MultitaskClassifier(form="linear", cv=2, threshold=threshold)
        model.fit(to(X), to(labels), task=TASK)
        assert np.all((model.thresholds_ == 0.0) == (threshold is None))
        return model.predict_proba(to(X), task=TASK), model

    (found, model), (expected, _) = said(library), said(np.asarray)
    library.assert_same(found, expected, rtol=1e-2)
    chance = model.to_numpy().predict_proba(X, task=TASK)
    np.testing.assert_allclose(chance, expected, rtol=1e-2, atol=1e-3)


def test_what_is_of_the_host_says_so(library):
    for form in ("hinges", "trees"):
        with pytest.raises(TypeError, match=f'form="{form}"'):
            MultitaskRegressor(form=form).fit(library(X), library(Y), task=TASK)
    wide = RNG.normal(size=(20, 1600))
    with pytest.raises(TypeError, match="1600 features"):
        MultitaskRegressor().fit(library(wide), library(Y[:20]), task=TASK[:20])
