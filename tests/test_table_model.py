"""Models of tables: fitted, saved, adapted, and the same from every format."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import comtl
from comtl.cli.output import verdict
from comtl.tables import TableError, TableModel, fit_table, load_model, read_table
from comtl.tables.fitting import compare_table
from small_tables import pupils

FRAME = pupils()
SCORES = FRAME.drop(columns="passed")
QUICK = {"task": "school", "target": "score", "model": "hierarchical", "score": False}


@pytest.fixture(scope="module")
def regression():
    return fit_table(SCORES, **{**QUICK, "score": True})


def test_a_fit(regression):
    assert regression.kind == "regression"
    assert regression.encoder.names[:2] == ("age", "age missing")
    assert regression.rows == len(FRAME) and len(regression.estimator.tasks_) == 8
    assert list(regression.estimator.feature_names_in_) == list(regression.encoder.names)
    scores = regression.comparison.overall
    assert scores["model"] < scores["pooled"] < scores["mean"]
    assert np.corrcoef(regression.predict(SCORES), FRAME.score)[0, 1] > 0.95
    lower, upper = regression.predict_interval(SCORES, 0.9)
    assert 0.8 < np.mean((lower < FRAME.score) & (FRAME.score < upper)) < 1.0
    with pytest.raises(TableError, match="--interval"):
        regression.predict_proba(SCORES)


def test_files_give_the_same_model_to_the_last_digit(regression, tmp_path):
    SCORES.to_csv(tmp_path / "t.csv", index=False)
    SCORES.to_parquet(tmp_path / "t.parquet")
    SCORES.to_feather(tmp_path / "t.feather")
    for name in ("t.csv", "t.parquet", "t.feather"):
        model = fit_table(read_table(tmp_path / name).table, **QUICK)
        np.testing.assert_array_equal(model.estimator.coef_, regression.estimator.coef_)
        np.testing.assert_array_equal(model.estimator.tasks_, regression.estimator.tasks_)
        assert model.encoder.columns == regression.encoder.columns
    model = fit_table(pl.from_pandas(SCORES), **QUICK)
    np.testing.assert_array_equal(model.estimator.coef_, regression.estimator.coef_)


@pytest.mark.parametrize(
    "labels", [lambda n: n, lambda n: float(n), lambda n: f"{n:03d}", lambda n: n % 2 == 0]
)
def test_task_labels_are_the_same_in_csv_and_parquet(labels, tmp_path):
    frame = SCORES.assign(school=[labels(int(name[1:])) for name in SCORES.school])
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    ones = [fit_table(read_table(p).table, **QUICK) for p in sorted(tmp_path.iterdir())]
    assert ones[0].estimator.tasks_.tolist() == ones[1].estimator.tasks_.tolist()
    np.testing.assert_array_equal(ones[0].estimator.coef_, ones[1].estimator.coef_)


def test_saved_and_loaded(regression, tmp_path):
    regression.save(tmp_path / "m.comtl")
    again = load_model(tmp_path / "m.comtl")
    np.testing.assert_array_equal(again.predict(SCORES), regression.predict(SCORES))
    assert again.encoder.columns == regression.encoder.columns
    assert again.versions["comtl"] == comtl.__version__
    assert again.comparison.overall == regression.comparison.overall
    assert verdict(again.comparison) == verdict(regression.comparison)


def test_other_files_are_no_models(tmp_path):
    comtl.HierarchicalRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 3.0]).save(tmp_path / "e")
    with pytest.raises(TableError, match=r"comtl\.load"):
        load_model(tmp_path / "e")
    with pytest.raises(TableError, match="comtl fit"):
        load_model(tmp_path / "none")
    with pytest.raises(TableError, match="folder"):
        load_model(tmp_path)


def test_a_classification():
    frame = FRAME.drop(columns="score")
    model = fit_table(frame, **{**QUICK, "target": "passed"})
    assert model.kind == "classification" and model.classes.tolist() == ["no", "yes"]
    chances = model.predict_proba(frame)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert (model.predict(frame) == frame.passed).mean() > 0.8
    with pytest.raises(TableError, match="--model auto"):
        model.predict_interval(frame)


def test_what_is_new_is_warned_about(regression):
    new = SCORES.head(3).assign(school=["s00", "other", None])
    with pytest.warns(UserWarning, match="2 rows of 3 with 2 tasks"):
        found = regression.predict(new)
    assert np.isfinite(found).all()
    with pytest.raises(TableError, match="--unseen mean"):
        regression.prepare(new, "refuse")


def test_rows_without_a_target_are_left_out():
    frame = SCORES.copy()
    frame.loc[:4, "score"] = np.nan
    model = fit_table(frame, **QUICK)
    assert model.rows == len(frame) - 5
    assert "5 rows without a target" in model.notes[0]
    same = fit_table(frame.iloc[5:], **QUICK)
    np.testing.assert_array_equal(model.estimator.coef_, same.estimator.coef_)


def test_an_index_of_pandas_is_no_column():
    named = SCORES.assign(row=range(len(SCORES))).set_index("row")
    for frame in (named, SCORES[SCORES.index >= 60]):
        model = fit_table(frame, **{**QUICK, "model": "pooled"})
        assert {column.name for column in model.encoder.columns} < set(SCORES.columns)
        assert len(model.predict(frame)) == len(frame)


def test_weights_count():
    frame = SCORES.assign(w=np.where(SCORES.index < 60, 0, 1))
    model = fit_table(frame, **QUICK, weight="w")
    assert "w" not in {column.name for column in model.encoder.columns}
    kept = fit_table(frame[frame.w == 1].drop(columns="w"), **{**QUICK, "model": "pooled"})
    other = fit_table(frame, **{**QUICK, "model": "pooled"}, weight="w")
    np.testing.assert_allclose(
        kept.predict(SCORES), other.predict(SCORES), rtol=0.02, err_msg="weights of zero"
    )


@pytest.mark.parametrize("model", ["bifactor", "trifactor", "pooled", "separate", "hierarchical"])
def test_new_tasks(model, tmp_path):
    few = pupils(100)[["school", "hours", "sex", "score"]]
    old, new = few[few.school < "s06"], few[few.school >= "s06"]
    fitted = fit_table(old, **{**QUICK, "model": model})
    adapted = fitted.adapt(new)
    assert isinstance(adapted, TableModel)
    assert len(adapted.estimator.tasks_) == 8 and len(fitted.estimator.tasks_) == 6
    assert adapted.rows == len(few)
    assert "2 tasks added" in adapted.notes[-1]
    adapted.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.comparison is None
    np.testing.assert_array_equal(again.predict(new), adapted.predict(new))
    with pytest.raises(ValueError, match="knows already"):
        fitted.adapt(old)


def test_new_tasks_that_cannot_be():
    numbers = SCORES.assign(school=SCORES.school.str[1:].astype(int))
    fitted = fit_table(numbers, **{**QUICK, "model": "pooled"})
    with pytest.raises(TableError, match="name the new tasks by numbers"):
        fitted.adapt(SCORES)


def test_compared_anew(regression):
    again = compare_table(regression, SCORES)
    assert again.overall == pytest.approx(regression.comparison.overall)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"task": "scool"}, "did you mean 'school'"),
        ({"target": "result"}, "--target: the table has no column 'result'"),
        ({"target": "target"}, r"no column 'target'\. Its columns are"),
        ({"target": "school"}, "name two columns"),
        ({"drop": ["x"]}, "--drop"),
        ({"drop": ["score"]}, "task or the target"),
        ({"category": ["age"], "number": ["age"]}, "choose one"),
        ({"weight": "score"}, "--weight"),
        ({"model": "forest"}, "model"),
        ({"missing": "refuse"}, "--missing impute"),
    ],
)
def test_bad_arguments(options, text):
    with pytest.raises(ValueError, match=text):
        fit_table(SCORES, **{**QUICK, **options})


def test_verdicts(regression):
    assert verdict(regression.comparison).startswith("Multitask learning helps here")
    text = verdict(regression.comparison, "pooled")
    assert text.startswith("This model") and "--model auto" in text


def test_load_reads_tables_in_a_fresh_process(tmp_path):
    frame = pd.DataFrame({"school": ["a", "b"] * 10, "age": range(20), "score": range(20)})
    model = fit_table(frame, task="school", target="score", model="pooled")
    model.save(tmp_path / "m.comtl")
    code = f"import comtl; print(type(comtl.load({str(tmp_path / 'm.comtl')!r})).__name__)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "TableModel\n"
