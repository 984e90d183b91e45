"""Names that a terminal or a spreadsheet would obey, terminals of few letters, and gzip bombs."""

import gzip
import io
import json
import os
import subprocess
import sys
import zlib

import pandas as pd
import pytest

from command_line import run
from comtl.cli.predict_command import without_formulas
from comtl.tables import TableError, read_table
from small_tables import pupils

FIT = ("--task", "schöol", "--target", "score", "--model", "pooled")
ODD = ("\x1b[31mred", "back\rward", "\x9b2J", "left\u202eright", "Zürich", "東京")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table whose names are odd, and a model of it."""
    path = tmp_path_factory.mktemp("terminals")
    frame = pupils(120, 6)[["school", "hours", "score"]]
    names = dict(zip(frame["school"].unique(), ODD, strict=True))
    frame = frame.assign(school=frame["school"].map(names), colour=frame["school"].map(names))
    frame = frame.rename(columns={"school": "schöol", "hours": "ho\x1b[2Jurs"})
    frame.to_parquet(path / "train.parquet")
    run(path, "fit", "train.parquet", *FIT, "--out", "m.comtl")
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "train.parquet", *FIT, "--out", "other.comtl"),
        ("inspect", "m.comtl"),
        ("inspect", "m.comtl", "--task", "東京"),
        ("inspect", "m.comtl", "--task", "東京 no\x1b[31m such"),
        ("inspect", "m.comtl", "--json"),
        ("predict", "m.comtl", "no\x1b such table.csv"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_terminals_get_no_control_characters(arguments, encoding, folder):
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "200", "LC_ALL": "C"}
    command = [sys.executable, "-m", "comtl", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True)
    said = (done.stdout + done.stderr).decode(encoding)
    assert "Traceback" not in said and done.returncode == any("no" in one for one in arguments)
    assert not any(letter in said for letter in "\x1b\x9b\r\u202e")
    if arguments[0] == "inspect":
        assert "東京" in said or "\\u6771\\u4eac" in said


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_predictions_are_utf8_for_every_terminal(encoding, folder):
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "comtl", "predict", "m.comtl", "train.parquet"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    frame = pd.read_csv(io.BytesIO(done.stdout), lineterminator="\n")
    assert set(frame["schöol"]) == set(ODD)


FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "-", "=")
PLAIN = ("-5", "+3.5", "-1e5", "-1,5", "a=b", "", "'", " =1")


def test_formulas_are_quoted(tmp_path):
    labels = [*FORMULAS, *PLAIN] * 4
    hours = [float(i % 7) for i in range(len(labels))]
    frame = pd.DataFrame({"=id": labels, "task": "one", "hours": hours, "score": hours})
    frame.loc[::2, "task"] = "@two"
    frame.to_parquet(tmp_path / "train.parquet")
    fit = ("--task", "task", "--target", "score", "--drop", "=id", "--model", "pooled")
    run(tmp_path, "fit", "train.parquet", *fit, "--no-score", "--out", "m.comtl")
    predict = ("predict", "m.comtl", "train.parquet", "--id", "=id")
    result = run(tmp_path, *predict)
    shown = pd.read_csv(io.StringIO(result.stdout), dtype=str, keep_default_na=False)
    assert list(shown) == ["'=id", "task", "prediction"]
    quoted = [f"'{label}" if label in FORMULAS else label for label in labels]
    assert shown["'=id"].tolist() == quoted and "'@two" in set(shown["task"])
    assert "behind an apostrophe" in result.stderr
    result = run(tmp_path, *predict, "--raw")
    assert pd.read_csv(io.StringIO(result.stdout))["=id"].fillna("").tolist() == labels
    assert "apostrophe" not in result.stderr
    found = json.loads(run(tmp_path, *predict, "--json").stdout)
    assert [row["=id"] for row in found["predictions"]] == labels
    run(tmp_path, *predict, "--out", "guess.parquet")
    assert pd.read_parquet(tmp_path / "guess.parquet")["=id"].tolist() == labels
    run(tmp_path, *predict, "--json", "--out", "guess.csv")
    assert (tmp_path / "guess.csv").read_text().startswith("'=id,")


def test_what_is_no_formula_is_left_alone():
    columns = {"prediction": [1.5, -2.0], "school": ["-5", "North"]}
    assert without_formulas(columns) == (columns, False)


def bomb(size):
    """A file of gzip that unpacks to a header and that many letters."""
    packer = zlib.compressobj(9, wbits=31)
    parts = [packer.compress(b"school,score\n")]
    parts += [packer.compress(b"a,1\n" * 2**18) for _ in range(size // 2**20)]
    return b"".join([*parts, packer.flush()])


def test_bombs_are_refused(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(bomb(2**29))
    assert path.stat().st_size < 2**20
    with pytest.raises(TableError, match=r"bomb\.csv\.gz unpacks to more than 200 times"):
        read_table(path)
    path.write_bytes(gzip.compress(b"school,score\n" + b"a,1\n" * 2**20))
    assert read_table(path).table.num_rows == 2**20
