"""Row blocks and their threads: products as NumPy gives them, whatever the cut and the threads."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from comtl.arrays import blocks as blocks_module
from comtl.arrays.blocks import RowBlocks, available_threads, in_order


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
    assert [b.start for b in seen[1:]] == [b.stop for b in seen[:-1]]
    assert (seen[0].start, seen[-1].stop) == (0, len(X))
    for block in seen:
        whole, part = (form, block.rows) if kind == "dense" else (form.data, block.rows.data)
        assert np.shares_memory(whole, part) or not part.size
        dense = block.rows if kind == "dense" else block.rows.toarray()
        assert_array_equal(dense, X[block.start : block.stop])


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
