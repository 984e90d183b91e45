"""The command line, and the experiment on convergence at toy size."""

import errno
import os
import subprocess
import sys
from dataclasses import replace
from unittest import mock

import pytest
from click.testing import CliRunner

from comtl_reproduction import conditioning, convergence
from comtl_reproduction.cells import Cell, ExperimentError
from comtl_reproduction.command import EXPERIMENTS, reproduce_command
from comtl_reproduction.experiment import Experiment, Options, require_data, run_experiment
from toy_experiment import METHODS, toy


def where_data_is():
    return {"value": os.environ.get("COMTL_DATA", "nowhere")}


def missing_data():
    raise FileNotFoundError("no school.mat: set COMTL_DATA to the folder that holds it")


def interrupted():
    raise KeyboardInterrupt


def single(name, work):
    return Experiment(
        name, name, ("A",), ("n",), ("value",), lambda _: [Cell({"n": 0}, work)], lambda rows: []
    )


@pytest.fixture
def run(tmp_path):
    """Run ``comtl reproduce`` on toys, in a folder of its own."""
    toys = {"toy": toy(tmp_path)}
    toys |= {work.__name__: single(work.__name__, work) for work in WORKS}
    command = reproduce_command(toys)
    with mock.patch.dict(os.environ, COMTL_DATA="before"):
        yield lambda *arguments: CliRunner().invoke(
            command, [*arguments, "--jobs", "1", "--out", str(tmp_path / "out")]
        )


WORKS = (where_data_is, missing_data, interrupted)


def test_reproduce(run, tmp_path):
    result = run("toy", "--repeats", "2", "--methods", "itl, STL")
    assert result.exit_code == 0, result.output
    assert "RMSE (lower is better)" in result.stdout
    assert str(tmp_path / "out" / "toy.csv") in result.stdout
    assert "toy: 4 of 4 fits done" in result.stderr
    assert (tmp_path / "calls").read_text().split("\n")[0] == "STL 0"
    assert run("toy", "--quick", "--repeats", "1").exit_code == 0
    names = {path.name for path in (tmp_path / "out").glob("toy-quick*")}
    assert names == {"toy-quick.csv", "toy-quick_times.csv", "toy-quick.md"}
    page = (tmp_path / "out" / "toy-quick.md").read_text()
    assert "Quick version" in page and "not comparable" in page
    assert "Quick version" not in (tmp_path / "out" / "toy.md").read_text()


def test_data_folder_is_set_for_the_run(run, tmp_path):
    assert run("where_data_is", "--data", str(tmp_path)).exit_code == 0
    csv = (tmp_path / "out" / "where_data_is.csv").read_text()
    assert csv == f"n,value\n0,{tmp_path.resolve()}\n"


@pytest.mark.parametrize("name", ["school", "sentiment", "newsgroups", "sensitivity", "all"])
def test_missing_data_are_an_error_before_any_work(name, tmp_path, monkeypatch):
    monkeypatch.delenv("COMTL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    with mock.patch("comtl_reproduction.command.run_experiment", side_effect=AssertionError):
        result = CliRunner().invoke(reproduce_command(EXPERIMENTS), [name])
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "--data" in line and "not shipped" in line and "cell" not in line
    assert list(tmp_path.iterdir()) == []


def test_data_are_not_asked_for_where_all_fits_are_done(tmp_path, monkeypatch):
    monkeypatch.delenv("COMTL_DATA", raising=False)
    experiment = replace(toy(tmp_path), files=lambda options: ("school",))
    with pytest.raises(ExperimentError, match="--data"):
        require_data(experiment, Options(), tmp_path)
    run_experiment(experiment, Options(), tmp_path)
    require_data(experiment, Options(), tmp_path)


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (["toy", "--methods", "STL,KNN"], 2, ["KNN", *METHODS]),
        (["missing_data"], 1, ["fit n=0 failed", "set COMTL_DATA"]),
        (["interrupted"], 130, ["the same command goes on"]),
        (["nothing"], 2, ["toy", "all"]),
        (["toy", "--repeats", "0"], 2, ["--repeats"]),
        (["toy", "--data", "/no/such/folder"], 2, ["/no/such/folder"]),
    ],
)
def test_errors_are_one_line(run, arguments, code, texts):
    result = run(*arguments)
    assert result.exit_code == code
    last = result.stderr.splitlines()[-1]
    assert all(text in last for text in texts), result.stderr
    assert "Traceback" not in result.stderr


def test_a_folder_that_cannot_be_written_is_found_before_any_work(run, tmp_path):
    # Root may write anywhere but on a file system that is read-only.
    full = OSError(errno.EROFS, "Read-only file system")
    with mock.patch("comtl_reproduction.command.TemporaryFile", side_effect=full):
        result = run("toy", "--repeats", "1")
    assert result.exit_code == 1 and "(Read-only file system); name another" in result.stderr
    assert str(tmp_path / "out") in result.stderr and not (tmp_path / "calls").exists()


def test_a_damaged_file_is_an_error(run, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "toy.csv").write_text("other,header\n")
    result = run("toy")
    assert result.exit_code == 1
    assert "Move it away" in result.stderr


def test_all_runs_each_experiment_that_knows_the_method(run, tmp_path):
    assert run("all", "--methods", "STL", "--repeats", "1").exit_code == 0
    assert {path.stem for path in (tmp_path / "out").glob("*.md")} == {"toy"}


def test_other_commands_load_nothing_of_it():
    code = "import sys; from comtl.cli.commands import comtl; comtl.get_command(None, 'predict')"
    code += "; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "comtl.cli.predict_command" in loaded
    assert not [name for name in loaded if name.startswith("comtl_reproduction")]


# ---- convergence --------------------------------------------------------------------------------


def test_convergence_at_toy_size(tmp_path):
    with (
        mock.patch.object(convergence, "SETS", ("syn1", "syn4")),
        mock.patch.object(convergence, "TOLERANCES", (1e-2, 1e-3)),
        mock.patch.object(convergence, "SIZES", ((12, 8, 2), (20, 10, 3))),
        mock.patch.object(convergence, "STRENGTHS", ((0.1, 0.1), (10.0, 1e-3))),
    ):
        cells = convergence.cells(Options(repeats=2))
        assert len(cells) == 2 * 2 * 3 * 2 + 3 * 2 * (2 + 1)
        made = run_experiment(convergence.CONVERGENCE, Options(repeats=2), tmp_path)
    assert len(made.tables) == 2 + 6
    assert [path.suffix for path in made.files] == [".csv", ".csv", ".md", ".png", ".svg"]
    page = (tmp_path / "convergence.md").read_text()
    assert "![convergence](convergence.png)" in page
    sweeps = made.tables[1].ours
    assert sweeps["TriFactor-free", "syn4"].mean > sweeps["TriFactor", "syn4"].mean
    for table in made.tables[2:]:
        for setting in table.rows:
            plain, helped = (table.ours[setting, name].mean for name in table.columns[1:])
            assert helped < plain


@pytest.mark.parametrize("scene", conditioning.SCENES)
def test_condition_numbers_agree(scene):
    system = conditioning.feature_system((15, 10, 2), scene, 0.1, 1e-2, 0)
    exact = conditioning.condition_number(system)
    assert conditioning.condition_number(system, explicit=0) == pytest.approx(exact, rel=1e-2)
