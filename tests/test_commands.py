"""The commands on tables, as a user runs them."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import comtl
from command_line import run
from comtl import cli
from comtl.cli.running import progress
from comtl.tables import load_model
from small_tables import pupils

FRAME = pupils(120, 6)[["school", "hours", "sex", "score", "passed"]]
FRAME.insert(0, "pupil", [f"p{i:03d}" for i in range(120)])
FIT = ("--task", "school", "--target", "score", "--drop", "pupil", "--drop", "passed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, new rows, and models of each kind."""
    path = tmp_path_factory.mktemp("commands")
    FRAME.to_csv(path / "train.csv", index=False)
    new = FRAME.head(5).drop(columns=["score", "passed"])
    new.to_csv(path / "new.csv", index=False)
    run(path, "fit", "train.csv", *FIT, "--model", "hierarchical", "--out", "h.comtl")
    run(path, "fit", "train.csv", *FIT, "--model", "pooled", "--no-score", "--out", "p.comtl")
    classes = ["--task", "school", "--target", "passed", "--drop", "pupil", "--drop", "score"]
    last = ["--model", "hierarchical", "--no-score", "--out", "c.comtl"]
    run(path, "fit", "train.csv", *classes, *last)
    return path


def test_fit_says_what_it_did(folder, tmp_path):
    model = ["--model", "hierarchical", "--out", tmp_path / "m.comtl"]
    result = run(folder, "fit", "train.csv", *FIT, *model)
    for text in ("hours", "category", "2 levels: f, m", "RMSE", "pooled", "separate", "mean"):
        assert text in result.stdout
    assert "Multitask learning helps here" in result.stdout
    assert f"Model written to {tmp_path / 'm.comtl'}." in result.stdout
    assert "16 of 16 fits done" in result.stderr
    assert load_model(tmp_path / "m.comtl").rows == len(FRAME)


def test_fit_as_json(folder, tmp_path):
    out = tmp_path / "m.comtl"
    model = ["--model", "hierarchical", "--out", out, "--json"]
    found = json.loads(run(folder, "fit", "train.csv", *FIT, *model).stdout)
    assert found["tasks"] == 6 and found["kind"] == "regression" and found["file"] == str(out)
    assert set(found["scores"]) == {"model", "pooled", "separate", "mean"}
    assert found["verdict"].startswith("Multitask learning helps here")
    assert (found["verdict_kind"], found["verdict_reference"]) == ("helps", "separate")
    assert [column["kind"] for column in found["columns"]] == ["number", "category"]


def test_the_default_is_the_stack_and_may_be_silent(folder, tmp_path):
    few = FRAME.head(60)[["school", "hours", "score"]].to_csv(index=False)
    out = ["--no-score", "--quiet", "--out", tmp_path / "m.comtl"]
    result = run(folder, "fit", "-", "--task", "school", "--target", "score", *out, stdin=few)
    assert result.stdout == result.stderr == ""
    model = load_model(tmp_path / "m.comtl")
    assert type(model.estimator) is comtl.MultitaskRegressor
    shown = run(folder, "inspect", tmp_path / "m.comtl").stdout
    assert "Members of the stack" in shown


def test_predict(folder, tmp_path):
    result = run(folder, "predict", "h.comtl", "new.csv", "--id", "pupil", "--interval", "0.8")
    found = pd.read_csv(io.StringIO(result.stdout))
    assert list(found) == ["pupil", "school", "prediction", "lower", "upper"]
    assert found.pupil.tolist() == FRAME.pupil[:5].tolist()
    assert (found.lower < found.prediction).all() and (found.prediction < found.upper).all()
    assert result.stderr == ""
    expected = load_model(folder / "h.comtl").predict(FRAME.head(5))
    np.testing.assert_array_equal(found.prediction, expected)
    for name in ("out.csv", "out.tsv", "out.parquet"):
        run(folder, "predict", "h.comtl", "new.csv", "--out", tmp_path / name)
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "out.parquet").prediction, expected)
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "out.tsv", sep="\t").prediction, expected)


@pytest.mark.parametrize("model", ["auto", "trifactor"])
def test_the_same_command_writes_the_same_bytes(folder, tmp_path, model):
    out, report = tmp_path / "m.comtl", tmp_path / "r.html"
    fit = ["fit", "train.csv", *FIT, "--model", model, "--json", "--out", out, "--report", report]
    predict = ["predict", out, "new.csv", "--interval", "0.9"]
    found = set()
    # Text is hashed with another seed in every process, and sets of text have another order.
    for seed in "15":
        env = {**os.environ, "PYTHONHASHSEED": seed}
        command = [
            sys.executable,
            "-m",
            "comtl",
            *map(str, fit),
            "--report",
            str(tmp_path / "r.html"),
        ]
        said = subprocess.run(command, cwd=folder, env=env, capture_output=True, check=True).stdout
        new = run(folder, *predict).stdout if model == "auto" else ""
        found.add((said, new, out.read_bytes(), report.read_bytes()))
    assert len(found) == 1


def test_predict_from_a_pipe_as_json(folder):
    text = (folder / "new.csv").read_text()
    result = run(folder, "predict", "h.comtl", "-", "--json", stdin=text)
    found = json.loads(result.stdout)
    assert found["rows"] == 5 and found["notes"] == []
    assert found["predictions"][0]["school"] == FRAME.school[0]


def test_predict_classes(folder):
    found = pd.read_csv(io.StringIO(run(folder, "predict", "c.comtl", "new.csv", "--proba").stdout))
    assert set(found.prediction) <= {"yes", "no"}
    np.testing.assert_allclose(found["probability no"] + found["probability yes"], 1.0)


def test_unknown_tasks(folder):
    new = FRAME.head(4).assign(school=["s00", "s00", "new", None]).to_csv(index=False)
    result = run(folder, "predict", "h.comtl", "-", stdin=new)
    assert len(result.stdout.splitlines()) == 5
    assert "2 rows of 4 with 2 tasks that the model does not know" in result.stderr
    refused = run(folder, "predict", "h.comtl", "-", "--unseen", "refuse", stdin=new, code=1)
    assert "comtl adapt" in refused.stderr and refused.stdout == ""


def test_adapt(folder, tmp_path):
    new = FRAME.assign(school="x" + FRAME.school).to_csv(index=False)
    result = run(folder, "adapt", "p.comtl", "-", "--out", tmp_path / "m.comtl", stdin=new)
    assert "Model of 12 tasks" in result.stdout
    assert "6 tasks added" in result.stdout
    again = run(folder, "adapt", "h.comtl", "-", "--out", tmp_path / "n.comtl", stdin=new)
    assert "Model of 12 tasks" in again.stdout


def test_inspect(folder):
    shown = run(folder, "inspect", "h.comtl").stdout
    for text in ("HierarchicalRegressor", "Strongest features", "hours", "RMSE", "Fitted with"):
        assert text in shown
    found = json.loads(run(folder, "inspect", "h.comtl", "--json").stdout)
    assert found["strongest"][0]["feature"] == "hours"
    assert sum(len(group) for group in found["task_groups"]) == 6
    one = run(folder, "inspect", "h.comtl", "--task", "s03").stdout
    assert "Task s03" in one and "this task" in one
    assert json.loads(run(folder, "inspect", "h.comtl", "--task", "s03", "--json").stdout)["rows"]
    missing = run(folder, "inspect", "h.comtl", "--task", "t3", code=1)
    assert "6 tasks, such as s" in missing.stderr
    assert run(folder, "inspect", "c.comtl", "--task", "s03").stdout
    assert run(folder, "inspect", "p.comtl").stdout


def test_reports(folder, tmp_path):
    page = tmp_path / "fit.html"
    model = ["--model", "pooled", "--out", tmp_path / "m.comtl", "--report", page]
    run(folder, "fit", "train.csv", *FIT, *model)
    assert "score by school" in page.read_text()
    for extra in ([], ["--data", "train.csv"]):
        run(folder, "report", "h.comtl", "--out", tmp_path / "report.html", *extra)
        assert "score by school" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("place", "model"),
    [
        ("comtl.tables.fitting.choose_model", "auto"),
        ("comtl.engine.problem.alternate", "bifactor"),
    ],
)
def test_interrupted(place, model, folder, tmp_path):
    out = ["--model", model, "--out", tmp_path / "m.comtl"]
    with mock.patch(place, side_effect=KeyboardInterrupt):
        assert "Interrupted" in run(folder, "fit", "train.csv", *FIT, *out, code=130).stderr
    assert not (tmp_path / "m.comtl").exists()


def test_a_closed_pipe_is_quiet(folder):
    many = pd.concat([FRAME] * 200)[["school", "hours", "sex"]].to_csv(index=False)
    (folder / "many.csv").write_text(many)
    environment = {**os.environ, "PYTHONPATH": str(Path(comtl.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-m", "comtl", "predict", "h.comtl", "many.csv"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"school,prediction\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait()


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "train.csv"],
        ["fit", "train.csv", *FIT, "--model", "forest"],
        ["fit", "train.csv", *FIT, "--jobs", "0"],
        ["predict", "h.comtl"],
        ["predict", "h.comtl", "new.csv", "--interval", "1.5"],
        ["adapt", "p.comtl", "new.csv"],
        ["nothing"],
    ],
)
def test_wrong_usage(folder, arguments):
    result = run(folder, *arguments, code=2)
    assert "Error: " in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["predict", "train.csv", "new.csv"], "first comes the model"),
        (["predict", "none.comtl", "new.csv"], "comtl fit"),
        (["predict", ".", "new.csv"], "folder"),
        (["predict", "h.comtl", "new.csv", "--proba"], "--interval"),
        (["predict", "c.comtl", "new.csv", "--interval", "0.9"], "--model auto"),
        (["predict", "h.comtl", "new.csv", "--id", "nobody"], "--id"),
        (["predict", "h.comtl", "new.csv", "--out", "."], "folder"),
        (["predict", "h.comtl", "new.csv", "--out", "out.xlsx"], ".parquet"),
        (["adapt", "p.comtl", "train.csv", "--out", "x.comtl"], "knows already"),
        (["adapt", "p.comtl", "new.csv", "--out", "x.comtl"], "'score'"),
        (["fit", "train.csv", *FIT, "--out", "."], "folder"),
        (["fit", "train.csv", *FIT, "--number", "sex"], "'sex' holds no number, but in 113 rows"),
    ],
)
def test_errors_are_one_line(folder, arguments, text):
    result = run(folder, *arguments, code=1)
    assert text in result.stderr and len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_columns_named_like_predictions_are_refused(folder):
    frame = FRAME.drop(columns="score").assign(prediction=range(len(FRAME)), pupil="p")
    frame.to_csv(folder / "named.csv", index=False)
    told = run(folder, "predict", "h.comtl", "named.csv", "--id", "prediction", code=1)
    assert "'prediction' has the name of a column of predictions" in told.stderr
    told = run(folder, "predict", "h.comtl", "named.csv", "--id", "pupil", "--id", "hours")
    assert told.stdout.startswith("pupil,hours,school,prediction\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--out", "nowhere/m.comtl"), "there is no folder nowhere"),
        (("--report", "nowhere/page.html"), "there is no folder nowhere"),
        (("--report", "page.pdf"), ".html"),
    ],
)
def test_places_are_checked_before_the_fit(folder, arguments, words):
    with mock.patch("comtl.cli.fit_command.fit_table", side_effect=AssertionError):
        assert words in run(folder, "fit", "train.csv", *FIT, *arguments, code=1).stderr


def test_modules_come_when_they_are_named():
    code = "import comtl; comtl.tables.fit_table, comtl.plot.coclusters, comtl.datasets.make_syn1"
    python("-c", code)
    with pytest.raises(AttributeError, match="nothing"):
        comtl.nothing  # noqa: B018


@pytest.mark.parametrize("name", ["click", "rich"])
def test_missing_parts_are_named(name):
    with mock.patch.dict(sys.modules):
        for loaded in list(sys.modules):
            if loaded.startswith((f"{name}.", "comtl.cli.")):
                del sys.modules[loaded]
        # What Python takes for a module that cannot be found.
        sys.modules[name] = None
        with pytest.raises(SystemExit, match=rf'{name}.*pip install "comtl\[cli\]"'):
            cli.main()


def python(*arguments, folder=None):
    """Run Python with this comtl, wherever another one is installed."""
    environment = {**os.environ, "PYTHONPATH": str(Path(comtl.__file__).parents[1])}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def test_python_dash_m():
    assert comtl.__version__ in python("-m", "comtl", "--version")


def test_predict_loads_nothing_of_the_paper(folder):
    code = (
        "import sys; from comtl.cli.commands import comtl; "
        "comtl(['predict', 'h.comtl', 'new.csv'], standalone_mode=False); "
        "print([name for name in sys.modules if name.startswith(('comtl_', 'matplotlib'))])"
    )
    assert python("-c", code, folder=folder).splitlines()[-1] == "[]"


def test_commands_of_other_distributions_are_found(folder, tmp_path, monkeypatch):
    (tmp_path / "other_comtl.py").write_text(
        "import click\n@click.command(short_help='Say so.')\ndef told(): click.echo('told')\n"
    )
    (tmp_path / "other-1.dist-info").mkdir()
    (tmp_path / "other-1.dist-info" / "entry_points.txt").write_text(
        "[comtl.commands]\ntold = other_comtl:told\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert run(folder, "told").stdout == "told\n"
    assert "Say so." in run(folder, "--help").stdout


def test_where_the_paper_is_to_be_had(folder):
    with mock.patch("comtl.cli.commands.entry_points", return_value=()):
        lines = run(folder, "reproduce", "synthetic", code=1).stderr.splitlines()
    assert len(lines) == 1 and 'pip install "comtl[reproduce]"' in lines[0]


def test_progress_in_a_terminal_and_in_a_file():
    bar, lines = io.StringIO(), io.StringIO()
    console = Console(file=bar, force_terminal=True, width=100)
    with progress("toy", console, what="fits") as report:
        report(0, 3)
        report(3, 3)
    assert "3/3" in bar.getvalue()
    with progress("toy", Console(file=lines), what="fits", every=0.0) as report:
        for done in (1, 2, 3):
            report(done, 3)
    first, second, last = lines.getvalue().splitlines()
    assert (first, last) == ("toy: 1 of 3 fits done", "toy: 3 of 3 fits done")
    assert second.startswith("toy: 2 of 3 fits done, about")
