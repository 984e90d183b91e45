"""Reading tables from files: every format gives the same table."""

import gzip
import io
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from comtl.tables import read_table

FRAME = pd.DataFrame(
    {
        "school": ["Nörd", "Süd", "Ost, West", 'a "quoted" name'],
        "age": [7.25, np.nan, 9.0, 1 / 3],
        "count": [1, 2, 3, 4],
        "code": ["007", "010", "100", "0"],
    }
)


def written(frame, name, path):
    file = path / name
    bare = name.removesuffix(".gz")
    buffer = io.BytesIO()
    if bare.endswith(".parquet"):
        frame.to_parquet(buffer)
    elif bare.endswith((".feather", ".arrow")):
        frame.to_feather(buffer)
    else:
        frame.to_csv(buffer, index=False, sep="\t" if bare.endswith(".tsv") else ",")
    content = buffer.getvalue()
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return file


FORMATS = [f"t.{kind}{gz}" for kind in ("csv", "tsv", "parquet", "feather") for gz in ("", ".gz")]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_table(name, tmp_path):
    table = read_table(written(FRAME, name, tmp_path)).table
    assert table.to_pydict() == {**FRAME.to_dict("list"), "age": [7.25, None, 9.0, 1 / 3]}
    assert [str(kind) for kind in table.schema.types][1:3] == ["double", "int64"]


@pytest.fixture
def read(tmp_path):
    """Read a CSV file with this content."""

    def written_and_read(content, **options):
        path = tmp_path / "t.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_table(path, **options)

    return written_and_read


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_delimiters_marks_and_line_ends(delimiter, start, end, read):
    lines = [["a", "b", "c"], ["1", '"x y"', "2.5"], ["3", "z", ""]]
    table = read(start + end.join(delimiter.join(line) for line in lines)).table
    assert table.to_pydict() == {"a": [1, 3], "b": ["x y", "z"], "c": [2.5, None]}


def test_a_delimiter_inside_names_and_values(read):
    table = read('a;"b, c";d\n"1,5";2;3\n"2,5";4;5\n').table
    assert table.column_names == ["a", "b, c", "d"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2"], [1, 2]),
        (["1", "2.0"], [1.0, 2.0]),
        (["-1", "+2"], [-1.0, 2.0]),
        (["1e3", "NA"], [1000.0, None]),
        (["1", "?"], [1, None]),
        (["007", "1"], ["007", "1"]),
        (["1,234", "5"], ["1,234", "5"]),
        (["12 %", "5 %"], ["12 %", "5 %"]),
        (["1_000", "2"], ["1_000", "2"]),
        (["NA", "x"], ["NA", "x"]),
        (["99999999999999999999", "1"], ["99999999999999999999", "1"]),
        (["0x1F", "1"], ["0x1F", "1"]),
        (["true", "false"], ["true", "false"]),
        ([" 1", "2 "], [1, 2]),
    ],
)
def test_only_plain_numbers_become_numbers(values, expected, read):
    content = pd.DataFrame({"a": values, "b": "x"}).to_csv(index=False)
    assert read(content).table["a"].to_pylist() == expected


def test_columns_may_be_kept_as_text(read):
    assert read("a,b\n1,2\n3,4\n", text=["a"]).table.to_pydict() == {"a": ["1", "3"], "b": [2, 4]}


def test_row_numbers_of_pandas_are_left_out(read, tmp_path):
    loaded = read(FRAME.to_csv())
    assert loaded.table.column_names == list(FRAME)
    assert "row numbers" in loaded.notes[0]
    FRAME.set_index(np.array([5, 6, 7, 9])).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").table.column_names == list(FRAME)


def test_an_empty_last_column_is_left_out(read):
    loaded = read("a,b,\n1,2,\n3,4,\n")
    assert loaded.table.column_names == ["a", "b"]
    assert "Column 3" in loaded.notes[0]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252", "utf-8-sig"])
def test_other_encodings_by_name(encoding, read):
    content = "a,b\nö,1\nü,2\n".encode(encoding)
    assert read(content, encoding=encoding).table["a"].to_pylist() == ["ö", "ü"]


def test_standard_input(monkeypatch, tmp_path):
    for name in ("t.csv", "t.parquet", "t.csv.gz"):
        content = written(FRAME, name, tmp_path).read_bytes()
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        assert read_table("-").table.column_names == list(FRAME)


def test_numbers_keep_their_last_digit(read):
    values = np.random.default_rng(0).normal(size=200) * 10.0 ** np.arange(-100, 100)
    table = read(pd.DataFrame({"a": values, "b": 1}).to_csv(index=False)).table
    np.testing.assert_array_equal(table["a"].to_numpy(), values)
