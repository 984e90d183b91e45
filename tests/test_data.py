"""Grouping of the cells by task, at any scale, and lists of tasks stacked into one table."""

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

from comtl import pack_tasks
from comtl.rows.reading import read_rows
from small_tables import SPARSE, X3, Y3, Model, frame, train

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
    assert data.offsets[0] == 0 and data.offsets[-1] == data.n_observations == kept.sum()
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


# ---- scale and imports ---------------------------------------------------------------------------


def test_import_needs_neither_pandas_nor_polars():
    code = "import sys; sys.modules.update(pandas=None, polars=None); import comtl.rows.reading"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_many_tasks():
    rng = np.random.default_rng(0)
    task = rng.integers(0, 100_000, 300_000)
    data = train(np.ones((len(task), 1)), task.astype(float), task=task)
    assert_array_equal(data.tasks[data.codes], data.y)


# ---- lists of tasks stacked into one table -------------------------------------------------------


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
