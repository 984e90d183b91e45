"""Lists of tasks stacked into one table."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from comtl.rows.fit_input import pack_tasks
from small_tables import SPARSE, X3, Y3, frame, train

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
