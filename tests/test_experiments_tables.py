"""Statistics by hand-made examples, tables, the paper's figures, and drawings."""

import math

import pytest
from rich.console import Console
from scipy import stats

from comtl.experiments import paper
from comtl.experiments.figures import Heat, Lines, compose, heat, save, series
from comtl.experiments.statistics import differ, mean_and_error, winners
from comtl.experiments.tables import Entry, Table, tabulate


def sample(*values):
    return {str(repeat): value for repeat, value in enumerate(values)}


def rows(**methods):
    return [
        {"data": "syn1", "method": method, "repeat": str(repeat), "rmse": value}
        for method, values in methods.items()
        for repeat, value in enumerate(values)
    ]


# ---- statistics ---------------------------------------------------------------------------------


def test_mean_and_standard_error():
    mean, error = mean_and_error([1.0, 2.0, 3.0, 4.0])
    assert mean == 2.5
    # Variance 5/3 by hand.
    assert error == pytest.approx(math.sqrt(5 / 3) / 2)
    assert mean_and_error([7.0]) == (7.0, None)


def test_the_test_is_paired():
    """Far apart in each repeat, though the repeats overlap."""
    first, second = sample(1.0, 2.0, 3.0, 4.0), sample(1.11, 2.1, 3.12, 4.1)
    assert differ(first, second)
    assert stats.ttest_ind(list(first.values()), list(second.values())).pvalue > 0.5


def test_the_level_is_five_percent():
    """Gaps 1, 2, x: p by hand from t = mean / (sd / √3) with two degrees of freedom."""
    for gap, expected in ((1.5, True), (9.0, False)):
        gaps = [1.0, 2.0, gap]
        mean, error = mean_and_error(gaps)
        assert (2 * stats.t.sf(mean / error, 2) < 0.05) == expected
        assert differ(sample(*gaps), sample(0.0, 0.0, 0.0)) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (sample(1.0, 2.0), sample(1.0, 2.0), False),
        (sample(1.0, 2.0), sample(1.5, 2.5), True),
        (sample(0.1, 0.2, 0.3), sample(0.4, 0.5, 0.6), True),
        (sample(1.0), sample(2.0), True),
        (sample(1.0), sample(1.0), False),
        ({"0": 1.0}, {"1": 1.0}, True),
        (sample(0.0, 0.0), sample(0.0, 0.0), False),
    ],
)
def test_samples_that_no_test_can_take(first, second, expected):
    assert differ(first, second) is expected


def test_winners():
    samples = {"a": sample(1.0, 1.2, 0.9), "b": sample(1.1, 1.0, 1.1), "c": sample(2.0, 2.2, 2.1)}
    assert winners(samples) == {"a", "b"}
    assert winners(samples, lower_is_better=False) == {"c"}
    assert winners({"a": sample(1.0), "b": sample(1.1)}) == {"a"}
    assert winners({"a": sample(1.0, 1.0), "b": sample(1.0, 1.0)}) == {"a", "b"}
    assert winners({}) == frozenset()


# ---- tables -------------------------------------------------------------------------------------


def test_markdown_with_the_papers_figures():
    found = rows(BiFactor=[1.8, 1.9, 1.7], STL=[4.8, 4.7, 4.9], Own=[1.9, 1.8, 1.7])
    table = tabulate(
        found,
        "rmse",
        title="RMSE",
        row_order=paper.METHODS,
        paper={
            key: entry for key, entry in paper.SYNTHETIC.items() if key[0] in ("BiFactor", "ITL")
        },
        column_order=paper.SYNTHETIC_COLUMNS,
        note="A note.",
    )
    assert table.rows == ("STL", "ITL", "BiFactor", "Own")
    lines = table.markdown().splitlines()
    assert lines[0] == "## RMSE (lower is better)"
    assert lines[2] == "| method | syn1 | syn2 | syn3 | syn4 | syn5 |"
    assert lines[4] == "| STL | 4.80 (0.06) |  |  |  |  |"
    assert lines[5].startswith("| ITL | *paper 1.98 (0.08)* | *paper 2.10 (0.09)* |")
    bold = "| BiFactor | **1.80 (0.06)**<br>*paper 1.85 (0.08)* | *paper **1.85 (0.06)*** |"
    assert lines[6].startswith(bold)
    assert lines[7].startswith("| Own | **1.80 (0.06)** |")
    assert lines[-1] == "A note."


def test_a_single_repeat_and_missing_figures():
    found = rows(STL=[2.0], ITL=[1.0], MTFL=[math.nan], CMTL=[""])
    table = tabulate(found, "rmse", title="F", lower_is_better=False, digits=1)
    assert table.ours == {("STL", "syn1"): Entry(2.0, None, True), ("ITL", "syn1"): Entry(1.0)}
    assert table.markdown().splitlines()[4:] == ["| STL | **2.0** |", "| ITL | 1.0 |"]
    assert not any(
        e.bold for e in tabulate(found, "rmse", title="n", lower_is_better=None).ours.values()
    )


def test_the_terminal_shows_the_same():
    table = Table(
        "RMSE", ("ITL",), ("syn1",), {("ITL", "syn1"): Entry(1.5, 0.25, True)}, paper.SYNTHETIC
    )
    console = Console(record=True, width=80, file=open("/dev/null", "w"))
    with console.file:
        console.print(table.rich())
    text = console.export_text()
    for part in ("RMSE (lower is better)", "ITL", "1.50 (0.25)", "paper 1.98 (0.08)"):
        assert part in text


# ---- the paper ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "count", "key", "expected"),
    [
        (paper.SYNTHETIC, 35, ("STL", "syn3"), Entry(5.5, 0.04)),
        (paper.SYNTHETIC, 35, ("BiFactor", "syn2"), Entry(1.85, 0.06, True)),
        (paper.SYNTHETIC, 35, ("TriFactor", "syn5"), Entry(1.68, 0.10, True)),
        (paper.SCHOOL, 21, ("SHAMO", "30%"), Entry(10.92, 0.05)),
        (paper.SCHOOL, 21, ("TriFactor", "40%"), Entry(10.12, 0.10, True)),
        (paper.SENTIMENT, 56, ("STL", "I"), Entry(0.749, 0.003, True)),
        (paper.SENTIMENT, 56, ("BiFactor", "VII"), Entry(0.574, 0.052)),
        (paper.SENTIMENT, 56, ("CMTL", "II"), Entry(0.557, 0.016)),
        (paper.NEWSGROUPS, 30, ("TriFactor", "Task 8"), Entry(0.66, 0.01)),
        (paper.NEWSGROUPS, 30, ("GO-MTL", "Task 9"), Entry(0.38, 0.0)),
    ],
)
def test_figures_of_the_paper(entries, count, key, expected):
    assert len(entries) == count
    assert entries[key] == expected
    assert {method for method, _ in entries} <= set(paper.METHODS)


def test_setups_of_the_paper():
    for name, setup in paper.SENTIMENT_SETUPS.items():
        assert setup.tasks == 14 * setup.splits + 2 * (name == "VI")
    groups = {group for pair in paper.NEWSGROUPS_PAIRS.values() for group in pair}
    assert len(groups) == 20


# ---- drawings -----------------------------------------------------------------------------------


def test_figures_are_the_same_bytes_each_time(tmp_path):
    found = [
        {"method": method, "K": str(k), "K2": str(k2), "repeat": str(r), "rmse": k + k2 + 0.1 * r}
        for method in ("BiFactor", "GO-MTL")
        for k in (2, 10)
        for k2 in (3, 5)
        for r in range(2)
    ]
    files = []
    for folder in ("a", "b"):
        labels = {"title": "t", "x_label": "K1", "y_label": "K2", "value_label": "RMSE"}
        lines = series(found, "rmse", x="K", order=("GO-MTL",))
        assert [line.label for line in lines] == ["GO-MTL", "BiFactor"]
        panels = [
            Lines("syn5", "λ2", "RMSE", lines, log_x=True),
            Lines("syn5", "K", "RMSE", lines),
            heat(found[:-2], "rmse", x="K", y="K2", **labels),
            Heat(**labels, x=("2",), y=("2", "3"), values=((1.0,), (math.nan,))),
        ]
        written = save(compose(panels), tmp_path / folder / "toy", "-all")
        files.append([path.read_bytes() for path in written])
        assert [path.name for path in written] == ["toy-all.png", "toy-all.svg"]
    assert files[0] == files[1]
    assert b"<dc:date>" not in files[0][1]
