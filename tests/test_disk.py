"""Rows on disk: the same rows sorted by task, bounded memory, and errors that name the block."""

import json
import mmap
import sys
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from comtl import BiFactorRegressor, open_rows, parquet_blocks, spool_rows
from comtl.rows import disk

LABELS = {"text": np.array(["b", "zebra", "a", "ab"]), "whole": np.array([30, -2, 5, 4])}


def make_rows(n=200, p=7, *, kind="dense", dtype=np.float64, labels="text", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)).astype(dtype)
    if kind == "sparse":
        X[rng.random((n, p)) < 0.6] = 0.0
        X[3:9] = 0.0  # rows without entries
        X = sparse.csr_array(X)
    return X, rng.standard_normal(n), LABELS[labels][rng.integers(0, 4, n)], rng.random(n) + 0.5


def cut(arrays, size=33):
    for start in range(0, arrays[0].shape[0], size):
        yield tuple(array[start : start + size] for array in arrays)


def in_order(arrays):
    order = np.argsort(np.unique(arrays[2], return_inverse=True)[1], kind="stable")
    return tuple(array[order] for array in arrays)


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def is_mapped(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)


def assert_same(found, expected):
    assert len(found) == len(expected)
    assert found[0].dtype == expected[0].dtype
    np.testing.assert_array_equal(dense(found[0]), dense(expected[0]))
    for here, there in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("piece", [1, 50, None])
@pytest.mark.parametrize("labels", ["text", "whole"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_rows_come_back_sorted_by_task(tmp_path, monkeypatch, kind, dtype, labels, piece):
    if piece:
        monkeypatch.setattr(disk, "_PIECE", piece)
    rows = make_rows(kind=kind, dtype=dtype, labels=labels)
    for width in (3, 4):
        assert_same(spool_rows(cut(rows[:width]), tmp_path / str(width)), in_order(rows[:width]))
        assert_same(open_rows(tmp_path / str(width)), in_order(rows[:width]))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_sorted_rows_need_no_second_pass(tmp_path, monkeypatch, kind):
    rows = in_order(make_rows(kind=kind))
    monkeypatch.setattr(disk, "_map", lambda *_: pytest.fail("the rows were read again"))
    with monkeypatch.context() as patch:
        patch.setattr(disk, "open_rows", lambda folder: None)
        spool_rows(cut(rows), tmp_path)
    monkeypatch.undo()
    assert_same(open_rows(tmp_path), rows)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_arrays_are_read_only_maps_and_no_other_file_is_left(tmp_path, kind):
    X, *_ = spool_rows(cut(make_rows(kind=kind)[:3]), tmp_path)
    parts = {"X": X} if kind == "dense" else {"data": X.data, "indices": X.indices}
    for part in parts.values():
        assert not part.flags.writeable
        assert is_mapped(part)
    names = {"json", "y", "task", *parts} | ({"indptr"} if kind == "sparse" else set())
    assert {path.name for path in tmp_path.iterdir()} == {f"rows.{name}" for name in names}
    index = json.loads((tmp_path / "rows.json").read_text())
    assert (index["format"], index["kind"], index["shape"]) == (1, kind, [200, 7])


@pytest.mark.parametrize("ordered", [True, False])
def test_indices_are_long_only_where_they_must_be(tmp_path, monkeypatch, ordered):
    rows = make_rows(kind="sparse")[:3]
    rows = in_order(rows) if ordered else rows
    X, *_ = spool_rows(cut(rows), tmp_path / "short")
    assert X.indices.dtype == X.indptr.dtype == np.int32
    monkeypatch.setattr(disk, "_LARGEST_INT32", 150)
    X, *rest = spool_rows(cut(rows), tmp_path / "long")
    assert X.indices.dtype == X.indptr.dtype == np.int64
    assert is_mapped(X.indices)
    assert_same((X, *rest), in_order(rows))


def test_duplicate_entries_are_added_up_in_a_copy(tmp_path):
    X = sparse.csr_array(
        (np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2)
    )
    found, *_ = spool_rows([(X, [1.0, 2.0], [0, 0])], tmp_path)
    np.testing.assert_array_equal(found.toarray(), [[0.0, 3.0], [3.0, 0.0]])
    assert found.nnz == 2 and X.nnz == 3


def test_blocks_of_any_make(tmp_path):
    pd = pytest.importorskip("pandas")
    blocks = [
        (np.zeros((0, 2)), [], []),
        ([[1, 2], [3, 4]], ["no", "yes"], [2.0, 1.0]),
        (np.asfortranarray([[5.0, 6.0]], dtype=np.float32), np.array(["perhaps"]), np.array([1])),
        (pd.DataFrame({"a": [7.0], "b": [True]}), pd.Series(["no"]), pd.Series([0])),
        (np.zeros((0, 2)), [], []),
    ]
    blocks[3][0]["b"] = blocks[3][0]["b"].astype(float)
    X, y, task = spool_rows(iter(blocks), str(tmp_path / "new" / "folder"))
    np.testing.assert_array_equal(X, [[7, 1], [3, 4], [5, 6], [1, 2]])
    assert y.tolist() == ["no", "yes", "perhaps", "no"]
    assert task.tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("empty", [np.zeros((3, 0)), sparse.csr_array((3, 4))])
def test_nothing_to_map(tmp_path, empty):
    X, y, _ = spool_rows([(empty, [1.0, 2.0, 3.0], [1, 0, 1])], tmp_path)
    assert X.shape == empty.shape
    assert y.tolist() == [2.0, 1.0, 3.0]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_memory_holds_a_block_and_a_piece(tmp_path, kind):
    def blocks():  # 20 blocks of 3 MB
        for seed in range(20):
            rng = np.random.default_rng(seed)
            X = rng.standard_normal((1_250, 300) if kind == "dense" else 250_000)
            if kind == "sparse":
                starts = np.arange(0, 250_001, 200, dtype=np.int32)
                columns = np.tile(np.arange(200, dtype=np.int32), 1_250)
                X = sparse.csr_array((X, columns, starts), shape=(1_250, 1_000))
            yield X, np.arange(1_250.0), rng.integers(0, 50, 1_250)

    tracemalloc.start()
    try:
        X, *_ = spool_rows(blocks(), tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert X.shape[0] == 25_000
    assert peak < 25e6


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_fit_equals_the_fit_in_memory_and_leaves_the_files(tmp_path, kind):
    rows = make_rows(kind=kind)
    found = spool_rows(cut(rows), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    model = BiFactorRegressor(2, max_iter=3)
    expected = model.fit(*rows).coef_
    np.testing.assert_allclose(model.fit(*found).coef_, expected, rtol=0, atol=1e-8)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


GOOD = (np.ones((2, 3)), [1.0, 2.0], ["a", "b"])
X, Y, TASK = GOOD
NARROW = (X.astype(np.float32), Y, TASK)


@pytest.mark.parametrize(
    ("blocks", "error", "message"),
    [
        ([], ValueError, "blocks holds no rows"),
        ([(np.ones((0, 3)), [], [])], ValueError, "blocks holds no rows"),
        ([GOOD, list(GOOD)], TypeError, "Block 1 of blocks is list, but must be a tuple"),
        ([GOOD, GOOD[:2]], TypeError, "Block 1 of blocks"),
        ([GOOD, (np.ones((2, 4)), Y, TASK)], ValueError, "1 the width of X is 4, in those .* 3"),
        ([GOOD, (sparse.eye_array(2, 3), Y, TASK)], ValueError, "1 the kind of X is sparse"),
        ([GOOD, (np.ones(3), Y, TASK)], ValueError, "X of block 1 is 1-D"),
        ([GOOD, (np.full((2, 3), "x"), Y, TASK)], ValueError, "X of block 1 .* table of numbers"),
        ([GOOD, (X, [1.0], TASK)], ValueError, r"y of block 1 has .*\(1,\), but X has 2 rows"),
        ([GOOD, (X, Y, ["a"])], ValueError, r"task of block 1 has shape \(1,\)"),
        ([GOOD, (*GOOD, [1.0])], ValueError, r"sample_weight of block 1 has shape \(1,\)"),
        ([GOOD, (X, Y, [1, 2])], ValueError, "block 1 the kind of task is integers, .* text"),
        ([GOOD, (X, Y, ["a", None])], ValueError, "task of block 1 has 1 missing labels"),
        ([GOOD, (X, ["no", "yes"], TASK)], ValueError, "In block 1 the kind of y is text"),
        ([GOOD, (X, [1.0, "yes"], TASK)], TypeError, "y of block 1 must hold labels of one kind"),
        ([GOOD, (*GOOD, [1.0, 1.0])], ValueError, "In block 1 the length of the tuple is 4"),
        ([NARROW, GOOD], ValueError, "1 the type of X is float64, in those before float32"),
    ],
)
def test_errors_name_the_argument_and_the_block(tmp_path, blocks, error, message):
    with pytest.raises(error, match=message):
        spool_rows(iter(blocks), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_narrower_type_fits_into_that_of_the_first_block(tmp_path):
    assert spool_rows([GOOD, NARROW], tmp_path)[0].dtype == np.float64


def test_rows_are_replaced_only_on_request(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    old = spool_rows([(np.zeros((2, 3)), *GOOD[1:], [1.0, 2.0])], tmp_path)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        spool_rows([GOOD], tmp_path)
    assert_same(open_rows(tmp_path), old)
    assert_same(spool_rows([GOOD], tmp_path, overwrite=True), GOOD)
    assert not (tmp_path / "rows.sample_weight").exists()
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_what_was_left_unfinished_is_refused_and_can_be_written_again(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        open_rows(tmp_path / "nowhere")
    spool_rows([GOOD], tmp_path)
    (tmp_path / "rows.json").unlink()
    (tmp_path / "arrival.X").write_bytes(b"torn")
    with pytest.raises(FileNotFoundError, match=r"incomplete: it has no rows\.json"):
        open_rows(tmp_path)
    _, y, task = spool_rows([GOOD, GOOD], tmp_path)
    assert (y.tolist(), task.tolist()) == ([1.0, 1.0, 2.0, 2.0], ["a", "a", "b", "b"])


def test_damaged_files_are_refused(tmp_path):
    spool_rows([GOOD], tmp_path)
    index = (tmp_path / "rows.json").read_text()
    (tmp_path / "rows.json").write_text(index.replace('"format": 1', '"format": 9'))
    with pytest.raises(ValueError, match="format 1"):
        open_rows(tmp_path)
    (tmp_path / "rows.json").write_text(index)
    (tmp_path / "rows.X").write_bytes(b"short")
    with pytest.raises(ValueError, match=r"rows\.X has 5 bytes instead of 48"):
        open_rows(tmp_path)
    (tmp_path / "rows.X").unlink()
    with pytest.raises(ValueError, match=r"rows\.X has 0 bytes"):
        open_rows(tmp_path)


def write_parquet(path, n=10, group=6, **columns):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(n)
    table = {
        "y": rng.standard_normal(n),
        "a": rng.standard_normal(n).astype(np.float32),
        "store": LABELS["text"][rng.integers(0, 4, n)],
        "b": rng.standard_normal(n).astype(np.float32),
        "w": rng.random(n),
    } | columns
    parquet.write_table(pa.table(table), path, row_group_size=group)
    return table


def read_blocks(path, **options):
    return list(parquet_blocks(path, **({"target": "y", "task": "store"} | options)))


def test_parquet_files_of_a_folder_in_sorted_order(tmp_path):
    tables = [write_parquet(tmp_path / f"{i}.parquet", n) for i, n in enumerate((10, 7))]
    whole = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    expected = (np.column_stack([whole["a"], whole["b"]]), whole["y"], whole["store"], whole["w"])
    blocks = read_blocks(tmp_path, sample_weight="w", rows=4)
    assert all(len(block[0]) <= 4 for block in blocks)
    assert_same(spool_rows(blocks, tmp_path / "rows"), in_order(expected))
    files = [tmp_path / "1.parquet", str(tmp_path / "0.parquet")]
    assert [len(block[1]) for block in read_blocks(files, sample_weight="w")] == [7, 10]


def test_parquet_types_and_chosen_features(tmp_path):
    pa = pytest.importorskip("pyarrow")
    file = tmp_path / "one.parquet"
    stores = pa.array(["x", "y"] * 5).dictionary_encode()
    odd = {"c": np.arange(10), "flag": np.arange(10) > 4, "__index_level_0__": np.ones(10)}
    write_parquet(file, group=10, store=stores, **odd)
    X, _, task = read_blocks(file)[0]
    assert X.dtype == np.float64 and X.shape == (10, 5)
    assert X[:, 3].tolist() == list(range(10)) and X[:, 4].sum() == 5
    assert task.tolist() == ["x", "y"] * 5
    X, _, task = read_blocks(file, features=["b", "a"], task="c")[0]
    assert X.dtype == np.float32 and X.shape == (10, 2)
    assert task.dtype == np.int64


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({}, {"target": "score"}, r"\['score'\] are not in .*one\.parquet, which has \['y', 'a', "),
        ({}, {"features": ["a", "z"]}, r"\['z'\] are not in .*one\.parquet"),
        ({"c": ["text"] * 10}, {}, r"\['c'\] of .*one\.parquet are not numbers"),
        ({"c": [1.0, None] * 5}, {}, r"\['c'\] of .*one\.parquet have nulls"),
        ({}, {"rows": 0}, "rows >= 1"),
    ],
)
def test_parquet_errors_name_the_column_and_the_file(tmp_path, columns, options, message):
    write_parquet(tmp_path / "one.parquet", **columns)
    with pytest.raises(ValueError, match=message):
        read_blocks(tmp_path, **options)


def test_parquet_files_must_agree(tmp_path):
    write_parquet(tmp_path / "0.parquet")
    write_parquet(tmp_path / "1.parquet", extra=np.ones(10))
    with pytest.raises(ValueError, match=r"\['extra'\] of .*1\.parquet are not in the first file"):
        read_blocks(tmp_path)
    assert len(read_blocks(tmp_path, features=["a"])) > 1
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match=r"\*\.parquet"):
        read_blocks(tmp_path / "none")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        parquet_blocks(tmp_path, target="y", task="store")
