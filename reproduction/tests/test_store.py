"""Finished cells on disk: exact, whole, in order."""

import numpy as np
import pytest

from comtl.saving.writing import write_atomically
from comtl_reproduction.cells import Cell, ExperimentError, Store, as_value


def cell(method, repeat=0):
    return Cell({"method": method, "repeat": repeat}, dict)


def store(folder):
    return Store(folder / "some" / "toy.csv", ["method", "repeat"], ["rmse", "note"])


def values(number, note="fine"):
    return {"rmse": number, "note": note}


@pytest.mark.parametrize(
    "number", [0.1, 1 / 3, np.float64(2) / 3, np.float32(0.1), 1e300, -0.0, np.int64(7), np.inf]
)
def test_numbers_keep_all_their_digits(tmp_path, number):
    store(tmp_path).append(cell("STL"), values(number))
    assert store(tmp_path).rows()[0]["rmse"] == number


def test_texts_come_back_and_lines_are_refused(tmp_path):
    text = 'a, "quoted" λ, or not'
    store(tmp_path).append(cell("GO-MTL, squared"), values(1.0, text))
    assert store(tmp_path).rows() == [
        {"method": "GO-MTL, squared", "repeat": "0", "rmse": 1.0, "note": text}
    ]
    with pytest.raises(ValueError, match="one line"):
        store(tmp_path).append(cell("STL"), values(1.0, "two\nlines"))
    assert as_value("") == ""


def test_wrong_columns_are_refused(tmp_path):
    with pytest.raises(ValueError, match="method=STL, repeat=0: values"):
        store(tmp_path).append(cell("STL"), {"rmse": 1.0})
    with pytest.raises(ValueError, match="keys"):
        store(tmp_path).append(Cell({"method": "STL"}, dict), values(1.0))


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_torn_line_is_no_cell_and_is_cut_off(tmp_path, cut):
    first = store(tmp_path)
    for repeat in range(3):
        first.append(cell("STL", repeat), values(0.125 + repeat))
    whole = first.path.read_bytes()
    first.path.write_bytes(whole[:-cut])
    again = store(tmp_path)
    assert cell("STL", 1) in again
    assert cell("STL", 2) not in again
    # Reading leaves the file alone.
    assert first.path.read_bytes() == whole[:-cut]
    again.append(cell("STL", 2), values(2.125))
    assert first.path.read_bytes() == whole


@pytest.mark.parametrize("content", [b"", b"meth", b"method,repeat,rmse,note"])
def test_a_torn_header_is_an_empty_file(tmp_path, content):
    path = store(tmp_path).path
    path.parent.mkdir()
    path.write_bytes(content)
    store(tmp_path).append(cell("STL"), values(1.0))
    assert path.read_bytes() == b"method,repeat,rmse,note\nSTL,0,1.0,fine\n"


def test_the_final_file_is_in_order_and_keeps_other_rows(tmp_path):
    wanted = [cell(method, repeat) for method in ("STL", "ITL") for repeat in (0, 1, 10)]
    files = []
    for seed in range(3):
        kept = store(tmp_path / str(seed))
        extra = [cell("MTFL", 1), cell("CMTL", 0), cell("MTFL", 0)]
        mixed = [*wanted, *extra]
        for index in np.random.default_rng(seed).permutation(len(mixed)):
            kept.append(mixed[index], values(float(mixed[index].keys["repeat"])))
        kept.finish(wanted)
        files.append(kept.path.read_bytes())
        names = [(row["method"], row["repeat"]) for row in kept.rows()]
        assert names[:6] == [(c.keys["method"], str(c.keys["repeat"])) for c in wanted]
        assert names[6:] == [("CMTL", "0"), ("MTFL", "0"), ("MTFL", "1")]
    assert files[0] == files[1] == files[2]


def test_rows_of_a_run_beside_this_one_are_kept(tmp_path):
    mine, other = store(tmp_path), store(tmp_path)
    mine.append(cell("STL"), values(1.0))
    other.append(cell("ITL"), values(2.0))
    mine.finish([cell("STL")])
    assert {row["method"] for row in mine.rows()} == {"STL", "ITL"}


def test_another_header_is_an_error_with_a_remedy(tmp_path):
    store(tmp_path).append(cell("STL"), values(1.0))
    path = store(tmp_path).path
    with pytest.raises(ExperimentError, match=r"toy\.csv.*Move it away.*--out"):
        Store(path, ["method", "repeat"], ["rmse"])
    path.write_bytes(path.read_bytes() + b"STL,1\n")
    with pytest.raises(ExperimentError, match="damaged"):
        store(tmp_path)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "not bytes")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
