"""The estimators with cross-validation inside, and the folds within tasks."""

import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedKFold,
)

from comtl import (
    BiFactorClassifier,
    BiFactorClassifierCV,
    BiFactorRegressor,
    BiFactorRegressorCV,
    TaskStratifiedKFold,
    TriFactorClassifier,
    TriFactorClassifierCV,
    TriFactorRegressor,
    TriFactorRegressorCV,
)
from comtl.batches import batch_run

PAIRS = {
    BiFactorRegressorCV: BiFactorRegressor,
    TriFactorRegressorCV: TriFactorRegressor,
    BiFactorClassifierCV: BiFactorClassifier,
    TriFactorClassifierCV: TriFactorClassifier,
}
each_search = pytest.mark.parametrize("kind", PAIRS)
ALPHAS = (0.3, 3.0, 100.0)


def problem(kind, n_classes=2):
    rng = np.random.default_rng(0)
    task = rng.permutation(np.repeat(np.arange(6), [4, 10, 14, 16, 20, 20]))
    X = rng.standard_normal((len(task), 5))
    W = rng.standard_normal((6, 1)) @ rng.standard_normal((1, 5))
    y = (X * W[task]).sum(axis=1) + rng.standard_normal(len(task))
    if "Classifier" in kind.__name__:
        y = np.digitize(y, [0.0] if n_classes == 2 else [-1.0, 1.0])
    return X, y, task


def search(kind, **params):
    plain = {"alphas": ALPHAS, "cv": 3, "tol": 1e-2, "warm_path": False, "random_state": 0}
    return kind(2, **{**plain, **params})


def scores(model):
    return model.cv_results_["mean_test_score"]


def held_out(y, task, **params):
    """Rows held out in each of four folds."""
    X = np.zeros((len(task), 1))
    return [test for _, test in TaskStratifiedKFold(4, **params).split(X, y, task)]


def same(folds, others):
    return all(np.array_equal(one, other) for one, other in zip(folds, others, strict=True))


def losses_by_hand(plain, X, y, task, folds, weight):
    """Mean held-out loss over the folds, weighted by their size."""
    values, sizes = [], []
    for train, test in folds:
        model = clone(plain).fit(X[train], y[train], task=task[train], sample_weight=weight[train])
        if isinstance(model, (BiFactorClassifier, TriFactorClassifier)):
            chance = model.predict_proba(X[test], task=task[test])
            own = chance[np.arange(len(test)), y[test]]
            if chance.shape[1] == 2:
                value = np.average(-np.log(own), weights=weight[test])
            else:  # the Brier score, up to a constant
                value = np.average((chance**2).sum(axis=1) - 2.0 * own + 1.0, weights=weight[test])
        else:
            gap = model.predict(X[test], task=task[test]) - y[test]
            value = np.average(gap**2, weights=weight[test])
        values.append(value)
        sizes.append(weight[test].sum())
    return np.average(values, weights=sizes)


@pytest.mark.parametrize(
    ("kind", "n_classes"),
    [*((kind, 2) for kind in PAIRS), (BiFactorClassifierCV, 3), (TriFactorClassifierCV, 3)],
)
def test_scores_are_those_of_the_plain_estimator(kind, n_classes):
    X, y, task = problem(kind, n_classes)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = search(kind).fit(X, y, task=task, sample_weight=weight)
    strata = y if "Classifier" in kind.__name__ else None
    folds = list(TaskStratifiedKFold(3).split(X, strata, task))
    plain = PAIRS[kind](2, tol=1e-2, random_state=0)
    expected = [
        -losses_by_hand(plain.set_params(alpha_task=a), X, y, task, folds, weight) for a in ALPHAS
    ]
    np.testing.assert_allclose(scores(model), expected, rtol=1e-6)
    best = int(np.argmax(expected))
    assert model.alpha_task_ == model.best_params_["alpha_task"] == ALPHAS[best]
    assert model.best_score_ == pytest.approx(expected[best])
    assert [p["alpha_task"] for p in model.cv_results_["params"]] == list(ALPHAS)
    assert model.cv_results_["std_test_score"].shape == (3,)
    chosen = plain.set_params(**model.best_params_).fit(X, y, task=task, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, chosen.coef_, atol=1e-10)
    np.testing.assert_array_equal(model.predict(X, task=task), chosen.predict(X, task=task))
    np.testing.assert_array_equal(model.task_clusters_, chosen.task_clusters_)
    fitted = {name for name in vars(chosen) if name.endswith("_")}
    assert all(hasattr(model, name) for name in fitted)


@each_search
def test_warm_paths_find_the_same_winner(kind):
    X, y, task = problem(kind)
    grid = {"alphas": (0.03, 0.3, 3.0, 30.0, 300.0), "tol": 1e-4, "cv": 3, "random_state": 0}
    cold, warm = (kind(2, **grid, warm_path=path).fit(X, y, task=task) for path in (False, True))
    assert warm.best_params_ == cold.best_params_
    assert warm.best_score_ == pytest.approx(cold.best_score_, rel=1e-6)
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-10)
    best = np.argsort(scores(warm))[:-4:-1]  # the best three have been fitted anew
    np.testing.assert_allclose(scores(cold)[best], scores(warm)[best], rtol=1e-6)


def test_settings_that_come_to_one_recipe_are_fitted_once(monkeypatch):
    X, y, task = problem(TriFactorRegressorCV)
    fits = []
    original = batch_run.batched_losses

    def counted(folds, recipes, *rest, **named):
        fits.extend(recipe.ranks for fold in recipes for recipe in fold)
        return original(folds, recipes, *rest, **named)

    monkeypatch.setattr(batch_run, "batched_losses", counted)
    ranks = [1, 2, 3]
    model = TriFactorRegressorCV(ranks, ranks, alphas=(1.0,), cv=2, warm_path=False, random_state=0)
    model.fit(X, y, task=task)
    once = [(1, 1), (2, 2), (3, 3)]
    assert sorted(fits) == sorted(2 * once)  # two folds
    settings = [tuple(setting.values())[:2] for setting in model.cv_results_["params"]]
    found = dict(zip(settings, scores(model), strict=True))
    for (K1, K2), score in found.items():
        assert score == found[min(K1, K2), min(K1, K2)]
        plain = TriFactorRegressor(K1, K2, alpha_task=1.0, random_state=0)
        folds = list(TaskStratifiedKFold(2).split(X, None, task))
        expected = losses_by_hand(plain, X, y, task, folds, np.ones(len(y)))
        assert -score == pytest.approx(expected, rel=1e-6)


@each_search
def test_ranks_are_searched(kind):
    X, y, task = problem(kind)
    names = ["n_components"] if "Bi" in kind.__name__ else ["n_feature_clusters", "n_task_clusters"]
    ranks = {name: [1, 4] for name in names}
    model = kind(**ranks, alphas=(1.0,), cv=2, tol=1e-2, random_state=0).fit(X, y, task=task)
    assert len(model.cv_results_["params"]) == 2 ** len(names)
    assert set(model.best_params_) == {*names, "alpha_task"}
    assert model.get_params()[names[0]] == [1, 4]
    counts = [model.best_params_[name] for name in names]
    assert len(set(model.task_clusters_)) == counts[-1]
    assert model.cv_results_["params"][np.argmax(scores(model))] == model.best_params_


FOLDS = [
    KFold(3),
    KFold(3, shuffle=True, random_state=1),
    TaskStratifiedKFold(3),
    ShuffleSplit(2, random_state=0),
    GroupKFold(3),
    LeaveOneGroupOut(),
    [(np.arange(40), np.arange(40, 84)), (np.arange(20, 84), np.arange(20))],
]


@pytest.mark.parametrize("cv", FOLDS, ids=lambda cv: type(cv).__name__)
@pytest.mark.parametrize("kind", [BiFactorRegressorCV, TriFactorClassifierCV])
def test_any_folds(kind, cv):
    X, y, task = problem(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # groups out: no task is known
        model = search(kind, cv=cv, alphas=(1.0,)).fit(X, y, task=task)
        folds = cv if isinstance(cv, list) else list(cv.split(X, y, task))
        plain = PAIRS[kind](2, alpha_task=1.0, tol=1e-2, random_state=0)
        expected = losses_by_hand(plain, X, y, task, folds, np.ones(len(y)))
    assert -model.best_score_ == pytest.approx(expected, rel=1e-6)


def test_folds_of_classes():
    X, y, task = problem(BiFactorClassifierCV)
    names = np.array(["a", "b"])[y]
    model = search(BiFactorClassifierCV, cv=StratifiedKFold(2)).fit(X, names, task)
    again = search(BiFactorClassifierCV, cv=list(StratifiedKFold(2).split(X, y))).fit(X, y, task)
    np.testing.assert_allclose(scores(model), scores(again))


@pytest.mark.parametrize("kind", [TriFactorRegressorCV, BiFactorClassifierCV])
def test_folds_depend_on_nothing_else(kind):
    """Other seeds change the start by chance only, which the fit forgets."""
    X, y, task = problem(kind)
    close = {"tol": 1e-5, "max_iter": 1000, "alphas": (3.0,)}
    found = [scores(search(kind, random_state=it, **close).fit(X, y, task)) for it in (0, 1, None)]
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=1e-3)


def test_folds_hold_an_equal_part_of_every_task():
    task = np.repeat(["a", "b", "c", "d"], [2, 7, 12, 1])
    y = np.arange(22) % 3
    folds = held_out(y, task)
    assert len(folds) == 4
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), range(22))
    for train, test in TaskStratifiedKFold(4).split(np.zeros((22, 1)), y, task):
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), range(22))
        assert {5, 6} >= {len(test)}
        for name, size in (("a", 2), ("b", 7), ("c", 12), ("d", 1)):
            assert abs((task[test] == name).sum() - size / 4) < 1
        for c in range(3):  # each class of the largest task: four rows, one a fold
            assert ((task[test] == "c") & (y[test] == c)).sum() == 1
    for labels in (y.astype(float), y[:, None], np.array(["u", "v", "w"])[y], y.astype(object)):
        assert same(folds, held_out(labels, task))
    assert same(folds, held_out(y, task))
    assert not same(folds, held_out(y, task, random_state=1))


def test_folds_do_not_look_at_values():
    """Rows in the order of their values would make every fold alike, as chance does not."""
    rng = np.random.default_rng(0)
    task, y = np.repeat(["a", "b"], 20), rng.standard_normal(40)
    for values in (y, y[:, None], np.stack([y, y], axis=1), np.where(y > 1.0, np.nan, y)):
        assert same(held_out(None, task), held_out(values, task))


def test_folds_at_the_same_time():
    X, y, task = problem(BiFactorRegressorCV)
    one = search(BiFactorRegressorCV, cv=4).fit(X, y, task=task)
    for _ in range(3):  # threads share memory: no fold may see another's model
        with joblib.parallel_config(backend="threading"):
            many = search(BiFactorRegressorCV, cv=4, n_jobs=4).fit(X, y, task=task)
        np.testing.assert_allclose(scores(one), scores(many), rtol=1e-10)
        np.testing.assert_allclose(one.coef_, many.coef_, atol=1e-10)


def test_search_with_a_task_column():
    X, y, task = problem(BiFactorRegressorCV)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(who=[f"t{t}" for t in task])
    named = search(BiFactorRegressorCV, task_column="who").fit(frame, pd.Series(y))
    plain = search(BiFactorRegressorCV).fit(X, y, task=task)
    np.testing.assert_allclose(named.coef_, plain.coef_, atol=1e-10)
    assert named.best_score_ == pytest.approx(plain.best_score_)
    assert named.n_features_in_ == 6
    shuffled = frame.sample(frac=1.0, random_state=0)  # rows keep an index out of order
    assert search(BiFactorRegressorCV, task_column="who").fit(shuffled, y[shuffled.index])


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"alphas": ()}, ValueError, "alphas"),
        ({"alphas": 0.1}, ValueError, "alphas"),
        ({"alphas": (0.1, -1.0)}, ValueError, "alphas"),
        ({"alphas": (np.nan,)}, ValueError, "alphas"),
        ({"cv": 1}, ValueError, "cv"),
        ({"cv": 0.5}, (TypeError, ValueError), "cv"),
        ({"cv": 1000}, ValueError, "cv=1000"),
        ({"n_components": []}, ValueError, "n_components"),
        ({"n_components": [1, 0]}, ValueError, "n_components"),
        ({"n_components": [1.5]}, TypeError, "n_components"),
    ],
    ids=str,
)
def test_refused(params, error, match):
    X, y, task = problem(BiFactorRegressorCV)
    with pytest.raises(error, match=match):
        BiFactorRegressorCV(**params).fit(X, y, task=task)


def test_a_short_fit_says_so():
    X, y, task = problem(BiFactorRegressorCV)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        search(BiFactorRegressorCV, max_iter=1, tol=0.0).fit(X, y, task=task)


def test_a_search_that_ran_to_its_end_says_nothing():
    X, y, task = problem(BiFactorRegressorCV)
    rough, close = (search(BiFactorRegressorCV, warm_path=warm) for warm in (True, False))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        rough.fit(X, y, task=task)
        close.fit(X, y, task=task)
    # The winner of rough fits is fitted on its own.
    assert rough.best_score_ == pytest.approx(close.best_score_, rel=1e-12)
