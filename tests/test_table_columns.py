"""Kinds of columns: guessed, refused, encoded."""

from datetime import date, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from comtl.tables import Encoder, TableError, fit_table
from comtl.tables.infer_types import SkippedColumn, infer_column
from comtl.tables.labels import match_tasks, read_target, read_tasks
from comtl.tables.values import as_table


def column(*values):
    return pa.chunked_array([list(values)])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], "number"),
        ([1.5, None], "number"),
        (["1", "2.5", "NA"], "number"),
        (["yes", "no", "yes"], "yes/no"),
        (["TRUE", "FALSE", None], "yes/no"),
        ([True, False], "yes/no"),
        (["red", "green"], "category"),
        (["yes", "no", "maybe"], "category"),
        (["007", "012", "100"], "category"),
        (["Yes", "yes", "no"], "category"),
        (["A", "B", "1"], "category"),
        (["2024-01-31", "2024-02-01"], "date"),
        (["2024-01-31T10:00:00", "2024-02-01 11:00"], "date"),
        (["3 Jan 2024", "4 Feb 2024", None], "date"),
        ([date(2024, 1, 31), date(2024, 2, 1)], "date"),
    ],
)
def test_kinds(values, kind):
    assert infer_column(column(*values), "x").kind == kind


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["01/02/2024", "02/03/2024"], "--date-format dmy or --date-format mdy"),
        (["10:30", "11:45"], "times"),
        ([timedelta(hours=1)], "times"),
        (["1,234", "5,678"], "--decimal , for the first or --decimal . for the second"),
        (["$5", "€7"], "with signs, such as '$5'"),
        (["1,2,3", "2,1"], "with signs"),
        (["12,34,567", "1"], "with signs"),
        (["(5)", "3"], "with signs"),
        (["1", "2", "3", "unknown"], "mixes numbers and text such as 'unknown'"),
        ([f"pupil {i}" for i in range(30)], "30 different texts in 30 rows"),
        (["a long sentence that nobody will ever write a second time " + c for c in "ab"], "free"),
        ([[1, 2], [3]], "list"),
    ],
)
def test_refused_with_advice(values, text):
    found = infer_column(column(*values), "x")
    assert isinstance(found, SkippedColumn) and found.refused
    assert text in found.why
    assert "--drop x" in found.why


@pytest.mark.parametrize("values", [[5, 5], ["a", "a"], [None, None], ["", "NA"], [True, True]])
def test_constants_are_left_out(values):
    found = infer_column(column(*values), "x")
    assert isinstance(found, SkippedColumn) and not found.refused
    assert "left out" in found.why


@pytest.mark.parametrize(
    ("values", "expected", "decimal"),
    [
        (["12 %", "5%", None], [12, 5, np.nan], "."),
        (["$5", "-$7.50", "9"], [5, -7.5, 9], "."),
        (["1 234", "5\u202f678.5", "1'000"], [1234, 5678.5, 1000], "."),
        (["1,234.50", "3"], [1234.5, 3], "."),
        (["3,14", "2,71", "NA"], [3.14, 2.71, np.nan], ","),
        (["1.234,50 €", "12,1 €"], [1234.5, 12.1], ","),
        (["0,5", "1,234"], [0.5, 1.234], ","),
    ],
)
def test_numbers_with_signs_are_read_where_there_is_one_way(values, expected, decimal):
    found = infer_column(column(*values), "x")
    assert (found.kind, found.decimal) == ("number", decimal)
    filled = np.where(np.isnan(expected), found.fill, expected)
    np.testing.assert_array_equal(found.encode(column(*values))[0][:, 0], filled)
    with pytest.raises(TableError, match="'1/2'"):
        found.encode(column("1/2"))


def test_the_decimal_mark_may_be_said():
    for mark, value in ((",", 1.234), (".", 1234.0)):
        found = infer_column(column("1,234", "1,234", "5,678"), "x", decimal=mark)
        assert (found.decimal, found.fill) == (mark, value)
    assert infer_column(column("1.234", "1.234", "9.9"), "x", decimal=",").fill == 1.234
    assert infer_column(column("1.234", "1.234", "5.678"), "x", decimal=",").fill == 1234.0
    table = pa.table(
        {"store": ["a", "b"] * 20, "x": range(40), "y": [f"{i},5 €" for i in range(40)]}
    )
    table = table.append_column("z", pa.array([f"{i % 7},25 %" for i in range(40)]))
    model = fit_table(table, task="store", target="y", model="pooled", score=False)
    assert [one.name for one in model.encoder.columns] == ["x", "z"]
    assert np.abs(model.predict(table) - np.arange(40) - 0.5).max() < 0.5
    with pytest.raises(ValueError, match="decimal"):
        fit_table(table, task="store", target="y", decimal=";")


def test_names_in_advice_can_be_pasted():
    found = infer_column(column("$5", "€7"), "support calls")
    assert "--drop 'support calls'" in found.why


def test_forced_kinds():
    assert infer_column(column(1, 2, 10), "x", "category").levels == ("1", "10", "2")
    assert infer_column(column("2024-01-31", "2024-02-01"), "x", "category").kind == "category"
    found = infer_column(column("1", "2", "unknown"), "x", "number")
    assert (found.kind, found.missing, found.fill) == ("number", 1, 1.5)
    with pytest.raises(TableError, match=r"'1,234'"):
        infer_column(column("1", "1,234"), "x", "number")
    assert not infer_column(column("", "?", None), "x", "number").refused
    with pytest.raises(TableError, match=r"'town' holds no number, but in 3 rows text such as 'L"):
        Encoder.of(
            pa.table({"town": ["York", "Leeds", "?", "York"], "age": range(4)}), number=["town"]
        )


def test_all_refused_columns_are_named():
    table = pa.table({"when": ["01/02/2024", "02/03/2024"], "cost": ["$1", "€2"], "ok": [1, 2]})
    with pytest.raises(TableError, match=r"'when'.*Also refused: 'cost'"):
        Encoder.of(table)


def test_missing_values_are_filled_and_marked():
    table = pa.table({"a": [1.0, None, 5.0, 3.0], "c": ["x", None, "y", "x"]})
    encoder, _ = Encoder.of(table)
    assert encoder.names == ("a", "a missing", "c=x", "c=y", "c missing")
    expected = [[1, 0, 1, 0, 0], [3, 1, 0, 0, 1], [5, 0, 0, 1, 0], [3, 0, 1, 0, 0]]
    np.testing.assert_array_equal(encoder.encode(table).X.to_numpy(), expected)
    with pytest.raises(TableError, match="--missing impute"):
        Encoder.of(table, missing="refuse")


def test_what_training_had_not_is_told():
    encoder, _ = Encoder.of(pa.table({"a": [1.0, 2.0, 4.0], "c": ["x", "y", "x"]}))
    encoded = encoder.encode(pa.table({"c": ["z", "x", None], "a": [None, 1.0, 2.0], "d": [0] * 3}))
    np.testing.assert_array_equal(encoded.X, [[2, 0, 0], [1, 1, 0], [2, 0, 0]])
    assert len(encoded.notes) == 3
    assert "1 missing value, none in training; replaced by 2" in encoded.notes[0]
    assert "1 row with 1 unknown level, such as 'z'" in encoded.notes[1]


def test_bools_match_their_words():
    encoder, _ = Encoder.of(pa.table({"a": [True, False]}))
    X = encoder.encode(pa.table({"a": ["true", "False", "TRUE"]})).X
    assert X["a=True"].tolist() == [1.0, 0.0, 1.0]


def test_wide_tables_are_sparse():
    rng = np.random.default_rng(0)
    levels = [f"level {i}" for i in rng.integers(0, 300, 2000)]
    table = pa.table({"a": rng.normal(size=2000), "c": levels})
    encoder, _ = Encoder.of(table)
    X = encoder.encode(table).X
    assert sparse.issparse(X) and X.shape == (2000, len(set(levels)) + 1)
    np.testing.assert_allclose(encoder.spreads, X.toarray().std(axis=0))
    few, _ = Encoder.of(table.slice(0, 30), category=["c"])
    assert not few.sparse


def test_names_are_unique():
    encoder, _ = Encoder.of(pa.table({"a": ["x", "y"], "a=x": [1, 2]}))
    assert encoder.names == ("a=x", "a=y", "a=x (2)")


def test_identifiers_are_noted():
    _, notes = Encoder.of(pa.table({"id": np.arange(50)[::-1] * 2, "age": np.arange(50) % 7}))
    assert len(notes) == 1 and "--drop id" in notes[0]


# ---- tasks and targets --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 1], [3, 1]),
        ([3.0, 1.0], [3, 1]),
        ([2**60 + 1, 5], [2**60 + 1, 5]),
        (["b", "a"], ["b", "a"]),
        (["007", "7"], ["007", "7"]),
        ([True, False], ["True", "False"]),
    ],
)
def test_task_labels_keep_their_value(values, expected):
    assert read_tasks(column(*values), "t").tolist() == expected


def test_words_as_task_labels():
    assert read_tasks(column("NA", "DE"), "t", True).tolist() == ["NA", "DE"]
    assert read_tasks(column(1, 2), "t", True).tolist() == ["1", "2"]


@pytest.mark.parametrize(
    ("tasks", "values", "expected"),
    [
        ([1, 7], ["7", "007", "x", None], [7, 0, 0, 0]),
        ([0, 1], [1.0, None, 5.0], [1, 2, 2]),
        (["1", "a"], [1, None], ["1", ""]),
        (["1", "a"], [1.0, None], ["1", ""]),
    ],
)
def test_tasks_are_matched_in_the_type_of_the_model(tasks, values, expected):
    assert match_tasks(column(*values), np.array(tasks)).tolist() == expected


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.5, 2.5, 3], "regression"),
        ([1, 2, 3], "regression"),
        ([0, 1, 0], "classification"),
        (["0", "1", "0"], "classification"),
        (["a", "b", "a"], "classification"),
        ([True, False, True], "classification"),
        ([0.5, 1.5, 0.5], "regression"),
        (["1.5", "2.5", "7"], "regression"),
    ],
)
def test_kind_of_the_target(values, kind):
    assert read_target(column(*values), "y").kind == kind


def test_classes_keep_their_type():
    assert read_target(column(0, 1, None, 1), "y").values[[0, 1, 3]].tolist() == [0, 1, 1]
    assert read_target(column(1.0, 2.0, 1.0), "y").values.tolist() == [1, 2, 1]
    found = read_target(column("None", "x", "None", "NA"), "y")
    assert found.missing.tolist() == [False, False, False, True]


def test_frames_of_any_make():
    data = {"a": [1, 2], "b": ["x", "y"]}
    for frame in (pd.DataFrame(data), pl.DataFrame(data), pa.table(data)):
        assert as_table(frame).to_pydict() == data
    categories = pd.DataFrame({"b": pd.Categorical(["x", "y", "x"])})
    assert infer_column(as_table(categories)["b"], "b").levels == ("x", "y")
    mixed, empty = pd.DataFrame({"a": [1, "x"]}), pd.DataFrame({"a": []})
    for wrong in ([[1, 2]], np.ones((2, 2)), mixed, empty):
        with pytest.raises(TableError):
            as_table(wrong)
