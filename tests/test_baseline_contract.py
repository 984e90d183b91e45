"""What scikit-learn asks of the baselines: its checks, parameters, clones, searches, errors."""

import inspect
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from comtl import baselines
from helpers import assert_weights, make_baseline

NAMES = list(baselines.__all__)
CLASSIFIERS = [name for name in NAMES if name.endswith("Classifier")]
REGRESSORS = [name for name in NAMES if name.endswith("Regressor")]

each = pytest.mark.parametrize("name", NAMES)
each_classifier = pytest.mark.parametrize("name", CLASSIFIERS)


def make(name, **params):
    """Estimator by its public name, of few starts."""
    starts = {"n_init": 2} if name.startswith("SharedPool") else {}
    return make_baseline(name, **{**starts, **params})


def fitted(model, X, y, **rest):
    """Fit without the word that sweeps were few."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **rest)


def data(name, seed=0, classes=2, rows=16, dtype=float):
    """Five tasks in two groups on three features; strings as task labels."""
    rng = np.random.default_rng(seed)
    code = rng.permutation(np.repeat(np.arange(5), rows))
    X = rng.standard_normal((len(code), 3)).astype(dtype)
    score = np.where(code < 2, X[:, 0], 1.5 * X[:, 0] + X[:, 1]) + 0.3 * code
    y = (score + 0.3 * rng.standard_normal(len(code))).astype(dtype)
    task = np.array(list("vwxyz"))[code]
    if name in CLASSIFIERS:
        cuts = {2: [0.5], 3: [-0.5, 1.5]}[classes]
        y = np.array(["low", "middle", "top"])[np.digitize(y, cuts)]
    return X, y, task


# With room for the classes of the checks, and in few sweeps.
@parametrize_with_checks([make(name, rank=5, tol=1e-2, max_iter=30) for name in NAMES])
def test_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@each
def test_kind_and_parameters(name):
    model = make(name, task_column="school", unseen_task="raise", tol=1e-3)
    assert is_regressor(model) == (name in REGRESSORS)
    assert is_classifier(model) == (name in CLASSIFIERS)
    params = model.get_params()
    assert getattr(baselines, name)().set_params(**params).get_params() == params


@each
def test_every_parameter_is_documented_with_its_default(name):
    cls = getattr(baselines, name)
    parameters = inspect.signature(cls).parameters
    text = inspect.getdoc(cls)
    listed = re.findall(r"^(\w[\w, ]*) : (.+)$", text.split("Attributes\n---")[0], re.MULTILINE)
    told = {one: what for names, what in listed for one in names.split(", ")}
    assert told.keys() == parameters.keys()
    for key, parameter in parameters.items():
        said = re.search(r"default=(.+)$", told[key])
        assert said is not None, (key, told[key])
        default, shown = said.group(1).strip('"'), parameter.default
        assert default == str(shown) or float(default) == shown, key


@each
def test_every_documented_attribute_is_there(name):
    X, y, task = data(name)
    model = fitted(make(name), X, y, task=task)
    part = inspect.getdoc(type(model)).split("Attributes\n")[1].split("Examples\n")[0]
    names = re.findall(r"^([a-z][\w, ]*_) : ", part, re.MULTILINE)
    assert {"coef_", "intercept_", "tasks_"} <= set(names)
    for key in ", ".join(names).split(", "):
        assert getattr(model, key) is not None


@each
def test_pickle_clone_and_repeat(name):
    X, y, task = data(name)
    model = fitted(make(name), X, y, task=task)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X, task=task), model.predict(X, task=task))
    np.testing.assert_array_equal(again.task_clusters_, model.task_clusters_)
    fresh = fitted(clone(model), X, y, task=task)
    np.testing.assert_array_equal(fresh.coef_, model.coef_)


@each
def test_task_column_is_task(name):
    X, y, task = data(name)
    plain = fitted(make(name), X, y, task=task)
    table = pd.DataFrame(X, columns=list("abc"))
    table.insert(1, "who", task)
    model = fitted(make(name, task_column="who"), table, y)
    np.testing.assert_array_equal(model.tasks_, list("vwxyz"))
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-12)
    np.testing.assert_array_equal(model.predict(table), plain.predict(X, task=task))


@each
def test_sparse_is_dense(name):
    X, y, task = data(name)
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    dense = fitted(make(name), X, y, task=task)
    packed = fitted(make(name), sparse.csr_array(X), y, task=task)
    assert_weights(packed, dense.coef_, dense.intercept_, atol=1e-6)


@each
def test_weights_are_repetitions(name):
    X, y, task = data(name)
    count = np.random.default_rng(1).integers(0, 3, len(y))
    count[:20] = 1
    weighted = fitted(make(name), X, y, task=task, sample_weight=count.astype(float))
    many = np.repeat(np.arange(len(y)), count)
    repeated = fitted(make(name), X[many], y[many], task=task[many])
    assert_weights(weighted, repeated.coef_, repeated.intercept_, atol=1e-6)


@each
def test_float32_stays(name):
    X, y, task = data(name, dtype=np.float32)
    small = fitted(make(name), X, y, task=task)
    assert small.coef_.dtype == small.intercept_.dtype == np.float32
    assert small.task_factor_.dtype == small.feature_factor_.dtype == np.float32
    scores = small.predict if name in REGRESSORS else small.decision_function
    assert scores(X, task=task).dtype == np.float32
    large = fitted(make(name), X.astype(float), y, task=task)
    np.testing.assert_allclose(small.coef_, large.coef_, rtol=1e-2, atol=1e-2)


@each
def test_table_of_targets_with_gaps(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    Y = X @ rng.standard_normal((3, 4)) + 0.1 * rng.standard_normal((40, 4))
    if name in CLASSIFIERS:
        Y = np.where(Y > 0, 1.0, 0.0)
    gaps = rng.random(Y.shape) < 0.3
    Y[gaps] = np.nan
    model = fitted(make(name), X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.coef_.shape == (4, 3)
    rows, column = np.nonzero(~gaps)
    long = fitted(make(name), X[rows], Y[rows, column], task=column)
    assert_weights(model, long.coef_, long.intercept_, atol=1e-5)
    if not name.startswith(("Pooled", "RandomIntercept")):
        assert model.score(X, Y) > 0.6


@each
def test_unseen_tasks(name):
    X, y, task = data(name)
    model = fitted(make(name), X, y, task=task)
    strict = fitted(make(name, unseen_task="raise"), X, y, task=task)
    other = np.where(task == "x", "new", task)
    with pytest.raises(ValueError, match=r"task .*new.*unseen_task"):
        strict.predict(X, task=other)
    method = model.predict if name in REGRESSORS else model.decision_function
    mean = X @ model.coef_.mean(axis=0) + model.intercept_.mean()
    np.testing.assert_allclose(method(X, task=other)[task == "x"], mean[task == "x"], atol=1e-9)


BAD = {
    "alpha": -1.0,
    "alpha_task": "much",
    "alpha_feature": -1.0,
    "alpha_shared": np.inf,
    "alpha_intercept": -2.0,
    "n_components": 0,
    "n_clusters": 1.5,
    "n_init": 0,
    "loss": "hinge",
    "fit_intercept": "yes",
    "standardize": 2,
    "unseen_task": "guess",
    "max_iter": 0,
    "tol": -1.0,
}


@each
def test_bad_parameters_are_named(name):
    X, y, task = data(name)
    bad = BAD.keys() & inspect.signature(getattr(baselines, name)).parameters.keys()
    assert len(bad) >= 6
    for key in bad:
        with pytest.raises((TypeError, ValueError), match=rf"\b{key}\b"):
            make(name, **{key: BAD[key]}).fit(X, y, task=task)


@each
def test_grid_search_with_a_task_column(name):
    X, y, task = data(name)
    table = pd.DataFrame(X, columns=list("abc")).assign(who=task)
    model = make(name, task_column="who")
    key = "alpha_feature" if hasattr(model, "alpha_feature") else "alpha"
    search = fitted(GridSearchCV(model, {key: [0.1, 1e6]}, cv=2, error_score="raise"), table, y)
    assert search.best_params_ == {key: 0.1}
    assert search.score(table, y) > 0.7


@each_classifier
def test_three_classes(name):
    X, y, task = data(name, classes=3, rows=30)
    seen = ~((task == "v") & (y == "top"))
    X, y, task = X[seen], y[seen], task[seen]
    model = fitted(make(name), X, y, task=task)
    assert list(model.classes_) == ["low", "middle", "top"]
    assert model.coef_.shape == (5, 3, 3)
    chance = model.predict_proba(X, task=task)
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    assert not chance[task == "v", 2].any()
    assert (model.predict(X, task=task)[task == "v"] != "top").all()
    assert model.score(X, y, task=task) > 0.6


@each_classifier
def test_squared_loss_of_a_classifier(name):
    X, y, task = data(name)
    model = fitted(make(name, loss="squared"), X, y, task=task)
    assert model.score(X, y, task=task) > 0.8
