"""Products of rows with the weights of their own task."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from comtl.arrays import blocks as blocks_module
from comtl.arrays.blocks import RowBlocks
from comtl.datafits import block_diagonal as unmixed
from comtl.datafits import rows_datafit as rows_module
from comtl.datafits.block_diagonal import TaskBlocks, blocks_are_cheaper
from wide_rows import wide

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
    block = unmixed.TaskBlock.of(0, X, np.array([0, 8]))
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
    monkeypatch.setattr(unmixed, "MAX_ENTRIES", 10)
    assert not taken(1_000, 5, 5)
