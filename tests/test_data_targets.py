"""Targets, classes and weights: what is read and what is refused."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from comtl import HierarchicalClassifier, HierarchicalRegressor, MultitaskClassifier
from comtl.evaluation import compare
from comtl.rows.reading import encode_tasks
from small_tables import X3, Y3, train

# ---- y -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "error", "match"),
    [
        (None, ValueError, "requires y to be passed, but the target y is None"),
        ([1.0, np.nan, 2.0], ValueError, "Input y contains NaN"),
        (pl.Series([1.0, None, 2.0]), ValueError, "Input y contains NaN"),
        (pd.Series([1, None, 2], dtype="Int64"), ValueError, "Input y contains NaN"),
        ([1.0, np.inf, 2.0], ValueError, "Input y contains infinity"),
        ([[1.0], [np.inf], [2.0]], ValueError, "Input y contains infinity"),
        (["a", "b", "c"], ValueError, "y cannot be read as numbers.*classifier"),
        (pd.DataFrame({"m": [1.0, 2, 3], "f": list("abc")}), ValueError, "y has columns.*'f'"),
        ([1.0, 2.0], ValueError, "inconsistent numbers of samples"),
        (np.ones((3, 2, 2)), ValueError, "dim 3"),
        (np.ones((3, 0)), ValueError, r"0 feature\(s\)"),
        (sparse.csr_array(X3), TypeError, "[Ss]parse"),
        (np.array([[1, np.nan], [2, np.nan], [3, np.nan]]), ValueError, r"observed value: \[1\]"),
        (pd.DataFrame({"m": Y3, "f": [np.nan] * 3}), ValueError, r"observed value: \['f'\]"),
        (pl.DataFrame({"m": Y3, "f": [None] * 3}), ValueError, r"observed value: \['f'\]"),
    ],
)
def test_refused_targets(y, error, match):
    with pytest.raises(error, match=match):
        train(X3, y)


def test_column_vector_is_one_task(recwarn):
    data = train(X3, Y3[:, None])
    assert data.multi_output and data.tasks.tolist() == [0] and data.rows.tolist() == [0, 1, 2]
    assert not recwarn.list


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, lambda d: pd.DataFrame(d).convert_dtypes()]
)
def test_frame_of_targets(make):
    Y = make({"z": [1.0, None, 3.0], "a": [4, 5, None], "k": [7, 8, 9]})
    data = train(X3, Y)
    assert data.tasks.tolist() == ["z", "a", "k"]
    assert data.offsets.tolist() == [0, 2, 4, 7]
    assert data.rows.tolist() == [0, 2, 0, 1, 0, 1, 2]
    assert data.y.tolist() == [1, 3, 4, 5, 7, 8, 9]
    assert encode_tasks(["k", "z", "a"], data.tasks).tolist() == [2, 0, 1]


@pytest.mark.parametrize("kind", [HierarchicalRegressor, HierarchicalClassifier])
@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pl.DataFrame.to_arrow, np.asarray, np.ma.array]
)
def test_one_column_where_rows_have_tasks(kind, make):
    rng = np.random.default_rng(0)
    X, task, weights = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20), rng.uniform(1, 2, 60)
    y = (X[:, 0] + rng.normal(size=60) > task).astype(int)
    column, weight = ({"y": values} for values in (y, weights))
    if make is pl.DataFrame.to_arrow:
        column, weight = pl.DataFrame(column), pl.DataFrame(weight)
    elif "array" in make.__name__:
        column, weight = y[:, None], weights[:, None]
    column, weight = make(column), make(weight)
    model = kind().fit(X, column, task=task, sample_weight=weight)
    plain = kind().fit(X, y, task=task, sample_weight=weights)
    assert_array_equal(model.coef_, plain.coef_)
    named = kind(task_column=2).fit(np.column_stack([X, task]), column, sample_weight=weight)
    assert_array_equal(named.coef_, plain.coef_)
    score = plain.score(X, y, task=task, sample_weight=weights)
    assert model.score(X, column, task=task, sample_weight=weight) == score
    compared = [compare(kind(), X, one, task).overall for one in (y, column)]
    assert compared[0] == compared[1]


@pytest.mark.parametrize("kind", [HierarchicalRegressor, MultitaskClassifier])
def test_a_fit_without_tasks_says_so(kind):
    X, y = np.arange(40.0)[:, None], np.arange(40) // 7 % 2
    with pytest.warns(UserWarning, match="given no tasks and takes all rows for one task") as told:
        model = kind().fit(X, y)
    assert told[0].filename == __file__ and model.tasks_.tolist() == [0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        kind().fit(X, y, task=np.zeros(40))
        kind().fit(X, np.stack([y, 1 - y], axis=1))


def test_two_dimensional_y_refuses_a_task():
    with pytest.raises(ValueError, match=r"y is two-dimensional.*task_column"):
        train(X3, np.ones((3, 2)), task=[0, 1, 1])
    with pytest.raises(ValueError, match=r"y is two-dimensional.*task_column"):
        train(X3, np.ones((3, 2)), column=0)


def test_sparse_x_with_two_dimensional_y():
    data = train(sparse.csc_array(X3), np.array([[1, 2], [np.nan, 3], [4, np.nan]]))
    assert type(data.X) is sparse.csr_array and data.rows.tolist() == [0, 2, 0, 1]


# ---- classes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["no", "yes", "no"], ["no", "yes"]),
        (np.array(["no", "yes", "no"], dtype=object), ["no", "yes"]),
        (pd.Series(["no", "yes", "no"]), ["no", "yes"]),
        (pd.Series(pd.Categorical(["no", "yes", "no"], categories=["yes", "no"])), ["no", "yes"]),
        (pl.Series(["no", "yes", "no"]), ["no", "yes"]),
        ([3, 8, 3], [3, 8]),
        ((3, 8, 3), [3, 8]),
        (np.array([3.0, 8.0, 3.0]), [3.0, 8.0]),
        (pd.Series([3, 8, 3], dtype="Int64"), [3, 8]),
        (np.array([3, 8, 3], dtype=object), [3, 8]),
        ([False, True, False], [False, True]),
        (pl.Series([False, True, False]), [False, True]),
    ],
)
def test_class_labels(y, classes):
    data = train(X3, y, task=["b", "a", "b"], classification=True)
    assert data.classes.tolist() == classes and data.y.tolist() == [1, 0, 0]
    assert data.y.dtype.kind == "i" and data.weights.dtype == np.float64


def test_tasks_share_the_union_of_classes():
    data = train(X3, ["x", "y", "z"], task=[0, 1, 2], classification=True)
    assert data.classes.tolist() == ["x", "y", "z"] and data.y.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("y", "error", "match"),
    [
        ([0.5, 1.2, 3.3], ValueError, "Unknown label type"),
        ([0.0, np.nan, 1.0], ValueError, "y contains NaN"),
        ([0.0, np.inf, 1.0], ValueError, "y contains infinity"),
        (["a", None, "b"], ValueError, "y contains NaN or None.*row 1"),
        (pd.Series(["a", None, "b"]), ValueError, "y contains NaN"),
        (pl.Series(["a", None, "b"]), ValueError, "y contains NaN"),
        (["a", 1, "b"], TypeError, "y must hold labels of one kind"),
        ([1, 1, 1], ValueError, "only one class, 1"),
        ([[1], [1], [1]], ValueError, "only one class"),
        ([[0, 1], [1, 2], [1, 1]], ValueError, r"binary.*got 3: \[0, 1, 2\]"),
        ([[0.5, 1], [1, 2.5], [1, 1]], ValueError, "Unknown label type"),
        (np.ones((3, 2, 2)), ValueError, "one or two dimensions"),
        (sparse.csr_array(X3), ValueError, "y must be a dense array"),
        (np.ones((3, 0)), ValueError, r"shape \(3, 0\)"),
        (np.array([1, 1j, 1]), ValueError, "Complex data not supported"),
        ([[0, None], [1, None], [0, None]], ValueError, r"observed value: \[1\]"),
        ([[None], [None], [None]], ValueError, r"observed value: \[0\]"),
        ([0, 1], ValueError, "inconsistent"),
    ],
)
def test_refused_classes(y, error, match):
    with pytest.raises(error, match=match):
        train(X3, y, classification=True)


@pytest.mark.parametrize(
    ("Y", "classes"),
    [
        (np.array([[0, 1], [np.nan, 0], [1, np.nan]]), [0, 1]),
        (np.array([["n", "y"], [None, "n"], ["y", np.nan]], dtype=object), ["n", "y"]),
        ([["n", "y"], [None, "n"], ["y", None]], ["n", "y"]),
        ([[False, True], [None, False], [True, None]], [False, True]),
        (pd.DataFrame({"a": ["n", None, "y"], "b": ["y", "n", None]}), ["n", "y"]),
        (pd.DataFrame({"a": ["n", None, "y"], "b": ["y", "n", None]}, dtype="string"), ["n", "y"]),
        (pd.DataFrame({"a": [0, None, 1], "b": [1, 0, None]}, dtype="Int64"), [0, 1]),
        (
            pd.DataFrame({"a": [False, None, True], "b": [True, False, None]}, dtype="boolean"),
            [0, 1],
        ),
        (pl.DataFrame({"a": ["n", None, "y"], "b": ["y", "n", None]}), ["n", "y"]),
        (pl.DataFrame({"a": [0, None, 1], "b": [1, 0, None]}), [0, 1]),
        (pl.DataFrame({"a": [False, None, True], "b": [True, False, None]}), [0, 1]),
    ],
)
def test_two_dimensional_classes(Y, classes):
    data = train(X3, Y, classification=True)
    assert data.classes.tolist() == classes
    assert data.y.tolist() == [0, 1, 1, 0] and data.rows.tolist() == [0, 2, 0, 1]


# ---- sample_weight -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weights",
    [
        [2, 1, 3],
        (2.0, 1.0, 3.0),
        np.array([2, 1, 3], dtype=np.float32),
        pd.Series([2, 1, 3], index=[5, 5, 5]),
        pl.Series([2.0, 1.0, 3.0]),
    ],
)
def test_weights(weights):
    data = train(X3, Y3, task=[1, 0, 1], sample_weight=weights)
    assert data.weights.tolist() == [1, 2, 3] and data.weights.dtype == np.float64


def test_number_as_weight():
    assert train(X3, Y3, sample_weight=2).weights.tolist() == [2, 2, 2]
    assert train(X3, Y3[:, None], sample_weight=2.5).weights.tolist() == [2.5, 2.5, 2.5]
    assert train(X3, Y3).weights.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ([1, np.nan, 1], "sample_weight contains NaN"),
        ([1, np.inf, 1], "sample_weight contains infinity"),
        (np.nan, "sample_weight contains NaN"),
        ([1, -1, 1], "sample_weight holds negative"),
        (-1.0, "sample_weight holds negative"),
        ([0, 0, 0], "sample_weight is zero"),
        (0, "sample_weight is zero"),
        ([1, 1], r"sample_weight has the shape \(2,\), expected \(3,\)"),
        (np.ones((3, 2)), "Sample weights must be 1D array or scalar"),
        (np.ones((3, 1)), "Sample weights must be 1D array or scalar"),
    ],
)
def test_refused_weights(weights, match):
    with pytest.raises(ValueError, match=match):
        train(X3, Y3, sample_weight=weights)


def test_zero_weight_is_absence():
    data = train(X3, Y3, task=["b", "a", "b"], sample_weight=[0, 1, 2])
    without = train(X3[1:], Y3[1:], task=["a", "b"], sample_weight=[1, 2])
    for name in ("X", "y", "weights", "offsets", "tasks"):
        assert_array_equal(getattr(data, name), getattr(without, name))
    assert train(X3, Y3, task=["b", "a", "b"], sample_weight=[1, 0, 2]).tasks.tolist() == ["b"]
    with pytest.raises(ValueError, match="class"):
        train(X3, [0, 1, 0], sample_weight=[1, 0, 1], classification=True)
    data = train(X3, [0, 1, 2], sample_weight=[1, 0, 1], classification=True)
    assert data.classes.tolist() == [0, 2]


def test_weights_of_cells():
    Y = np.array([[1.0, np.nan], [2.0, 5.0], [3.0, 6.0]])
    W = np.array([[1.0, 9.0], [0.0, 2.0], [3.0, 4.0]])
    data = train(X3, Y, sample_weight=W)
    assert data.y.tolist() == [1, 3, 5, 6] and data.weights.tolist() == [1, 3, 2, 4]
    data = train(X3, Y, sample_weight=W * [0, 1])
    assert data.tasks.tolist() == [1] and data.offsets.tolist() == [0, 2]
    data = train(X3, Y, sample_weight=[1, 0, 2])
    assert data.rows.tolist() == [0, 2, 2]
    with pytest.raises(ValueError, match="sample_weight is zero for every observed"):
        train(X3, Y[:, 1:], sample_weight=[1, 0, 0])
    with pytest.raises(ValueError, match=r"or that of y, \(3, 2\)"):
        train(X3, Y, sample_weight=np.ones((3, 3)))
