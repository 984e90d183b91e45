"""What scikit-learn asks of an estimator: its checks, clones, routing, searches, pipelines."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import comtl

PLAIN = [f"{kind}Factor{end}" for kind in ("Bi", "Tri") for end in ("Regressor", "Classifier")]
SEARCHES = [f"{name}CV" for name in PLAIN]
REGRESSORS = [name for name in PLAIN + SEARCHES if "Regressor" in name]
CLASSIFIERS = [name for name in PLAIN + SEARCHES if "Classifier" in name]


def make(name, **params):
    """Estimator by its public name; searches with a short grid."""
    short = {"alphas": (0.1, 1.0), "cv": 2, "tol": 1e-2} if name in SEARCHES else {}
    return getattr(comtl, name)(**{**short, **params})


def test_eight_estimators():
    assert {*PLAIN, *SEARCHES} <= set(comtl.__all__)


# One or two sweeps a fit: the searches run every check three times over.
FAST = {"alphas": (1.0,), "cv": 2, "tol": 1.0, "smoothing": 1.0}


@parametrize_with_checks([make(name) for name in PLAIN] + [make(name, **FAST) for name in SEARCHES])
def test_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def frame():
    """Six schools with slopes of rank one and intercepts of their own; strings as labels."""
    rng = np.random.default_rng(0)
    code = rng.permutation(np.repeat(np.arange(6), 25))
    X = rng.standard_normal((150, 4))
    slopes = np.outer(np.linspace(-2.0, 2.0, 6), [1.0, -1.0, 0.5, 0.0])
    score = (X * slopes[code]).sum(axis=1)
    table = pd.DataFrame(X, columns=list("abcd"))
    table.insert(2, "school", np.array([f"school {c}" for c in range(6)])[code])
    y = score + 3.0 * np.arange(6)[code] + 0.3 * rng.standard_normal(150)
    label = np.where(score + 0.3 * rng.standard_normal(150) > 0, "yes", "no")
    return table, y, label


def target(name, frame):
    return frame[1] if name in REGRESSORS else frame[2]


@pytest.mark.parametrize("name", PLAIN + SEARCHES)
def test_kind_of_estimator(name):
    assert is_regressor(make(name)) == (name in REGRESSORS)
    assert is_classifier(make(name)) == (name in CLASSIFIERS)


@pytest.mark.parametrize("name", PLAIN + SEARCHES)
def test_parameters_round_trip(name):
    model = make(name, task_column="school", unseen_task="raise", tol=1e-3, random_state=3)
    params = model.get_params()
    assert clone(model).get_params() == params
    assert getattr(comtl, name)().set_params(**params).get_params() == params
    with pytest.raises(ValueError, match="no_such"):
        model.set_params(no_such=1)


@pytest.mark.parametrize("name", PLAIN + SEARCHES)
def test_fit_leaves_the_parameters(name, frame):
    model = make(name, task_column="school")
    before = dict(vars(model))
    assert model.fit(frame[0], target(name, frame)) is model
    assert {key: vars(model)[key] for key in before} == before
    fresh = clone(model)
    with pytest.raises(NotFittedError):
        fresh.predict(frame[0])
    assert not [key for key in vars(fresh) if key.endswith("_")]


@pytest.mark.parametrize("name", PLAIN + SEARCHES)
def test_pickle_of_a_fitted_model(name, frame):
    model = make(name, task_column="school").fit(frame[0], target(name, frame))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame[0]), model.predict(frame[0]))
    np.testing.assert_array_equal(again.task_clusters_, model.task_clusters_)
    np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize("name", PLAIN + SEARCHES)
def test_a_second_fit_forgets_the_first(name, frame):
    X, y = frame[0], target(name, frame)
    other = X["school"] != "school 1"
    column = {"task_column": "school", "random_state": 0}
    model = make(name, **column).fit(X, y)
    model.adapt(X[:20].assign(school="new"), y[:20])
    assert len(model.task_clusters_) == 6
    model.fit(X[other], y[other])
    fresh = make(name, **column).fit(X[other], y[other])
    np.testing.assert_array_equal(model.coef_, fresh.coef_)
    np.testing.assert_array_equal(model.task_clusters_, fresh.task_clusters_)
    assert vars(model).keys() == vars(fresh).keys()


@pytest.mark.parametrize("name", PLAIN + SEARCHES)
def test_same_seed_same_model(name, frame):
    X, y = frame[0], target(name, frame)
    models = [
        make(name, task_column="school", init="random", random_state=7).fit(X, y) for _ in range(2)
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize(
    ("name", "scoring"),
    [
        *((name, "neg_root_mean_squared_error") for name in REGRESSORS),
        *((name, ["r2", "neg_mean_absolute_error"]) for name in REGRESSORS[:2]),
        *((name, ["accuracy", "f1_macro", "roc_auc", "neg_log_loss"]) for name in CLASSIFIERS),
    ],
)
def test_cross_validation_by_any_score(name, scoring, frame):
    X, y = frame[0], target(name, frame)
    folds = KFold(3) if name in REGRESSORS else StratifiedKFold(3)
    result = cross_validate(
        make(name, task_column="school"), X, y, scoring=scoring, cv=folds, error_score="raise"
    )
    bounds = {
        "neg_root_mean_squared_error": -0.45,
        "neg_mean_absolute_error": -0.36,
        "r2": 0.99,
        "accuracy": 0.85,
        "f1_macro": 0.85,
        "roc_auc": 0.93,
        "neg_log_loss": -0.40,
    }
    for score in [scoring] if isinstance(scoring, str) else scoring:
        values = result["test_score" if isinstance(scoring, str) else f"test_{score}"]
        assert values.mean() > bounds[score], (score, values)


@pytest.mark.parametrize("scoring", ["f1_macro", "roc_auc_ovr", "neg_log_loss", "accuracy"])
def test_three_classes_by_any_score(scoring, frame):
    X = frame[0]
    score = X["a"] - X["b"]
    y = np.select([score < -0.7, score > 0.7], ["low", "high"], "middle")
    model = comtl.BiFactorClassifier(3, task_column="school")
    scores = cross_val_score(model, X, y, scoring=scoring, cv=3, error_score="raise")
    assert scores.mean() > {"neg_log_loss": -0.75, "roc_auc_ovr": 0.8}.get(scoring, 0.6)


@pytest.mark.parametrize(
    ("name", "scoring"),
    [
        ("BiFactorRegressor", None),
        ("TriFactorRegressor", "r2"),
        ("BiFactorClassifier", "roc_auc"),
        ("TriFactorClassifier", None),
    ],
)
def test_grid_search_with_a_task_column(name, scoring, frame):
    search = GridSearchCV(
        make(name, task_column="school"),
        {"alpha_task": [0.1, 1e6]},
        scoring=scoring,
        cv=3,
        error_score="raise",
    ).fit(frame[0], target(name, frame))
    assert search.best_params_["alpha_task"] == 0.1
    assert search.best_score_ > 0.8
    assert len(search.predict(frame[0])) == len(frame[0])


@pytest.mark.parametrize("name", PLAIN + SEARCHES)
def test_requests_are_set_beforehand(name):
    with sklearn.config_context(enable_metadata_routing=True):
        requests = make(name).get_metadata_routing()
    assert requests.fit.requests == {"task": True, "sample_weight": True}
    assert requests.score.requests == {"task": True, "sample_weight": True}
    methods = ["predict"]
    if name in CLASSIFIERS:
        methods += ["predict_proba", "predict_log_proba", "decision_function"]
    for method in methods:
        assert getattr(requests, method).requests == {"task": True}


@pytest.mark.parametrize("name", ["BiFactorRegressor", "TriFactorClassifier"])
def test_routed_tasks_and_weights(name, frame):
    X, task, y = frame[0].drop(columns="school"), frame[0]["school"], target(name, frame)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    extra = {"task": task.to_numpy(), "sample_weight": weight}
    column = {"task_column": "school"}
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_val_score(
            make(name, tol=1e-2), X, y, cv=3, params=extra, error_score="raise"
        )
        search = GridSearchCV(
            make(name, tol=1e-2), {"alpha_feature": [0.1, 1e6]}, cv=3, error_score="raise"
        )
        search.fit(X, y, **extra)
        assert search.best_params_ == {"alpha_feature": 0.1}
        assert search.score(X, y, **extra) > 0.9
        table = frame[0]
        weighted = cross_val_predict(
            make(name, tol=1e-2, **column), table, y, cv=3, params={"sample_weight": weight}
        )
        in_column = cross_val_score(
            make(name, tol=1e-2, **column), table, y, cv=3, params={"sample_weight": weight}
        )
    np.testing.assert_allclose(routed, in_column, rtol=1e-9)
    assert len(weighted) == len(y)
    unweighted = cross_val_score(make(name, tol=1e-2, **column), frame[0], y, cv=3)
    assert np.abs(unweighted - in_column).max() > 1e-6


def test_predict_in_a_search_needs_the_column(frame):
    """scikit-learn hands no task to predict there, so the model must not guess."""
    X, y = frame[0].drop(columns="school"), frame[1]
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match="task_column"),
    ):
        cross_val_predict(make("BiFactorRegressor"), X, y, params={"task": frame[0]["school"]})


@pytest.mark.parametrize("name", PLAIN)
def test_pipeline_with_the_task_passed_through(name, frame):
    X, y = frame[0], target(name, frame)
    scale = ColumnTransformer(
        [("scale", StandardScaler(), list("abcd")), ("task", "passthrough", ["school"])],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    model = make_pipeline(scale, make(name, task_column="school")).fit(X, y)
    assert list(model[-1].feature_names_in_) == [*"abcd", "school"]
    assert model.score(X, y) > 0.9
    assert cross_val_score(model, X, y, cv=3, error_score="raise").mean() > 0.85
    # Without names the same transformer puts the task last, as an array of objects.
    scale = clone(scale).set_output(transform="default")
    model_of_arrays = make_pipeline(scale, make(name, task_column=-1)).fit(X, y)
    np.testing.assert_allclose(model_of_arrays[-1].coef_, model[-1].coef_, atol=1e-10)


def test_a_router_in_a_pipeline(frame):
    X, task, y = frame[0].drop(columns="school"), frame[0]["school"].to_numpy(), frame[1]
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), make("BiFactorRegressor")).fit(X, y, task=task)
        routed = model.predict(X, task=task)
        assert model.score(X, y, task=task) > 0.99
    scaled = StandardScaler().fit_transform(X)
    direct = make("BiFactorRegressor").fit(scaled, y, task=task).predict(scaled, task=task)
    np.testing.assert_allclose(routed, direct, rtol=1e-9)


def test_the_problem_needs_several_tasks(frame):
    """The bounds above mean something: one pooled line is far off."""
    scores = cross_val_score(LinearRegression(), frame[0].drop(columns="school"), frame[1], cv=3)
    assert scores.mean() < 0.2


@pytest.mark.parametrize("name", [*PLAIN, *SEARCHES])
@pytest.mark.parametrize(
    ("gone", "instead"),
    [
        ("relation_penalty", "graphical_lasso"),
        ("alpha_relation", "graphical_lasso"),
        ("warm_start", "checkpoint="),
    ],
)
def test_removed_parameters_name_what_to_do(name, gone, instead):
    with pytest.raises(TypeError, match=f"{gone} of {name} was removed: .*{instead}"):
        make(name, **{gone: None})
    with pytest.raises(ValueError, match=f"{gone} of {name} was removed: .*{instead}"):
        make(name).set_params(**{gone: None})
    assert gone not in make(name).get_params()


def test_other_parameters_are_refused_as_ever():
    with pytest.raises(TypeError, match="unexpected keyword argument 'alpha'"):
        comtl.BiFactorRegressor(alpha=1.0)
