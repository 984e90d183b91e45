"""Validation: every container, every refusal, and the grouping by task."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator

from comtl.data import TaskData, encode_tasks, pack_tasks, read_rows, read_training


class Model(BaseEstimator):
    def __init__(self, task_column=None):
        self.task_column = task_column


def train(X, y, task=None, column=None, **kwargs) -> TaskData:
    return read_training(Model(column), X, y, task, **kwargs)


X3 = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
Y3 = np.array([1.0, 2.0, 3.0])
SPARSE = [sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.dok_array]


# ---- grouping ------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(-3, 3), st.floats(-9, 9), st.sampled_from([0.0, 1.0, 2.5])),
        min_size=1,
        max_size=30,
    ).filter(lambda rows: any(w for *_, w in rows)),
    kind=st.sampled_from(["int", "str", "float", "bool", "object"]),
    make=st.sampled_from([np.asarray, sparse.csr_array, sparse.csc_matrix]),
    in_column=st.booleans(),
)
def test_cells_of_a_task_are_its_rows_in_order(rows, kind, make, in_column):
    ids, y, weights = (np.array(part) for part in zip(*rows, strict=True))
    labels = ids.astype(kind)
    dense = np.column_stack([np.arange(len(y)) + 1.0, y])
    column = None
    if in_column and kind in ("int", "float", "bool"):
        dense, column = np.column_stack([dense[:, :1], labels, dense[:, 1:]]), 1
    X = make(dense)
    before = [X.copy(), y.copy(), weights.copy(), labels.copy()]

    task = None if column == 1 else labels
    data = train(X, y, task, column, sample_weight=weights)

    for now, then in zip((X, y, weights, labels), before, strict=True):
        assert_array_equal(
            now.toarray() if sparse.issparse(now) else now,
            then.toarray() if sparse.issparse(then) else then,
        )
    kept = weights != 0
    keys = labels.astype(int) if column == 1 else labels
    assert_array_equal(data.tasks, np.unique(keys[kept]))
    features = data.X.toarray() if sparse.issparse(data.X) else data.X
    assert data.rows is None and data.offsets.dtype == np.intp
    assert data.offsets[0] == 0 and data.offsets[-1] == data.n_cells == kept.sum()
    for t, label in enumerate(data.tasks):
        cell = slice(data.offsets[t], data.offsets[t + 1])
        mine = kept & (keys == label)
        assert mine.any()
        assert_array_equal(features[cell, 0], np.flatnonzero(mine) + 1.0)
        assert_array_equal(data.y[cell], y[mine])
        assert_array_equal(data.weights[cell], weights[mine])
        assert (data.codes[cell] == t).all()


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 6).flatmap(
        lambda T: st.lists(
            st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=T, max_size=T),
            min_size=1,
            max_size=8,
        )
    ),
    st.booleans(),
)
def test_two_dimensional_y_is_task_major(rows, per_cell):
    Y = np.array(rows)
    Y[0] = 5.0
    X = np.arange(len(Y))[::-1, None] + 0.5
    weights = (
        np.arange(1.0, Y.size + 1).reshape(Y.shape) if per_cell else np.arange(1.0, len(Y) + 1)
    )
    data = train(X, Y, sample_weight=weights)
    assert data.X is X and data.multi_output
    assert_array_equal(data.tasks, np.arange(Y.shape[1]))
    wide = weights if per_cell else np.repeat(weights[:, None], Y.shape[1], axis=1)
    for t in range(Y.shape[1]):
        cell = slice(data.offsets[t], data.offsets[t + 1])
        seen = np.flatnonzero(~np.isnan(Y[:, t]))
        assert_array_equal(data.rows[cell], seen)
        assert_array_equal(data.y[cell], Y[seen, t])
        assert_array_equal(data.weights[cell], wide[seen, t])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_sorted_rows_are_not_copied(dtype, make):
    X, y = make(X3.astype(dtype)), Y3.astype(dtype)
    data = train(X, y, task=[0, 0, 1], sample_weight=np.ones(3, dtype=dtype))
    arrays = (X.data, data.X.data) if sparse.issparse(X) else (X, data.X)
    assert np.shares_memory(*arrays) and np.shares_memory(data.y, y)
    assert data.X.dtype == data.y.dtype == data.weights.dtype == dtype
    assert data.n_features == 2 and data.n_tasks == 2


@pytest.mark.parametrize("dtype", [np.int32, np.float16, bool, object])
def test_other_types_become_float64(dtype):
    data = train(X3.astype(dtype), [1, 2, 3])
    assert data.X.dtype == data.y.dtype == np.float64


def test_no_task_is_one_task():
    data = train(X3, Y3)
    assert data.X is X3 and data.tasks.tolist() == [0] and data.offsets.tolist() == [0, 3]
    assert not data.multi_output and data.classes is None
    X, labels = read_rows(Model(), X3)
    assert X is X3 and labels is None


# ---- task labels ---------------------------------------------------------------------------------

LABELS = {
    "list of str": ["b", "a", "b"],
    "tuple": ("b", "a", "b"),
    "str": np.array(["b", "a", "b"]),
    "object": np.array(["b", "a", "b"], dtype=object),
    "numpy strings": np.array(["b", "a", "b"], dtype=np.dtypes.StringDType()),
    "Series": pd.Series(["b", "a", "b"], index=[7, 7, 7]),
    "Series of objects": pd.Series(["b", "a", "b"], dtype=object),
    "nullable string": pd.Series(["b", "a", "b"], dtype="string"),
    "arrow string": pd.Series(["b", "a", "b"], dtype="string[pyarrow]"),
    "Categorical": pd.Categorical(["b", "a", "b"], categories=["z", "b", "a"]),
    "categorical Series": pd.Series(pd.Categorical(["b", "a", "b"], categories=["z", "b", "a"])),
    "Index": pd.Index(["b", "a", "b"]),
    "polars": pl.Series(["b", "a", "b"]),
    "polars Categorical": pl.Series(["b", "a", "b"], dtype=pl.Categorical),
    "polars Enum": pl.Series(["b", "a", "b"], dtype=pl.Enum(["z", "b", "a"])),
}
NUMBERS = {
    "list": [7, 3, 7],
    "numpy list": [np.int64(7), 3, 7.0],
    "int8": np.array([7, 3, 7], dtype=np.int8),
    "uint64": np.array([7, 3, 7], dtype=np.uint64),
    "float": np.array([7.0, 3.0, 7.0]),
    "float32": np.array([7, 3, 7], dtype=np.float32),
    "object": np.array([7, 3, 7], dtype=object),
    "nullable": pd.Series([7, 3, 7], dtype="Int64"),
    "nullable array": pd.array([7, 3, 7], dtype="Int64"),
    "categorical": pd.Series(pd.Categorical([7, 3, 7], categories=[1, 7, 3])),
    "polars": pl.Series([7, 3, 7]),
    "polars float": pl.Series([7.0, 3.0, 7.0]),
}
BOOLS = {
    "list": [True, False, True],
    "bool": np.array([True, False, True]),
    "object": np.array([True, False, True], dtype=object),
    "nullable": pd.Series([True, False, True], dtype="boolean"),
    "polars": pl.Series([True, False, True]),
}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [pytest.param(v, ["a", "b"], id=f"str {k}") for k, v in LABELS.items()]
    + [pytest.param(v, [3, 7], id=f"int {k}") for k, v in NUMBERS.items()]
    + [pytest.param(v, [False, True], id=f"bool {k}") for k, v in BOOLS.items()],
)
def test_task_labels(labels, expected):
    data = train(X3, Y3, task=labels)
    assert data.tasks.tolist() == expected and data.tasks.dtype.kind in "Uib"
    assert data.y.tolist() == [2.0, 1.0, 3.0]
    assert encode_tasks(labels, data.tasks).tolist() == [1, 0, 1]
    _, read = read_rows(Model(), X3, task=labels)
    assert_array_equal(data.tasks[[1, 0, 1]], read)


@pytest.mark.parametrize(
    ("labels", "error", "match"),
    [
        (["a", None, "b"], ValueError, "task has 1 missing labels.*row 1"),
        (["a", np.nan, "b"], ValueError, "missing"),
        (
            np.array(["a", np.nan, "b"], dtype=np.dtypes.StringDType(na_object=np.nan)),
            ValueError,
            "missing",
        ),
        ([1.0, np.nan, 2.0], ValueError, "missing"),
        (pd.Series(["a", None, "b"]), ValueError, "missing"),
        (pd.Series(["a", pd.NA, "b"], dtype="string"), ValueError, "missing"),
        (pd.Series([1, None, 2], dtype="Int64"), ValueError, "missing"),
        (pd.array([1, None, 2], dtype="Int64"), ValueError, "missing"),
        (pd.Series(pd.Categorical(["a", None, "b"])), ValueError, "missing"),
        (pd.Categorical(["a", None, "b"]), ValueError, "missing"),
        (pl.Series(["a", None, "b"]), ValueError, "missing"),
        (pl.Series([1, None, 2]), ValueError, "missing"),
        (pl.Series([1.0, float("nan"), 2.0]), ValueError, "missing"),
        ([1.0, np.inf, 2.0], ValueError, "whole numbers"),
        ([1.0, 1.5, 2.0], ValueError, "task holds floats.*whole numbers"),
        (np.array([1.0, 2.0**60, 2.0]), ValueError, "whole numbers"),
        ([1, "a", 2], TypeError, "task must hold labels of one kind.*int, str"),
        (pd.Series([1, "a", 2], dtype=object), TypeError, "one kind"),
        (np.array([1, 2**63, 2], dtype=np.uint64), TypeError, "64 bits"),
        ([1, 2**80, 2], TypeError, "64 bits"),
        (np.array(["2020-01-01"] * 3, dtype="M8[D]"), TypeError, r"astype\(str\)"),
        ([[1], [2], [3]], ValueError, "one-dimensional"),
        (np.ones((3, 1)), ValueError, "one-dimensional"),
        (pd.DataFrame({"t": [1, 2, 3]}), ValueError, "one-dimensional"),
        ("a", ValueError, "one-dimensional"),
        ([1, 2], ValueError, "task has 2 labels, but X has 3 rows"),
    ],
)
def test_refused_task_labels(labels, error, match):
    with pytest.raises(error, match=match):
        train(X3, Y3, task=labels)
    with pytest.raises(error, match=match):
        read_rows(Model(), X3, task=labels)


def test_whole_numbers_match_as_integers_and_floats():
    assert encode_tasks(np.array([1.0, 5.0]), np.array([1, 2])).tolist() == [0, -1]
    assert encode_tasks(np.array([2, 1]), np.array([1.0, 2.0])).tolist() == [1, 0]
    assert encode_tasks(np.array([1.0, 0.0]), np.array([False, True])).tolist() == [1, 0]
    fitted = Model(0)
    assert read_training(fitted, np.column_stack([[2, 1, 2], X3]), Y3).tasks.tolist() == [1, 2]
    _, labels = read_rows(fitted, np.array([[2, 1, 1]], dtype=object))
    assert labels.tolist() == [2]


def test_encode_tasks():
    assert encode_tasks(["b", "zz", "a", ""], ["b", "a"]).tolist() == [0, -1, 1, -1]
    assert encode_tasks(["1", "2"], [1, 2]).tolist() == [-1, -1]
    assert encode_tasks([1, 2], []).tolist() == [-1, -1]
    assert encode_tasks([], [1, 2]).tolist() == []


@settings(deadline=None)
@given(st.lists(st.integers(-5, 5)), st.lists(st.integers(-5, 5), unique=True, min_size=1))
def test_encode_tasks_finds_every_label(labels, tasks):
    expected = [tasks.index(label) if label in tasks else -1 for label in labels]
    assert encode_tasks(labels, tasks).tolist() == expected
    assert (
        encode_tasks(np.array(labels, dtype=str), np.array(tasks, dtype=str)).tolist() == expected
    )


# ---- the task column -----------------------------------------------------------------------------


def frame(make, **columns):
    return make({"age": [1.0, 2.0, 3.0], "school": ["b", "a", "b"], "size": [4, 5, 6], **columns})


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("column", ["school", 1, -2, np.int64(1)])
@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b"],
        pd.Categorical(["b", "a", "b"], categories=["z", "b", "a"]),
        pl.Series(["b", "a", "b"], dtype=pl.Categorical),
        pl.Series(["b", "a", "b"], dtype=pl.Enum(["a", "b", "z"])),
    ],
)
def test_column_of_a_frame(make, column, labels):
    if make is pl.DataFrame and type(labels) is pd.Categorical:
        labels = pl.Series(labels.tolist())
    X = frame(make, school=labels)
    before = X.clone() if make is pl.DataFrame else X.copy()
    model = Model(column)
    data = read_training(model, X, Y3)
    assert X.equals(before)
    assert data.tasks.tolist() == ["a", "b"] and data.y.tolist() == [2.0, 1.0, 3.0]
    assert_array_equal(data.X, [[2, 5], [1, 4], [3, 6]])
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["age", "school", "size"]
    features, labels = read_rows(model, X[:2])
    assert_array_equal(features, [[1, 4], [2, 5]])
    assert labels.tolist() == ["b", "a"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_columns_of_many_types(make):
    X = frame(make, flag=[True, False, True], small=np.array([1, 2, 3], dtype=np.float32))
    assert_array_equal(train(X, Y3, column="school").X[0], [2, 5, 0, 2])
    only32 = make({"a": np.ones(3, dtype=np.float32), "b": np.ones(3, dtype=np.float32)})
    assert train(only32, Y3).X.dtype == np.float32
    assert (
        train(
            only32.cast({"a": pl.Float64}) if make is pl.DataFrame else only32.astype({"a": float}),
            Y3,
        ).X.dtype
        == np.float64
    )


def test_pandas_columns_of_numbers_in_disguise():
    X = pd.DataFrame(
        {
            0: pd.Series([1, 2.5, 3], dtype=object),
            1: ["b", "a", "b"],
            2: pd.array([1, 2, 3], dtype="Int64"),
            3: pd.array([True, False, True], dtype="boolean"),
        }
    )
    assert_array_equal(train(X, Y3, column=1).X[0], [2.5, 2, 0])
    assert_array_equal(train(X.drop(columns=1), Y3).X[1], [2.5, 2, 0])


def test_sparse_pandas_frame_stays_sparse():
    X = pd.DataFrame.sparse.from_spmatrix(sparse.csr_array(X3), columns=["a", "b"])
    X["task"] = [1, 0, 1]
    data = train(X, Y3, column="task")
    assert type(data.X) is sparse.csr_array and data.X.toarray()[0].tolist() == [2, 20]


@pytest.mark.parametrize("column", [1, -2])
def test_column_of_arrays(column):
    mixed = [[1.0, "b", 4], [2.0, "a", 5], [3.0, "b", 6]]
    for X in (mixed, np.array(mixed, dtype=object), np.array(mixed)):
        model = Model(column)
        data = read_training(model, X, Y3)
        assert data.tasks.tolist() == ["a", "b"] and model.n_features_in_ == 3
        assert_array_equal(data.X, [[2, 5], [1, 4], [3, 6]])
    numeric = np.column_stack([Y3, [8, 7, 8], X3[:, 1]]).astype(np.float32)
    data = train(numeric, Y3, column=-2)
    assert data.tasks.tolist() == [7, 8] and data.tasks.dtype == np.int64
    assert data.X.dtype == np.float32


@pytest.mark.parametrize("make", SPARSE)
@pytest.mark.parametrize("column", [0, -3])
def test_column_of_sparse_matrices(make, column, monkeypatch):
    X = make(np.column_stack([[1.0, 0.0, 1.0], X3]))
    expected = X3[[1, 0, 2]]
    dense = {}
    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        dense[kind] = kind.toarray

        def guarded(self, *args, kind=kind, **kwargs):
            assert self.shape[1] == 1, "X was made dense"
            return dense[kind](self, *args, **kwargs)

        monkeypatch.setattr(kind, "toarray", guarded)
        monkeypatch.setattr(kind, "todense", guarded)
    data = train(X, Y3, column=column)
    by_task = train(X, Y3, task=[1, 0, 1])
    rows, labels = read_rows(Model(column), X)
    monkeypatch.undo()
    assert labels.tolist() == [1, 0, 1] and data.tasks.tolist() == [0, 1]
    assert type(data.X) is type(by_task.X) is type(rows) is sparse.csr_array
    assert_array_equal(data.X.toarray(), expected)
    assert_array_equal(by_task.X.toarray()[:, 1:], expected)
    assert_array_equal(rows.toarray(), X3)


def test_sparse_input_in_disorder_is_not_touched():
    X = sparse.csr_array((np.ones(4), np.array([2, 0, 1, 1]), np.array([0, 2, 4])), shape=(2, 3))
    X.indices = X.indices.astype(np.int64)
    X.indptr = X.indptr.astype(np.int64)
    indices, values = X.indices.copy(), X.data.copy()
    data = train(X, [1.0, 2.0], column=1)
    assert data.tasks.tolist() == [0, 2]
    assert_array_equal(data.X.toarray(), [[1, 1], [0, 0]])
    assert_array_equal(X.indices, indices)
    assert_array_equal(X.data, values)


@pytest.mark.parametrize(
    ("X", "column", "error", "match"),
    [
        (
            frame(pd.DataFrame),
            "shool",
            ValueError,
            "task_column='shool' is missing.*'school'.*task=",
        ),
        (
            frame(pl.DataFrame),
            "shool",
            ValueError,
            "task_column='shool' is missing.*'school'.*task=",
        ),
        (X3, "school", ValueError, "no column names.*frame.*integer"),
        (sparse.csr_array(X3), "school", ValueError, "no column names"),
        (X3, 2, ValueError, "task_column=2 is missing.*2 columns.*-2 to 1"),
        (X3, -3, ValueError, "is missing"),
        (X3, 1.0, TypeError, "task_column must be None"),
        (X3, True, TypeError, "task_column must be None"),
        (X3[:, :1], 0, ValueError, "nothing but the task column"),
        (sparse.csr_array(X3[:, :1]), 0, ValueError, "nothing but the task column"),
        (pd.DataFrame({"t": [1, 2, 3]}), "t", ValueError, "nothing but the task column"),
        (X3[:, 0], 0, ValueError, "Reshape your data"),
        (X3 + 0.5, 0, ValueError, "The task column 0 of X holds floats"),
        (frame(pd.DataFrame, age=["x", "y", "z"]), "school", ValueError, "'age'. Encode them"),
        (frame(pl.DataFrame, age=["x", "y", "z"]), "school", ValueError, "'age'. Encode them"),
        (frame(pd.DataFrame), None, ValueError, "numeric nor boolean: 'school'.*task_column"),
        (frame(pl.DataFrame), None, ValueError, "numeric nor boolean: 'school'.*task_column"),
        (frame(pd.DataFrame, age=[1, "x", 2]), "school", ValueError, "boolean: 'age'"),
        (np.array([["a", 1], ["b", 2], ["a", 3]], dtype=object), None, ValueError, "boolean: 0"),
        (frame(pd.DataFrame, age=[1, np.nan, 2]), "school", ValueError, "Input X contains NaN"),
        (frame(pl.DataFrame, age=[1, None, 2]), "school", ValueError, "Input X contains NaN"),
        (np.array([[0, np.inf]] * 3), 0, ValueError, "Input X contains infinity"),
        (sparse.csr_array([[0, np.nan]] * 3), 0, ValueError, "Input X contains NaN"),
        (frame(pd.DataFrame, school=["a", None, "b"]), "school", ValueError, "'school' of X has 1"),
    ],
)
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_refused_columns(X, column, error, match):
    with pytest.raises(error, match=match):
        train(X, Y3, column=column)
    with pytest.raises(error, match=match):
        read_rows(Model(column), X)


def test_task_given_twice():
    for call in (lambda m: read_training(m, X3, Y3, [0, 1, 1]), lambda m: read_rows(m, X3, [0])):
        with pytest.raises(ValueError, match="given twice"):
            call(Model(0))


def test_rows_must_fit_the_training():
    X = frame(pd.DataFrame)
    model = Model("school")
    read_training(model, X, Y3)
    with pytest.raises(ValueError, match="feature names should match"):
        read_rows(model, X.rename(columns={"age": "years"}))
    with pytest.raises(ValueError, match="task_column='school' is missing"):
        read_rows(model, X.drop(columns="school"))
    model = Model(0)
    read_training(model, X3, Y3, None)
    with pytest.raises(ValueError, match="X has 3 features, but Model is expecting 2"):
        read_rows(model, np.ones((2, 3)))


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


# ---- pack_tasks ----------------------------------------------------------------------------------


def test_pack_arrays():
    X, y, task = pack_tasks([X3, X3[:1] + 1], [Y3, [9.0]], tasks=["b", "a"])
    assert_array_equal(X, np.vstack([X3, X3[:1] + 1]))
    assert y.tolist() == [1, 2, 3, 9] and task.tolist() == ["b", "b", "b", "a"]
    data = train(X, y, task)
    assert data.tasks.tolist() == ["a", "b"] and data.offsets.tolist() == [0, 1, 4]
    assert pack_tasks([X3.tolist()], [Y3])[2].tolist() == [0, 0, 0]


@pytest.mark.parametrize("make", SPARSE)
def test_pack_sparse(make):
    X, _, task = pack_tasks([make(X3), X3], [Y3, Y3])
    assert type(X) is sparse.csr_array and task.tolist() == [0, 0, 0, 1, 1, 1]
    assert_array_equal(X.toarray(), np.vstack([X3, X3]))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_pack_frames(make):
    X, y, task = pack_tasks(
        [frame(make), frame(make)], [pd.Series(Y3), pl.Series(Y3)], [True, False]
    )
    assert type(X) is make and X.shape == (6, 3) and list(X.columns) == ["age", "school", "size"]
    assert y.tolist() == [1, 2, 3] * 2 and task.tolist() == [True] * 3 + [False] * 3


def test_pack_keeps_classes():
    assert pack_tasks([X3], [["a", "b", "a"]])[1].tolist() == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (([], []), "empty"),
        (([X3], []), "one item for each task, got 1, 0 and 1"),
        (([X3], [Y3], ["a", "b"]), "one item for each task"),
        (([X3, X3], [Y3, Y3], ["a", "a"]), "same label twice"),
        (([X3, X3], [Y3, Y3[:2]], ["a", "b"]), r"Task 'b'.*\(3, 2\) and \(2,\)"),
        (([X3, X3[:0]], [Y3, Y3[:0]], ["a", "b"]), "Task 'b' has no rows"),
        (([X3, X3[:, :1]], [Y3, Y3]), "task 1 has 1 columns, the first task 2"),
        (([X3[:, 0]], [Y3]), "two-dimensional X"),
        (([X3], [Y3[:, None]]), "one-dimensional y"),
        (([pd.DataFrame(X3), X3], [Y3, Y3]), "all Xs are frames"),
        (
            (
                [pd.DataFrame(X3, columns=["a", "b"]), pd.DataFrame(X3, columns=["b", "a"])],
                [Y3, Y3],
            ),
            "task 1 differs",
        ),
    ],
)
def test_refused_packs(args, match):
    with pytest.raises(ValueError, match=match):
        pack_tasks(*args)


# ---- scale and imports ---------------------------------------------------------------------------


def test_import_needs_neither_pandas_nor_polars():
    code = "import sys; sys.modules.update(pandas=None, polars=None); import comtl.data"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_many_tasks():
    rng = np.random.default_rng(0)
    task = rng.integers(0, 100_000, 300_000)
    data = train(np.ones((len(task), 1)), task.astype(float), task=task)
    assert_array_equal(data.tasks[data.codes], data.y)
