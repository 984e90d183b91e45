"""Runs: the same file whatever the processes and interruptions, and nothing computed twice."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

import comtl
import comtl_reproduction
from comtl_reproduction.cells import Cell, ExperimentError, Store, run_cells
from comtl_reproduction.experiment import Options, run_experiment
from toy_experiment import toy

SCRIPT = Path(__file__).with_name("toy_experiment.py")


def fail(n):
    if n == 2:
        raise ValueError("no such\nnumber")
    time.sleep(0.05 * n)
    return {"value": n}


def die(n):
    os.kill(os.getpid(), signal.SIGKILL)


def start(folder, pause, jobs):
    # The same packages as here, wherever others are installed.
    places = [str(Path(package.__file__).parents[1]) for package in (comtl, comtl_reproduction)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, str(SCRIPT), str(folder), str(pause), str(jobs)]
    # A shell starts what runs in the background with interrupts ignored, and Python keeps to that.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=heard
    )


def lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_rows(process, path, count):
    deadline = time.monotonic() + 120.0
    while lines(path) <= count:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    run_experiment(toy(folder), Options(), folder)
    return folder


def test_files_of_a_run(undisturbed):
    names = {path.name for path in undisturbed.iterdir()}
    assert names == {"calls", "toy.csv", "toy_times.csv", "toy.md"}
    assert lines(undisturbed / "toy.csv") == lines(undisturbed / "toy_times.csv") == 11
    assert (undisturbed / "toy.md").read_text().startswith("# A toy\n\n## RMSE (lower is better)")


def test_results_do_not_depend_on_the_number_of_processes(tmp_path, undisturbed):
    run_experiment(toy(tmp_path), Options(), tmp_path, jobs=2)
    for name in ("toy.csv", "toy.md"):
        assert (tmp_path / name).read_bytes() == (undisturbed / name).read_bytes()


def test_a_killed_run_goes_on_where_it_was(tmp_path, undisturbed):
    process = start(tmp_path, 0.15, 1)
    wait_for_rows(process, tmp_path / "toy.csv", 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    finished = {
        tuple(line.split(",")[1:3]) for line in (tmp_path / "toy.csv").read_text().splitlines()[1:]
    }
    assert 2 <= len(finished) < 10
    again = start(tmp_path, 0.0, 1)
    assert again.wait(120) == 0, again.stderr.read()
    again.stderr.close()
    assert (tmp_path / "toy.csv").read_bytes() == (undisturbed / "toy.csv").read_bytes()
    calls = Counter(tuple(line.split()) for line in (tmp_path / "calls").read_text().splitlines())
    assert len(calls) == 10
    assert all(calls[key] == 1 for key in finished)
    # Only the cell under way at the end was started again.
    assert sum(calls.values()) <= 11


def test_an_interrupted_run_ends_at_once_and_goes_on(tmp_path, undisturbed):
    process = start(tmp_path, 0.3, 2)
    wait_for_rows(process, tmp_path / "toy.csv", 1)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert "KeyboardInterrupt" in process.stderr.read()
    process.stderr.close()
    run_experiment(toy(tmp_path), Options(), tmp_path)
    assert (tmp_path / "toy.csv").read_bytes() == (undisturbed / "toy.csv").read_bytes()


def test_a_second_run_computes_nothing(tmp_path):
    for _ in range(2):
        run_experiment(toy(tmp_path), Options(repeats=2), tmp_path)
    assert lines(tmp_path / "calls") == 4


def test_other_methods_are_added_to_the_file(tmp_path):
    run_experiment(toy(tmp_path), Options(repeats=2, methods=("ITL",)), tmp_path)
    made = run_experiment(toy(tmp_path), Options(repeats=2, methods=("STL",)), tmp_path)
    assert made.tables[0].rows == ("STL", "ITL")
    assert lines(tmp_path / "calls") == 4


def stores(folder):
    """Where values and times are kept."""
    return Store(folder / "toy.csv", ["n"], ["value"]), Store(folder / "t.csv", ["n"], ["seconds"])


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failing_cell_is_named_and_the_others_are_kept(tmp_path, jobs):
    cells = [Cell({"n": n}, fail, {"n": n}) for n in (0, 1, 2, 3)]
    store, times = stores(tmp_path)
    with pytest.raises(ExperimentError, match="fit n=2 failed: ValueError: no such number"):
        run_cells(cells, store, times, jobs=jobs)
    if jobs == 1:
        assert cells[0] in store and cells[1] in store
    assert cells[2] not in store


def test_a_killed_process_is_an_error_with_a_remedy(tmp_path):
    cells = [Cell({"n": n}, die, {"n": n}) for n in (0, 1)]
    store, times = stores(tmp_path)
    with pytest.raises(ExperimentError, match="--jobs"):
        run_cells(cells, store, times, jobs=2)


def test_equal_keys_are_refused(tmp_path):
    cells = [Cell({"n": 1}, fail, {"n": 1}), Cell({"n": 1}, fail, {"n": 3})]
    with pytest.raises(ValueError, match="same keys"):
        run_cells(cells, *stores(tmp_path))
