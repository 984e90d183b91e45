"""The experiments of the paper: their cells, and the tables and figures made of finished ones."""

from itertools import product

import numpy as np
import pytest

from comtl_reproduction import newsgroups, regressions, sensitivity, sentiment
from comtl_reproduction.command import EXPERIMENTS
from comtl_reproduction.experiment import Options
from comtl_reproduction.tables import Entry, printed, tabulate


def test_every_experiment_of_the_paper_is_there():
    names = ("synthetic", "school", "sentiment", "newsgroups", "sensitivity", "convergence")
    assert tuple(EXPERIMENTS) == names


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_cells_are_named_once_and_carry_the_columns_of_the_file(name):
    experiment = EXPERIMENTS[name]
    found = []
    for options in (Options(), Options(repeats=6), Options(quick=True)):
        cells = experiment.cells(options)
        named = [tuple(cell.keys.values()) for cell in cells]
        assert len(set(named)) == len(named) > 0
        assert {tuple(cell.keys) for cell in cells} == {experiment.key_columns}
        assert {cell.keys["method"] for cell in cells} <= set(experiment.methods)
        found.append(set(named))
    some, more, quick = found
    assert some < more and len(quick) < len(some)


def test_the_tables_of_the_paper_are_covered():
    for name, count in {"synthetic": 5, "school": 3, "sentiment": 7, "newsgroups": 10}.items():
        rows, columns = (set(names) for names in zip(*printed(name), strict=True))
        assert rows <= set(EXPERIMENTS[name].methods)
        cells = EXPERIMENTS[name].cells(Options())
        assert {cell.keys["data"] for cell in cells} == columns and len(columns) == count
        assert len(cells) == len(EXPERIMENTS[name].methods) * count * 5
    assert printed("sentiment")["TriFactor", "VII"] == Entry(0.632, 0.029, True)


def test_a_table_has_means_errors_and_the_best():
    values = {"STL": (4.8, 4.7, 4.9), "ITL": (2.0, 1.9, 2.1), "BiFactor": (1.9, 2.0, 1.8)}
    rows = [
        {"data": "syn1", "method": method, "repeat": str(repeat), "rmse": value}
        for method, sample in values.items()
        for repeat, value in enumerate((*sample, "" if method == "STL" else float("nan")))
    ]
    beside = {("SHAMO", "syn1"): Entry(3.63, 0.22), ("ITL", "syn1"): Entry(1.98, 0.08, True)}
    table = tabulate(rows, "rmse", title="RMSE", row_order=["ITL", "MTL"], paper=beside)
    assert table.rows == ("ITL", "STL", "BiFactor", "SHAMO")
    assert table.markdown().splitlines() == [
        "## RMSE (lower is better)",
        "",
        "| method | syn1 |",
        "| --- | --- |",
        "| ITL | **2.00 (0.06)**<br>*paper **1.98 (0.08)*** |",
        "| STL | 4.80 (0.06) |",
        "| BiFactor | **1.90 (0.06)** |",
        "| SHAMO | *paper 3.63 (0.22)* |",
    ]


def test_newsgroup_tables_tell_the_span_from_the_residual():
    rows = [
        {
            "data": f"Task {target}",
            "method": method,
            "repeat": str(repeat),
            "f": 0.5,
            "f_cut": 0.6,
            "f_residual": "" if method == "ridge" else 0.8,
            "f_cut_residual": "" if method == "ridge" else 0.9,
            "setting": "",
        }
        for target, method, repeat in product(range(1, 11), ("ridge", "BiFactor"), range(2))
        if (target, repeat) != (10, 1)
    ]
    plain, means, cut, _ = newsgroups.summary(rows)
    assert plain.ours["BiFactor + residual", "Task 3"].mean == 0.8
    assert plain.ours["BiFactor", "Task 3"].mean == 0.5
    assert cut.ours["BiFactor + residual", "Task 3"].mean == 0.9
    assert ("ridge + residual", "Task 3") not in plain.ours
    # The second repeat lacks a task, so that only the first has a mean over all.
    assert means.ours["ridge", "all tasks"].error is None
    assert means.ours["ridge", "tasks 1-6"].error == pytest.approx(0.0)
    assert plain.paper["GO-MTL", "Task 8"].mean == 0.70


def test_sensitivity_draws_a_figure_for_each_set(tmp_path):
    rng = np.random.default_rng(0)
    cells = sensitivity.cells(Options(repeats=2))
    rows = [
        {**{name: str(value) for name, value in cell.keys.items()}, "value": rng.random()}
        for cell in cells
        if cell.keys["data"] != "school"
    ]
    files = sensitivity.figures(rows, tmp_path / "sensitivity")
    assert {path.name for path in files if path.suffix == ".png"} == {
        "sensitivity-syn5.png",
        "sensitivity-sentiment.png",
    }
    assert all(path.stat().st_size > 5_000 for path in files)
    titles = [table.title for table in sensitivity.summary(rows)]
    assert len(titles) == 4 and "syn5: RMSE by λ2, K = 2" in titles


def test_a_cell_of_each_experiment_on_real_data(data_dir, monkeypatch):
    monkeypatch.setenv("COMTL_DATA", str(data_dir))
    assert regressions.work("20%", "STL", 0)["rmse"] == pytest.approx(10.31, abs=0.08)
    found = newsgroups.work("Task 2", "ridge", 0)
    assert found["f"] > 0.9 and found["f_residual"] == ""
    assert set(found) == set(newsgroups.COLUMNS)
    # One task's majority is the other's minority: a pooled model has little to say.
    pooled = sentiment.work("II", "STL", 0)
    assert pooled["f"] < 0.5 < pooled["f_cut"] < 0.6
    assert set(pooled) == set(sentiment.COLUMNS)
