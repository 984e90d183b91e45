"""Commands never overwrite what they read, each other's outputs, or a file of another kind."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from command_line import run
from small_tables import pupils

FIT = ("fit", "train.csv", "--task", "school", "--target", "score")
FIT = (*FIT, "--model", "pooled", "--no-score")


@pytest.fixture
def folder(tmp_path):
    frame = pupils(60, 4)[["school", "hours", "score"]]
    frame.to_csv(tmp_path / "train.csv", index=False)
    frame.drop(columns="score").head(5).to_csv(tmp_path / "new.csv", index=False)
    frame.head(5).assign(school="new").to_csv(tmp_path / "more.csv", index=False)
    run(tmp_path, *FIT, "--out", "m.comtl")
    (tmp_path / "link.csv").symlink_to("train.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "train.csv")
    (tmp_path / "folder").mkdir()
    (tmp_path / "up").symlink_to("folder")
    return tmp_path


def contents(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    "arguments",
    [
        (*FIT, "--out", "train.csv"),
        (*FIT, "--out", "link.csv"),
        (*FIT, "--out", "hard.csv"),
        (*FIT, "--out", "TRAIN.csv"),
        (*FIT, "--out", "up/../train.csv"),
        (*FIT, "--out", "x.html", "--report", "x.html"),
        (*FIT, "--out", "X.html", "--report", "x.html"),
        (*FIT, "--out", "folder/x.html", "--report", "up/x.html"),
        ("predict", "m.comtl", "new.csv", "--out", "new.csv"),
        ("predict", "m.comtl", "new.csv", "--out", "m.comtl"),
        ("adapt", "m.comtl", "more.csv", "--out", "more.csv"),
        ("adapt", "m.comtl", "more.csv", "--out", "m.comtl"),
        ("report", "m.comtl", "--out", "m.comtl"),
        ("report", "m.comtl", "--data", "train.csv", "--out", "train.csv"),
    ],
    ids=" ".join,
)
def test_inputs_and_other_outputs_are_kept(arguments, folder):
    before = contents(folder)
    for force in ((), ("--force",)):
        said = run(folder, *arguments, *force, code=1).output
        assert "are the same file" in said and said.count("\n") == 1
        option = arguments.index("--report" if "--report" in arguments else "--out")
        assert arguments[option + 1] in said
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("arguments", "out", "kind"),
    [
        (FIT, "notes.txt", "a model"),
        (FIT, "guess.csv", "a model"),
        ((*FIT, "--out", "n.comtl"), "thesis.html", "a report"),
        (("predict", "m.comtl", "new.csv"), "notes.csv", "predictions"),
        (("predict", "m.comtl", "new.csv"), "other.comtl", "predictions"),
        (("predict", "m.comtl", "new.csv"), "notes.parquet", "predictions"),
        (("predict", "m.comtl", "new.csv"), "table.parquet", "predictions"),
        (("adapt", "m.comtl", "more.csv"), "notes.txt", "a model"),
        (("report", "m.comtl"), "thesis.html", "a report"),
    ],
)
def test_files_of_another_kind_need_force(arguments, out, kind, folder):
    content = {"guess.csv": "school,prediction\na,1\n", "thesis.html": "<!doctype html><p>Mine"}
    (folder / out).write_text(content.get(out, "prediction of mine,score\n1,2\n"))
    if out == "table.parquet":
        pd.DataFrame({"prediction": [1.0], "score": [2.0]}).to_parquet(folder / out)
    option = "--report" if out == "thesis.html" and arguments[0] == "fit" else "--out"
    before = contents(folder)
    said = run(folder, *arguments, option, out, code=1).output
    assert f"{option} {out} is there" in said and kind in said and "--force" in said
    assert contents(folder) == before
    if out != "other.comtl":
        run(folder, *arguments, option, out, "--force")
        assert contents(folder)[folder / out] != before[folder / out]


def test_files_of_the_same_kind_are_written_again(folder):
    for _ in range(2):
        run(folder, *FIT, "--out", "again.comtl", "--report", "page.html")
        run(folder, "report", "again.comtl", "--out", "page.html")
        run(folder, "adapt", "again.comtl", "more.csv", "--out", "larger.comtl")
        for out in ("guess.csv", "guess.tsv", "guess.parquet"):
            run(folder, "predict", "m.comtl", "new.csv", "--id", "hours", "--out", out)
    (folder / "empty").touch()
    run(folder, *FIT, "--out", "empty")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("folder", "is a folder"),
        ("nowhere/m.comtl", "there is no folder"),
        ("locked.comtl", "is read-only"),
        ("n" * 300, "too long"),
    ],
)
def test_what_cannot_be_written_is_found_before_the_fit(name, words, folder):
    (folder / "locked.comtl").write_bytes((folder / "m.comtl").read_bytes())
    (folder / "locked.comtl").chmod(0o444)
    said = run(folder, "fit", "no such table.csv", *FIT[2:], "--out", name, code=1).output
    assert words in said


def test_predictions_go_through_a_pipe(folder):
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        content = pool.submit(pipe.read_text)
        run(folder, "predict", "m.comtl", "new.csv", "--out", "pipe")
    assert content.result().startswith("school,prediction\n")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
