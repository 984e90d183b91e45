"""Blocks of rows and their threads: products as NumPy gives them, whatever the cut; and products
of rows with the weights of their own task.
"""

import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from comtl.arrays import blocks as blocks_module
from comtl.arrays.blocks import RowBlocks, available_threads, in_order
from comtl.datafits import block_diagonal
from comtl.datafits import rows_datafit as rows_module
from comtl.datafits.block_diagonal import TaskBlocks, blocks_are_cheaper
from helpers import wide


def rows(kind, n=701, P=37, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, P)) * (rng.random((n, P)) < 0.3)).astype(dtype)
    forms = {
        "dense": lambda: X,
        "fortran": lambda: np.asfortranarray(X),
        "strided": lambda: np.repeat(X, 2, axis=1)[:, ::2],
        "csr": lambda: sparse.csr_array(X),
        "long indices": lambda: _long(sparse.csr_array(X)),
    }
    return X, forms[kind]()


def _long(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.fixture
def small(monkeypatch):
    """Many chunks and blocks, all on threads."""
    monkeypatch.setattr(blocks_module, "CACHE_ROWS", (24, 24))
    monkeypatch.setattr(blocks_module, "KERNEL_ROWS", 8)
    monkeypatch.setattr(
        blocks_module, "CHUNK_ENTRIES", dict.fromkeys(["dense", "sparse"], (1_000, 1_000))
    )
    monkeypatch.setattr(blocks_module, "THREAD_WORK", {"dense": 1, "sparse": 1})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", [0, 1, 5])
@pytest.mark.parametrize("kind", ["dense", "fortran", "strided", "csr", "long indices"])
def test_products_are_those_of_the_matrix(kind, width, dtype, small):
    X, form = rows(kind, dtype=dtype)
    blocks = RowBlocks(form)
    assert len(blocks.ranges) > 5
    rng = np.random.default_rng(1)
    right = rng.standard_normal((37, width)).astype(dtype)
    left = rng.standard_normal((701, width)).astype(dtype)
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-12}
    for product, expected in (
        (blocks.forward(right), X @ right),
        (blocks.backward(left), X.T @ left),
    ):
        assert product.dtype == dtype
        assert_allclose(product, expected, **close)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_blocks_are_views_that_cover_the_rows_once(kind, small):
    X, form = rows(kind)
    blocks = RowBlocks(form)
    seen = [block for number in range(len(blocks.ranges)) for block in blocks.chunk(number)]
    assert [b.obs.start for b in seen[1:]] == [b.obs.stop for b in seen[:-1]]
    assert (seen[0].obs.start, seen[-1].obs.stop) == (0, len(X))
    for block in seen:
        whole, part = (form, block.rows) if kind == "dense" else (form.data, block.rows.data)
        assert np.shares_memory(whole, part) or not part.size
        dense = block.rows if kind == "dense" else block.rows.toarray()
        assert_array_equal(dense, X[block.obs])


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_results_do_not_depend_on_the_number_of_threads(kind, small):
    _, form = rows(kind)
    blocks = RowBlocks(form)
    left = np.random.default_rng(1).standard_normal((701, 4))
    products = []
    for count in (1, 2, 3):
        with threadpool_limits(count):
            products.append(blocks.backward(left))
    assert_array_equal(products[0], products[1])
    assert_array_equal(products[0], products[2])


def test_a_sparse_chunk_is_not_mostly_its_own_result():
    """Every chunk gives a dense array of the width of X: few chunks for many columns."""
    n, P = 20_000, 50_000
    X = sparse.csr_array((np.ones(4 * n), np.arange(4 * n) % P, np.arange(n + 1) * 4), shape=(n, P))
    assert len(RowBlocks(X).ranges) == 1


# ---- threads ------------------------------------------------------------------------------------


def blas_threads():
    return {entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"}


def test_work_runs_on_threads_that_the_user_allows():
    def work(_):
        time.sleep(0.01)
        return threading.get_ident()

    with threadpool_limits(1, user_api="blas"):
        assert available_threads() == 1
        assert set(in_order(work, range(4))) == {threading.get_ident()}
    with threadpool_limits(2, user_api="blas"):
        assert threading.get_ident() not in set(in_order(work, range(4)))


def test_blas_has_one_thread_meanwhile_and_its_own_number_after():
    with threadpool_limits(2, user_api="blas"):
        seen = list(in_order(lambda _: blas_threads(), range(3)))
        assert seen == [{1}] * 3
        assert blas_threads() == {2}


def test_blas_is_restored_after_work_of_several_threads_at_once():
    def outer(_):
        return list(in_order(lambda _: time.sleep(0.005), range(4), threads=2))

    with threadpool_limits(2, user_api="blas"):
        workers = [threading.Thread(target=outer, args=(0,)) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert blas_threads() == {2}


def test_few_results_wait_and_errors_arrive():
    begun = []

    def work(number):
        begun.append(number)
        if number == 5:
            raise ValueError("five")
        return number

    results = in_order(work, range(100), threads=2)
    assert next(results) == 0
    time.sleep(0.05)
    assert len(begun) <= 4
    with pytest.raises(ValueError, match="five"):
        list(results)


FORK = """
import os
from comtl.arrays.blocks import in_order

def works():
    return list(in_order(lambda n: n, range(4), threads=2)) == [0, 1, 2, 3]

assert works()
child = os.fork()
if not child:
    os._exit(0 if works() else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the platform has no fork")
def test_a_forked_child_has_threads_of_its_own():
    """In a process of its own: this one has threads of the test runner, which a fork may upset."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr


# ---- weights of their own task ------------------------------------------------------------------


MIXINGS = {
    "own": np.eye(4),
    "own and common": np.column_stack([np.eye(4), np.ones(4)]),
    "any": np.random.default_rng(0).standard_normal((4, 3)),
}


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("picked", [True, False])
@pytest.mark.parametrize("back", [None, *MIXINGS])
@pytest.mark.parametrize("kind", MIXINGS)
def test_own_columns_are_the_products_of_all(packed, picked, kind, back, monkeypatch):
    datafit = wide(12, packed=packed, picked=picked)
    rng = np.random.default_rng(2)
    loadings, left = MIXINGS[kind], MIXINGS.get(back)
    features = rng.standard_normal((12, loadings.shape[1]))
    intercepts = rng.standard_normal(4)
    found = []
    for own in (True, False):
        monkeypatch.setattr(rows_module, "blocks_are_cheaper", lambda *sizes, plain, own=own: own)
        values, sums, product = datafit.run(
            features, loadings, intercepts, lambda cells, score: score**2, left
        )
        found.append((values, sums, product, datafit.backward(values, sums, loadings)))
    assert (found[0][2] is None) == (back is None)
    for one, other in zip(*found, strict=True):
        if one is not None:
            np.testing.assert_allclose(one, other, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(any),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_blocks_may_cut_tasks_and_tasks_may_be_empty(sizes, dtype, packed, seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    X = (rng.standard_normal((len(codes), 5)) * (rng.random((len(codes), 5)) < 0.5)).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks_module, "CHUNK_ROWS", 3)
        patch.setattr(blocks_module, "CACHE_ROWS", (1, 3))
        patch.setattr(blocks_module, "KERNEL_ROWS", 1)
        blocks = RowBlocks(sparse.csr_array(X) if packed else X)
    rows = pickle.loads(pickle.dumps(TaskBlocks(blocks, codes, len(sizes))))
    weights = rng.standard_normal((len(sizes), 5)).astype(dtype)
    values = rng.standard_normal(len(codes)).astype(dtype)
    scores, sums = rows.scores(weights), rows.sums(values)
    assert scores.dtype == sums.dtype == dtype
    atol = 1e-12 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(scores, np.sum(X * weights[codes], axis=1), atol=atol)
    member = codes == np.arange(len(sizes))[:, None]
    np.testing.assert_allclose(sums, (member * values) @ X, atol=atol)


def test_entries_keep_one_copy_of_their_values():
    X = sparse.random_array((30, 8), density=0.5, rng=np.random.default_rng(0), format="csr")
    rows = TaskBlocks(RowBlocks(X), np.repeat(np.arange(3), 10), 3)
    (block,) = rows._kept[0]
    assert np.shares_memory(block.rows.data, X.data)
    assert block.rows.indices.dtype == X.indices.dtype


def test_columns_beyond_an_index_take_a_longer_one():
    X = sparse.csr_array((np.ones(2), np.array([0, 9], np.int32), np.array([0, 1, 2], np.int32)))
    X.resize((2, 2**31 // 8))
    block = block_diagonal.TaskBlock.of(slice(0, 2), X, np.array([0, 8]))
    assert block.rows.indices.dtype == np.int64
    assert block.rows.indices.tolist() == [0, 8 * X.shape[1] + 9]


def test_own_columns_are_taken_where_they_cost_less(monkeypatch):
    def taken(rows, tasks, width, plain=False):
        X = sparse.random_array((rows, 200), density=0.1, rng=np.random.default_rng(0))
        return blocks_are_cheaper(RowBlocks(X.tocsr()), tasks, width, plain=plain)

    assert taken(1_000, 5, 5)
    assert not taken(1_000, 400, 5)  # There are more weights than entries.
    assert taken(1_000, 100, 100, plain=True)
    dense = RowBlocks(np.zeros((3, 2)))
    assert not blocks_are_cheaper(dense, 100, 100, plain=False)
    assert blocks_are_cheaper(dense, 100, 100, plain=True)
    monkeypatch.setattr(block_diagonal, "MAX_ENTRIES", 10)
    assert not taken(1_000, 5, 5)
