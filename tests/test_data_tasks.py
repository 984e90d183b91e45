"""Task labels and the task column, in every container."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from comtl.rows.reading import check_finite, encode_tasks, read_rows, read_training
from small_tables import SPARSE, X3, Y3, Model, frame, train

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
    low, high = -(2**63), 2**63 - 1
    assert encode_tasks([low, low + 1, 0, high], [low, low + 1]).tolist() == [0, 1, -1, -1]
    assert encode_tasks([low, high - 1, high], [high - 1, high]).tolist() == [-1, 0, 1]


@settings(deadline=None)
@given(st.lists(st.integers(-5, 5)), st.lists(st.integers(-5, 5), unique=True, min_size=1))
def test_encode_tasks_finds_every_label(labels, tasks):
    expected = [tasks.index(label) if label in tasks else -1 for label in labels]
    assert encode_tasks(labels, tasks).tolist() == expected
    assert (
        encode_tasks(np.array(labels, dtype=str), np.array(tasks, dtype=str)).tolist() == expected
    )


# ---- the task column -----------------------------------------------------------------------------


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
        (frame(pd.DataFrame), "shool", ValueError, "'shool' is missing.*'school'.*task="),
        (frame(pl.DataFrame), "shool", ValueError, "'shool' is missing.*'school'.*task="),
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
        rows, _ = read_rows(Model(column), X)
        check_finite(rows, Model(column))


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
