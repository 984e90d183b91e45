"""How tasks are given, and what must not matter: form, order, weights as copies, sparsity."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from comtl import (
    BiFactorClassifier,
    BiFactorRegressor,
    BiFactorRegressorCV,
    TriFactorClassifier,
    TriFactorRegressor,
    pack_tasks,
)

MODELS = {
    "bi": BiFactorRegressor(2, random_state=0),
    "tri": TriFactorRegressor(3, 2, random_state=0),
    "bi labels": BiFactorClassifier(2, random_state=0),
    "tri labels": TriFactorClassifier(3, 2, random_state=0),
}
NAMES = np.array(["ada", "bob", "cy", "dan", "eve", "flo"])
FEATURES = ["age", "height", "size", "weight"]

each_model = pytest.mark.parametrize("kind", MODELS)
two_models = pytest.mark.parametrize("kind", ["bi", "tri labels"])


def fresh(kind, **params):
    model = MODELS[kind]
    return type(model)(**{**model.get_params(), **params})


def problem(kind, *, three=False, extra=0, seed=0):
    """Rows of six tasks of 1 to 40 rows in random order: X, target, task codes.

    With ``extra`` features, the feature step is too large for the dense solver.
    """
    rng = np.random.default_rng(seed)
    code = rng.permutation(np.repeat(np.arange(6), [1, 40, 25, 10, 30, 14]))
    X = rng.standard_normal((len(code), 4)) * [1.0, 2.0, 5.0, 0.1] + [0.0, 1.0, 20.0, 0.0]
    slopes = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 4)) / [1.0, 2.0, 5.0, 0.1]
    y = ((X - [0.0, 1.0, 20.0, 0.0]) * slopes[code]).sum(axis=1) + rng.standard_normal(len(code))
    X = np.hstack([X, rng.standard_normal((len(y), extra))])
    if "labels" not in kind:
        return X, y + 2.0 * rng.standard_normal(6)[code], code
    if three:
        return X, np.array(["no", "so", "yes"])[np.digitize(y, [-1.0, 1.0])], code
    return X, np.where(y > 0, "yes", "no"), code


def assert_same(one, other, atol=1e-10):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=atol)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=0, atol=atol)


def assert_say_same(one, other):
    """Equal labels, or numbers equal but for rounding."""
    if one.dtype.kind in "US":
        np.testing.assert_array_equal(one, other)
    else:
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


def with_column(X, labels, kind):
    """X with the labels as its column 1, in some container, and that column's name."""
    others = dict(zip(FEATURES, X.T, strict=True))
    table = {"age": others.pop("age"), "who": labels, **others}
    numbers = np.insert(X, 1, labels if labels.dtype.kind != "U" else 0.0, axis=1)
    if kind == "objects":
        numbers = numbers.astype(object)
        numbers[:, 1] = labels
    makers = {
        "pandas": lambda: (pd.DataFrame(table), "who"),
        "polars": lambda: (pl.DataFrame(table), "who"),
        "categorical": lambda: (pd.DataFrame(table).astype({"who": "category"}), "who"),
        "position": lambda: (pd.DataFrame(table), 1),
        "from the end": lambda: (pl.DataFrame(table), -4),
        "objects": lambda: (numbers, 1),
        "list": lambda: ([list(row) for row in zip(*table.values(), strict=True)], 1),
        "floats": lambda: (numbers, 1),
        "sparse": lambda: (sparse.csr_array(numbers), 1),
        "sparse columns": lambda: (sparse.csc_matrix(numbers), -4),
    }
    return makers[kind]()


@each_model
def test_every_form_of_a_text_label_is_the_same_model(kind):
    X, y, code = problem(kind)
    labels = NAMES[code]
    plain = fresh(kind).fit(X, y, task=labels)
    assert list(plain.tasks_) == list(NAMES)
    for form in ("pandas", "polars", "categorical", "position", "from the end", "objects", "list"):
        table, column = with_column(X, labels, form)
        model = fresh(kind, task_column=column).fit(table, y)
        assert_same(model, plain)
        np.testing.assert_array_equal(model.tasks_, NAMES)
        assert_say_same(model.predict(table), plain.predict(X, task=labels))
        assert model.n_features_in_ == 5
        assert model.coef_.shape == (6, 4)
        named = form not in ("objects", "list")
        names = ["age", "who", "height", "size", "weight"] if named else []
        assert list(getattr(model, "feature_names_in_", [])) == names


@two_models
def test_every_form_of_a_number_is_the_same_model(kind):
    X, y, code = problem(kind)
    codes = 10 * code - 5
    plain = fresh(kind).fit(X, y, task=codes)
    assert plain.n_features_in_ == 4
    assert list(plain.tasks_) == [-5, 5, 15, 25, 35, 45]
    for form in ("pandas", "polars", "floats", "objects", "sparse", "sparse columns"):
        table, column = with_column(X, codes, form)
        model = fresh(kind, task_column=column).fit(table, y)
        assert_same(model, plain, 1e-6 if "sparse" in form else 1e-10)
        assert_say_same(model.predict(table), plain.predict(X, task=codes))
    for labels in (codes.tolist(), codes.astype(float), pd.Series(codes), pl.Series(codes)):
        assert_same(fresh(kind).fit(X, y, task=labels), plain)


@each_model
def test_lists_of_tasks(kind):
    X, y, code = problem(kind)
    parts = [(X[code == t], y[code == t]) for t in range(6)]
    packed = pack_tasks(*zip(*parts, strict=True), tasks=NAMES)
    model = fresh(kind).fit(packed[0], packed[1], task=packed[2])
    assert_same(model, fresh(kind).fit(X, y, task=NAMES[code]))


@each_model
@pytest.mark.parametrize("setting", [{}, {"three": True}, {"extra": 36}])
def test_order_of_rows_does_not_matter(kind, setting):
    X, y, code = problem(kind, **setting)
    order = np.random.default_rng(1).permutation(len(y))
    one = fresh(kind).fit(X, y, task=code)
    other = fresh(kind).fit(X[order], y[order], task=code[order])
    assert_same(one, other, 1e-8)


@each_model
def test_one_task_is_no_task(kind):
    X, y, code = problem(kind)
    X, y = X[code == 1], y[code == 1]
    alone = fresh(kind).fit(X, y)
    named = fresh(kind).fit(X, y, task=np.repeat("only", len(y)))
    assert_same(alone, named)
    assert alone.coef_.shape == (1, 4)
    assert list(named.tasks_) == ["only"]
    np.testing.assert_array_equal(alone.predict(X), named.predict(X))
    np.testing.assert_array_equal(alone.predict(X), named.predict(X, task=["only"] * len(y)))


@each_model
def test_several_tasks_need_a_task_at_predict(kind):
    X, y, code = problem(kind)
    model = fresh(kind).fit(X, y, task=code)
    methods = [model.predict, lambda X: model.score(X, y)]
    if "labels" in kind:
        methods += [model.predict_proba, model.decision_function, model.predict_log_proba]
    for method in methods:
        with pytest.raises(ValueError, match=r"task= .*enable_metadata_routing.*task_column"):
            method(X)


@each_model
@pytest.mark.parametrize("three", [False, True])
def test_unseen_task(kind, three):
    X, y, code = problem(kind, three=three)
    model = fresh(kind).fit(X, y, task=code)
    strict = fresh(kind, unseen_task="raise").fit(X, y, task=code)
    task = np.where(code == 3, 77, code)
    with pytest.raises(ValueError, match=r"task .*77.*unseen_task"):
        strict.predict(X, task=task)
    np.testing.assert_array_equal(strict.predict(X, task=code), model.predict(X, task=code))
    unseen = task == 77
    said = model.predict(X, task=task)
    np.testing.assert_array_equal(said[~unseen], model.predict(X, task=code)[~unseen])
    if three and "labels" in kind:
        seen = model._linear.columns.index >= 0  # a class's mean is over the tasks that saw it
        weights = (model.coef_ * seen[..., None]).sum(axis=0) / seen.sum(axis=0)[:, None]
        offsets = (model.intercept_ * seen).sum(axis=0) / seen.sum(axis=0)
    else:
        weights, offsets = model.coef_.mean(axis=0), model.intercept_.mean(axis=0)
    expected = X[unseen] @ weights.T + offsets
    if "labels" in kind:
        decisions = model.decision_function(X, task=task)[unseen]
        np.testing.assert_allclose(decisions, expected, atol=1e-9)
        assert np.isin(said, model.classes_).all()
    else:
        np.testing.assert_allclose(said[unseen], expected, atol=1e-9)
    with pytest.warns(UserWarning, match="same type"):
        model.predict(X, task=np.full(len(y), "3"))


@each_model
@pytest.mark.parametrize("setting", [{}, {"three": True}, {"extra": 36}])
def test_weights_are_copies(kind, setting):
    X, y, code = problem(kind, **setting)
    times = np.random.default_rng(2).integers(0, 4, len(y))
    times[np.unique(code, return_index=True)[1]] += 1
    weighted = fresh(kind).fit(X, y, task=code, sample_weight=times)
    again = [np.repeat(each, times, axis=0) for each in (X, y, code)]
    copied = fresh(kind).fit(*again)
    assert_same(weighted, copied, 1e-6)
    scores = weighted.score(X, y, task=code, sample_weight=times)
    assert scores == pytest.approx(copied.score(*again))
    plain = fresh(kind).fit(X, y, task=code)
    assert np.abs(plain.coef_ - weighted.coef_).max() > 1e-3


def test_a_task_of_no_weight_is_unknown():
    X, y, code = problem("bi")
    model = fresh("bi", unseen_task="raise").fit(X, y, task=code, sample_weight=code != 2)
    assert list(model.tasks_) == [0, 1, 3, 4, 5]
    with pytest.raises(ValueError, match="never saw"):
        model.predict(X, task=code)


@two_models
@pytest.mark.parametrize("form", ["csr_array", "csc_matrix", "coo_array", "lil_matrix"])
def test_sparse_is_dense(kind, form):
    X, y, code = problem(kind, extra=36 if form == "csr_array" else 0)
    X = np.where(np.random.default_rng(3).random(X.shape) < 0.5, X, 0.0)
    packed = getattr(sparse, form)(X)
    dense = fresh(kind).fit(X, y, task=code)
    model = fresh(kind).fit(packed, y, task=code)
    assert_same(model, dense, 1e-6)
    assert model.solver_["F"] == ("cg" if form == "csr_array" else "dense")
    assert_say_same(model.predict(packed, task=code), dense.predict(X, task=code))


def test_sparse_is_dense_in_the_search():
    X, y, code = problem("bi")
    X = np.where(np.random.default_rng(3).random(X.shape) < 0.5, X, 0.0)
    search = BiFactorRegressorCV(2, alphas=(0.1, 1.0), cv=2, random_state=0)
    scores = search.fit(X, y, task=code).cv_results_["mean_test_score"]
    for form in (sparse.csr_array, sparse.coo_matrix):
        search.fit(form(X), y, task=code)
        np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores, rtol=1e-6)


@two_models
def test_the_callers_arrays_stay(kind, tmp_path):
    X, y, code = problem(kind)
    np.save(tmp_path / "X.npy", X)
    held, weight = np.load(tmp_path / "X.npy", mmap_mode="r"), np.linspace(0.5, 2.0, len(y))
    packed = sparse.csr_array(X)
    arrays = [y, code, weight, held, packed.data, packed.indices, packed.indptr]
    copies = [a.copy() for a in arrays]
    for array in (y, code, weight):
        array.flags.writeable = False
    model = fresh(kind).fit(held, y, task=code, sample_weight=weight)
    model.predict(held, task=code)
    model.adapt(held, y, task=code + 10, sample_weight=weight)
    fresh(kind).fit(packed, y, task=code).predict(packed, task=code)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
